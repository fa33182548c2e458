// Loops within functions: which blocks lie on a common cycle. Pure.

/**
 * By node the lowest node that it shares a cycle with, itself if it lies on none (or only on one with itself).
 * Edges that `isFollowed` refuses are no part of cycles.
 */
export function findLoops(
  nNodes: number,
  source: ArrayLike<number>,
  target: ArrayLike<number>,
  isFollowed: (edge: number) => boolean,
): Int32Array {
  const first = new Uint32Array(nNodes + 2);
  const kept: number[] = [];
  for (let edge = 0; edge < source.length; edge++) {
    if (source[edge] >= 0 && target[edge] >= 0 && isFollowed(edge)) {
      first[source[edge] + 2]++;
      kept.push(edge);
    }
  }
  for (let node = 1; node < first.length; node++) {
    first[node] += first[node - 1];
  }
  const next = new Uint32Array(kept.length);
  for (const edge of kept) {
    next[first[source[edge] + 1]++] = target[edge];
  }
  return strongComponents(nNodes, first, next);
}

/** Tarjan's algorithm with a stack of its own: functions have chains of thousands of blocks. */
function strongComponents(nNodes: number, first: Uint32Array, next: Uint32Array): Int32Array {
  const component = new Int32Array(nNodes).fill(-1);
  const order = new Int32Array(nNodes).fill(-1);
  const low = new Int32Array(nNodes);
  const at = Uint32Array.from(first.subarray(0, nNodes));
  const open: number[] = [];
  const path: number[] = [];
  let count = 0;
  for (let root = 0; root < nNodes; root++) {
    if (order[root] >= 0) {
      continue;
    }
    path.push(root);
    while (path.length > 0) {
      const node = path[path.length - 1];
      if (order[node] < 0) {
        order[node] = low[node] = count++;
        open.push(node);
      }
      if (at[node] < first[node + 1]) {
        const to = next[at[node]++];
        if (order[to] < 0) {
          path.push(to);
        } else if (component[to] < 0) {
          low[node] = Math.min(low[node], order[to]);
        }
        continue;
      }
      path.pop();
      if (path.length > 0) {
        const parent = path[path.length - 1];
        low[parent] = Math.min(low[parent], low[node]);
      }
      if (low[node] === order[node]) {
        const begin = open.lastIndexOf(node);
        const members = open.splice(begin);
        const lowest = members.reduce((a, b) => Math.min(a, b), nNodes);
        for (const member of members) {
          component[member] = lowest;
        }
      }
    }
  }
  return component;
}
