// Where items stand from side to side: near what they are connected to, in the order of their layer, never too close.
import type { Items } from "./order.ts";
import { SPACE } from "./flow-graph.ts";
import { settle } from "./places.ts";

const ROUNDS = 5;
/** How much more than an edge between boxes a lane wants to be upright. */
const LANE_PULL = 6;
/** Rows keep between two bounds, so far apart as the longest row is long, by this factor: else each would lead the next
 * one further astray. */
const LEEWAY = 1.5;
/** But never closer than some screens: in a small picture they do no harm. */
const LEAST_WIDTH = 6000;

/** The middle of each item. `widths` are the boxes'; items from `widths.length` on are lanes, without width. */
export function placeItems(items: Items, widths: Float64Array): Float64Array {
  const n = items.layer.length;
  const middle = new Float64Array(n);
  const distances = items.layers.map((row) => distancesOf(row, widths));
  items.layers.forEach((row, at) => {
    let x = 0;
    row.forEach((item, i) => {
      middle[item] = x;
      x += distances[at][i] ?? 0;
    });
    row.forEach((item) => (middle[item] -= x / 2));
  });
  const lengths = distances.map((row) => row.reduce((sum, apart) => sum + apart, 0));
  const bound = Math.max(LEEWAY * lengths.reduce((most, length) => Math.max(most, length), 0), LEAST_WIDTH) / 2;
  const pull = new Float64Array(n);
  const sum = new Float64Array(n);
  const isLane = (item: number) => item >= widths.length;
  const weightOf = Float64Array.from(items.upper, (item, pair) =>
    isLane(item) && isLane(items.lower[pair]) ? LANE_PULL : 1,
  );
  const byLayer = pairsByLayer(items);
  const besideOf: [number, number][][] = items.layers.map(() => []);
  for (let i = 0; i < items.beside.length; i += 2) {
    besideOf[items.layer[items.beside[i]]].push([items.beside[i], items.beside[i + 1]]);
  }
  const pullTo = (pairs: Uint32Array, from: Int32Array, to: Int32Array) => {
    for (const pair of pairs) {
      sum[from[pair]] += weightOf[pair] * middle[to[pair]];
      pull[from[pair]] += weightOf[pair];
    }
  };
  const settleRow = (at: number, looksUp: boolean, looksDown: boolean) => {
    const row = items.layers[at];
    for (const item of row) {
      sum[item] = pull[item] = 0;
    }
    if (looksUp && at > 0) {
      pullTo(byLayer[at - 1], items.lower, items.upper);
    }
    // A way around begins and ends near its boxes, which don't move for it.
    for (const [box, lane] of besideOf[at]) {
      sum[lane] += middle[box];
      pull[lane]++;
    }
    if (looksDown) {
      pullTo(byLayer[at], items.upper, items.lower);
    }
    // What nothing pulls stays, but gives way.
    const wanted = Float64Array.from(row, (item) => (pull[item] > 0 ? sum[item] / pull[item] : middle[item]));
    const weight = Float64Array.from(row, (item) => Math.max(pull[item], 0.05));
    const found = settle(wanted, weight, distances[at]);
    for (let i = 0, before = 0; i < row.length; i++) {
      const behind = lengths[at] - before;
      middle[row[i]] = Math.min(Math.max(found[i], before - bound), bound - behind);
      before += distances[at][i] ?? 0;
    }
  };
  const last = items.layers.length - 1;
  for (let round = 0; round < ROUNDS; round++) {
    for (let at = 1; at <= last; at++) {
      settleRow(at, true, false);
    }
    for (let at = last - 1; at >= 0; at--) {
      settleRow(at, false, true);
    }
  }
  for (let at = 0; at <= last; at++) {
    settleRow(at, true, true);
  }
  return middle;
}

/** Make lanes of one bundle, which follow one another in `runs`, upright as far as their neighbours leave room. */
export function straightenLanes(items: Items, widths: Float64Array, runs: Int32Array[], middle: Float64Array): void {
  const index = new Uint32Array(items.layer.length);
  items.layers.forEach((row) => row.forEach((item, i) => (index[item] = i)));
  const room = (item: number): [number, number] => {
    const row = items.layers[items.layer[item]];
    const i = index[item];
    const before = i > 0 ? middle[row[i - 1]] + distance(row[i - 1], item, widths) : -Infinity;
    const behind = i + 1 < row.length ? middle[row[i + 1]] - distance(item, row[i + 1], widths) : Infinity;
    return [before, Math.max(before, behind)];
  };
  for (const run of runs) {
    for (let start = 0; start < run.length;) {
      let [low, high] = room(run[start]);
      let sum = middle[run[start]];
      let end = start + 1;
      for (; end < run.length; end++) {
        const [lower, higher] = room(run[end]);
        if (Math.max(low, lower) > Math.min(high, higher)) {
          break;
        }
        low = Math.max(low, lower);
        high = Math.min(high, higher);
        sum += middle[run[end]];
      }
      const x = Math.min(Math.max(sum / (end - start), low), high);
      for (; start < end; start++) {
        middle[run[start]] = x;
      }
    }
  }
}

function distance(left: number, right: number, widths: Float64Array): number {
  const areBoxes = left < widths.length && right < widths.length;
  return (widths[left] ?? 0) / 2 + (widths[right] ?? 0) / 2 + (areBoxes ? SPACE.box : SPACE.lane);
}

function distancesOf(row: number[], widths: Float64Array): Float64Array {
  return Float64Array.from({ length: Math.max(row.length - 1, 0) }, (_, i) => distance(row[i], row[i + 1], widths));
}

function pairsByLayer(items: Items): Uint32Array[] {
  const found: number[][] = items.layers.map(() => []);
  items.upper.forEach((item, pair) => found[items.layer[item]].push(pair));
  return found.map((pairs) => Uint32Array.from(pairs));
}
