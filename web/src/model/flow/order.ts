// The order of items on each layer: so that few edges cross. Items are boxes and lanes, places at which a bundle passes.

/** Items by index; `layers` has those of each layer, from left to right. */
export interface Items {
  layers: number[][];
  layer: Int32Array;
  /** Items on neighbouring layers that an edge connects, flat: pairs of upper and lower. */
  upper: Int32Array;
  lower: Int32Array;
  /** Items on one layer that an edge connects around the layer's upper or lower side, flat: pairs of box and lane. */
  beside: Int32Array;
}

interface Neighbours {
  first: Uint32Array;
  items: Int32Array;
}

/** Sort the items of each layer so that lines cross less; `layers` is changed. The same items give the same order. */
export function orderItems(items: Items, sweeps: number): void {
  const n = items.layer.length;
  const above = collect(items.lower, items.upper, n);
  const below = collect(items.upper, items.lower, n);
  const pairs = items.beside.length / 2;
  const ends = [0, 1].map((end) => Int32Array.from({ length: pairs }, (_, i) => items.beside[2 * i + end]));
  const besides = [collect(ends[0], ends[1], n), collect(ends[1], ends[0], n)];
  const place = new Float64Array(n);
  const wanted = new Float64Array(n);
  const tree = new Uint32Array(Math.max(...items.layers.map((row) => row.length)) + 1);
  const note = (row: number[]) => row.forEach((item, index) => (place[item] = index));
  items.layers.forEach(note);
  let best = items.layers.map((row) => row.slice());
  let fewest = countCrossings(items.layers, below, place, tree);
  let idle = 0;
  for (let sweep = 0; sweep < sweeps && fewest > 0 && idle < 4; sweep++) {
    const isDown = sweep % 2 === 0;
    const last = items.layers.length - 1;
    for (let step = 0; step <= last; step++) {
      const at = isDown ? step : last - step;
      sortRow(items.layers[at], isDown ? above : below, besides, place, wanted, sweep % 4 >= 2);
      note(items.layers[at]);
    }
    const crossings = countCrossings(items.layers, below, place, tree);
    idle++;
    if (crossings < fewest) {
      fewest = crossings;
      best = items.layers.map((row) => row.slice());
      idle = 0;
    }
  }
  items.layers.forEach((row, index) => row.splice(0, row.length, ...best[index]));
}

function collect(from: Int32Array, to: Int32Array, n: number): Neighbours {
  const first = new Uint32Array(n + 1);
  for (const item of from) {
    first[item + 1]++;
  }
  for (let i = 0; i < n; i++) {
    first[i + 1] += first[i];
  }
  const next = first.slice();
  const items = new Int32Array(from.length);
  for (let i = 0; i < from.length; i++) {
    items[next[from[i]]++] = to[i];
  }
  return { first, items };
}

/** Sort a row by the mean place of each item's neighbours; those without keep their places among the others. */
function sortRow(
  row: number[],
  beyond: Neighbours,
  besides: Neighbours[],
  place: Float64Array,
  wanted: Float64Array,
  turnsTies: boolean,
): void {
  for (let index = 0; index < row.length; index++) {
    const item = row[index];
    let n = beyond.first[item + 1] - beyond.first[item];
    let sum = 0;
    for (let i = beyond.first[item]; i < beyond.first[item + 1]; i++) {
      sum += place[beyond.items[i]];
    }
    if (n === 0) {
      // Beside what it leads around to.
      for (const { first, items } of besides) {
        n += first[item + 1] - first[item];
        for (let i = first[item]; i < first[item + 1]; i++) {
          sum += place[items[i]];
        }
      }
    }
    wanted[item] = n > 0 ? sum / n : index;
  }
  row.sort((a, b) => wanted[a] - wanted[b] || (turnsTies ? place[b] - place[a] : place[a] - place[b]));
}

/** How many pairs of edges between neighbouring layers cross. `tree` has room for the longest layer. */
function countCrossings(layers: number[][], below: Neighbours, place: Float64Array, tree: Uint32Array): number {
  let crossings = 0;
  for (let at = 0; at + 1 < layers.length; at++) {
    const width = layers[at + 1].length;
    tree.fill(0, 0, width + 1);
    let seen = 0;
    for (const item of layers[at]) {
      const [from, to] = [below.first[item], below.first[item + 1]];
      for (let edge = from; edge < to; edge++) {
        // Edges seen before, of items further left, that end further right.
        let upTo = 0;
        for (let i = place[below.items[edge]] + 1; i > 0; i -= i & -i) {
          upTo += tree[i];
        }
        crossings += seen - upTo;
      }
      for (let edge = from; edge < to; edge++) {
        for (let i = place[below.items[edge]] + 1; i <= width; i += i & -i) {
          tree[i]++;
        }
      }
      seen += to - from;
    }
  }
  return crossings;
}
