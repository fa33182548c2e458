// Which edges of a control flow lead back, and on which layer each box stands: edges that don't lead back lead down.

/** Edges by their sources: those of box b are edges[first[b]] up to edges[first[b + 1]]. */
export interface Adjacency {
  first: Uint32Array;
  edges: Uint32Array;
}

/** Edges sorted by one of their ends, those of one box in the order in which they are given. */
export function sortEdges(ends: Int32Array, n: number): Adjacency {
  const first = new Uint32Array(n + 1);
  for (const end of ends) {
    first[end + 1]++;
  }
  for (let i = 0; i < n; i++) {
    first[i + 1] += first[i];
  }
  const next = first.slice();
  const edges = new Uint32Array(ends.length);
  for (let edge = 0; edge < ends.length; edge++) {
    edges[next[ends[edge]]++] = edge;
  }
  return { first, edges };
}

/** By edge 1 if it leads back: to a box that is still open when it is come to depth first, from `entry` on and then from
 * boxes that nothing else leads to. Edges for which `isLeftOut` is 1 count as leading back, and nobody goes along them. */
export function findBackEdges(
  source: Int32Array,
  target: Int32Array,
  n: number,
  entry: number,
  isLeftOut?: Uint8Array,
): Uint8Array {
  const out = sortEdges(source, n);
  const isBack = isLeftOut?.slice() ?? new Uint8Array(source.length);
  // 0 unseen, 1 open, 2 done.
  const state = new Uint8Array(n);
  const next = out.first.slice();
  const stack: number[] = [];
  const open = (box: number) => {
    state[box] = 1;
    stack.push(box);
  };
  for (const root of findRoots(target, n, entry)) {
    if (state[root] !== 0) {
      continue;
    }
    open(root);
    while (stack.length > 0) {
      const box = stack[stack.length - 1];
      if (next[box] === out.first[box + 1]) {
        state[box] = 2;
        stack.pop();
        continue;
      }
      const edge = out.edges[next[box]++];
      const to = target[edge];
      if (isBack[edge]) {
        continue;
      }
      if (state[to] === 1) {
        isBack[edge] = 1;
      } else if (state[to] === 0) {
        open(to);
      }
    }
  }
  return isBack;
}

/** Where to begin: the entry, then boxes without a way in, then all others. */
function findRoots(target: Int32Array, n: number, entry: number): number[] {
  const hasWayIn = new Uint8Array(n);
  for (const to of target) {
    hasWayIn[to] = 1;
  }
  const boxes = Array.from({ length: n }, (_, box) => box);
  return [entry, ...boxes.filter((box) => !hasWayIn[box]), ...boxes.filter((box) => hasWayIn[box])];
}

/** The layer of each box: below all boxes that lead to it, and no layer wider than `mostWidth` unless by a single box. */
export function assignLayers(
  source: Int32Array,
  target: Int32Array,
  isBack: Uint8Array,
  widths: Float64Array,
  mostWidth: number,
): Int32Array {
  const n = widths.length;
  const order = sortByDepth(source, target, isBack, n);
  const into = sortEdges(target, n);
  const out = sortEdges(source, n);
  const layer = new Int32Array(n);
  const used: number[] = [];
  for (const box of order) {
    let at = 0;
    for (let i = into.first[box]; i < into.first[box + 1]; i++) {
      const edge = into.edges[i];
      if (!isBack[edge]) {
        at = Math.max(at, layer[source[edge]] + 1);
      }
    }
    while ((used[at] ?? 0) > 0 && used[at] + widths[box] > mostWidth) {
      at++;
    }
    layer[box] = at;
    used[at] = (used[at] ?? 0) + widths[box];
  }
  // What has nothing above it comes down to what it leads to; the way there is shorter then.
  for (let i = order.length - 1; i >= 0; i--) {
    const box = order[i];
    const hasAbove = into.edges.subarray(into.first[box], into.first[box + 1]).some((edge) => !isBack[edge]);
    let lowest = Infinity;
    for (let j = out.first[box]; j < out.first[box + 1]; j++) {
      if (!isBack[out.edges[j]]) {
        lowest = Math.min(lowest, layer[target[out.edges[j]]] - 1);
      }
    }
    if (
      !hasAbove &&
      i > 0 &&
      lowest !== Infinity &&
      lowest > layer[box] &&
      (used[lowest] ?? 0) + widths[box] <= mostWidth
    ) {
      used[layer[box]] -= widths[box];
      used[lowest] = (used[lowest] ?? 0) + widths[box];
      layer[box] = lowest;
    }
  }
  return closeGaps(layer);
}

/** Boxes so that edges that don't lead back go forward, by the longest way from above. */
function sortByDepth(source: Int32Array, target: Int32Array, isBack: Uint8Array, n: number): number[] {
  const out = sortEdges(source, n);
  const missing = new Uint32Array(n);
  const depth = new Uint32Array(n);
  for (let edge = 0; edge < source.length; edge++) {
    if (!isBack[edge]) {
      missing[target[edge]]++;
    }
  }
  const order: number[] = [];
  for (let box = 0; box < n; box++) {
    if (missing[box] === 0) {
      order.push(box);
    }
  }
  for (let at = 0; at < order.length; at++) {
    const box = order[at];
    for (let i = out.first[box]; i < out.first[box + 1]; i++) {
      const edge = out.edges[i];
      if (!isBack[edge]) {
        depth[target[edge]] = Math.max(depth[target[edge]], depth[box] + 1);
        if (--missing[target[edge]] === 0) {
          order.push(target[edge]);
        }
      }
    }
  }
  return order.sort((a, b) => depth[a] - depth[b] || a - b);
}

function closeGaps(layer: Int32Array): Int32Array {
  const known = [...new Set(layer)].sort((a, b) => a - b);
  const number = new Map(known.map((value, index) => [value, index]));
  return layer.map((value) => number.get(value)!);
}
