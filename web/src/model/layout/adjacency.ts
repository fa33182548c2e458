// Who follows whom, in two arrays: the successors of node i are `to` from start[i] up to start[i + 1].

export interface Adjacency {
  start: Uint32Array;
  to: Uint32Array;
}

/** The edges `source[e]` to `target[e]` of `n` nodes by their source, each node's in the order of the edges. */
export function makeAdjacency(n: number, source: ArrayLike<number>, target: ArrayLike<number>): Adjacency {
  const start = new Uint32Array(n + 1);
  for (let e = 0; e < source.length; e++) {
    start[source[e] + 1]++;
  }
  for (let i = 0; i < n; i++) {
    start[i + 1] += start[i];
  }
  const next = start.slice(0, n);
  const to = new Uint32Array(source.length);
  for (let e = 0; e < source.length; e++) {
    to[next[source[e]]++] = target[e];
  }
  return { start, to };
}
