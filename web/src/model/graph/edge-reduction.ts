// Edges of a graph some of whose nodes are folded into one or left out: which edges are left, what was which, and what leads
// through nodes that were only passed on the way. Pure.

/** How many nodes one after the other are passed through at most, and to how many ends. */
const MOST_PASSED = 8;
const MOST_ENDS = 12;

/** Edges that are left, each once by its ends and its label. */
export interface ReducedEdges {
  source: Int32Array;
  target: Int32Array;
  label: Int8Array;
  /** By edge of the whole graph which of those left it is, or -1. */
  of: Int32Array;
  /** What leads through: the edge of the whole graph it begins with, the one it ends with, and which of those left it is. */
  throughFirst: Uint32Array;
  throughLast: Uint32Array;
  throughEdge: Uint32Array;
}

/**
 * `nodeOf` has by node of the whole graph which node it is now, -1 if it is left out; `isPassed` those of the left out that
 * only pass on: an edge to one of them becomes edges to where it leads. Edges within what is one node now are left out, too;
 * one that leads from a node back to itself stays.
 */
export function reduceEdges(
  source: ArrayLike<number>,
  target: ArrayLike<number>,
  label: ArrayLike<number>,
  nodeOf: Int32Array,
  isPassed: Uint8Array,
): ReducedEdges {
  const found: { source: number[]; target: number[]; label: number[] } = { source: [], target: [], label: [] };
  const known = new Map<number, number>();
  const edgeFor = (from: number, to: number, kind: number): number => {
    const key = (from * (nodeOf.length + 1) + to) * 16 + kind;
    let edge = known.get(key);
    if (edge === undefined) {
      edge = found.source.length;
      known.set(key, edge);
      found.source.push(from);
      found.target.push(to);
      found.label.push(kind);
    }
    return edge;
  };
  const of = new Int32Array(source.length).fill(-1);
  const members = new Map<number, number>();
  nodeOf.forEach((node) => members.set(node, (members.get(node) ?? 0) + 1));
  const leading = edgesFromPassed(source, target, isPassed);
  const through: { first: number[]; last: number[]; edge: number[] } = { first: [], last: [], edge: [] };
  for (let edge = 0; edge < source.length; edge++) {
    const [a, b] = [source[edge], target[edge]];
    if (a < 0 || b < 0 || nodeOf[a] < 0) {
      continue;
    }
    if (nodeOf[b] >= 0) {
      if (nodeOf[a] !== nodeOf[b] || members.get(nodeOf[a]) === 1) {
        of[edge] = edgeFor(nodeOf[a], nodeOf[b], label[edge]);
      }
    } else if (isPassed[b]) {
      for (const last of findEnds(b, leading, target, nodeOf, isPassed)) {
        const end = nodeOf[target[last]];
        if (end !== nodeOf[a]) {
          through.first.push(edge);
          through.last.push(last);
          through.edge.push(edgeFor(nodeOf[a], end, label[edge]));
        }
      }
    }
  }
  return {
    source: Int32Array.from(found.source),
    target: Int32Array.from(found.target),
    label: Int8Array.from(found.label),
    of,
    throughFirst: Uint32Array.from(through.first),
    throughLast: Uint32Array.from(through.last),
    throughEdge: Uint32Array.from(through.edge),
  };
}

/** How often the edges that are left were taken: what leads through is shared among its ends as they were reached. */
export function reduceExecutions(edges: ReducedEdges, executions: Float64Array): Float64Array {
  const sums = new Float64Array(edges.source.length);
  for (let edge = 0; edge < edges.of.length; edge++) {
    if (edges.of[edge] >= 0) {
      sums[edges.of[edge]] += executions[edge];
    }
  }
  const { throughFirst, throughLast, throughEdge } = edges;
  for (let begin = 0, end = 0; begin < throughFirst.length; begin = end) {
    let reached = 0;
    for (; end < throughFirst.length && throughFirst[end] === throughFirst[begin]; end++) {
      reached += executions[throughLast[end]];
    }
    for (let i = begin; i < end; i++) {
      const share = reached > 0 ? executions[throughLast[i]] / reached : 0;
      sums[throughEdge[i]] += executions[throughFirst[i]] * share;
    }
  }
  return sums;
}

function edgesFromPassed(
  source: ArrayLike<number>,
  target: ArrayLike<number>,
  isPassed: Uint8Array,
): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (let edge = 0; edge < source.length; edge++) {
    if (source[edge] >= 0 && target[edge] >= 0 && isPassed[source[edge]]) {
      const there = found.get(source[edge]);
      if (there) {
        there.push(edge);
      } else {
        found.set(source[edge], [edge]);
      }
    }
  }
  return found;
}

/** The edges by which one gets from `start` out of what is passed. */
function findEnds(
  start: number,
  leading: Map<number, number[]>,
  target: ArrayLike<number>,
  nodeOf: Int32Array,
  isPassed: Uint8Array,
): number[] {
  const ends: number[] = [];
  const seen = new Set([start]);
  let reached = [start];
  for (let step = 0; step < MOST_PASSED && reached.length > 0; step++) {
    const next: number[] = [];
    for (const node of reached) {
      for (const edge of leading.get(node) ?? []) {
        const to = target[edge];
        if (nodeOf[to] >= 0) {
          if (ends.length < MOST_ENDS) {
            ends.push(edge);
          }
        } else if (isPassed[to] && !seen.has(to)) {
          seen.add(to);
          next.push(to);
        }
      }
    }
    reached = next;
  }
  return ends;
}
