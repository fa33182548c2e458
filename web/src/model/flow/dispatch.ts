// Jumps of an interpreter: many boxes, each of which chooses the next one out of the same others.
//
// Were each of them laid out as any other edge, the boxes chosen would stand one below the other, and every pair would
// have lines of its own. So those of one choice form a group: one box, the head, stands above all that are chosen, and
// all lines of a group run in one trunk.
import { sortEdges } from "./layers.ts";

/** A box that leads to more others than this chooses among them. */
const MANY_WAYS = 8;

export interface Dispatch {
  /** By edge its group, -1 for none. */
  group: Int32Array;
  /** Edges that give the layers, by source and target: the given ones first, then from each head to all that is chosen
   * in its group and it does not lead to. */
  source: Int32Array;
  target: Int32Array;
  /** By such an edge 1 if it is a choice made elsewhere than at a head. */
  isElsewhere: Uint8Array;
}

/** Groups of edges; `style` tells jumps of other edges. A box that alone chooses among some others has no group. */
export function findDispatch(
  source: Int32Array,
  target: Int32Array,
  style: Uint8Array,
  n: number,
  entry: number,
): Dispatch {
  const out = sortEdges(source, n);
  const ways = (box: number) => out.edges.subarray(out.first[box], out.first[box + 1]);
  const group = new Int32Array(source.length).fill(-1);
  const ofBox = new Int32Array(n).fill(-1);
  const parent: number[] = [];
  const find = (at: number): number => (parent[at] === at ? at : (parent[at] = find(parent[at])));
  const choosers = Array.from({ length: n }, (_, box) => box).filter((box) => ways(box).length > MANY_WAYS);
  choosers.forEach((box, index) => {
    parent.push(index);
    for (const edge of ways(box)) {
      const known = ofBox[target[edge]];
      if (known < 0) {
        ofBox[target[edge]] = index;
      } else {
        parent[find(index)] = find(known);
      }
    }
  });
  const styleOf = new Map(choosers.map((box) => [find(ofBox[target[ways(box)[0]]]), style[ways(box)[0]]]));
  const choosing = new Map<number, Set<number>>();
  for (let edge = 0; edge < source.length; edge++) {
    const of = ofBox[target[edge]] < 0 ? -1 : find(ofBox[target[edge]]);
    // One that was seen to go one way only chooses as well, if it jumps.
    if (of >= 0 && (ways(source[edge]).length > MANY_WAYS || style[edge] === styleOf.get(of))) {
      group[edge] = of;
      choosing.set(of, (choosing.get(of) ?? new Set()).add(source[edge]));
    }
  }
  const isAlone = (of: number) => (choosing.get(of)?.size ?? 0) < 2;
  group.forEach((of, edge) => (group[edge] = of < 0 || isAlone(of) ? -1 : of));
  const isReached = reach(source, target, group, n, entry);
  const heads = new Map<number, number>();
  for (const [of, boxes] of choosing) {
    if (!isAlone(of)) {
      const rank = (box: number) => Number(isReached[box]) * (source.length + 1) + ways(box).length;
      heads.set(
        of,
        [...boxes].reduce((best, box) => (rank(box) > rank(best) ? box : best)),
      );
    }
  }
  return { group, ...joinHeads(source, target, group, heads, ofBox, find) };
}

/** Boxes that are come to from the entry without a choice. */
function reach(source: Int32Array, target: Int32Array, group: Int32Array, n: number, entry: number): Uint8Array {
  const out = sortEdges(source, n);
  const isReached = new Uint8Array(n);
  const open = [entry];
  isReached[entry] = 1;
  for (let box = open.pop(); box !== undefined; box = open.pop()) {
    for (let i = out.first[box]; i < out.first[box + 1]; i++) {
      const edge = out.edges[i];
      if (group[edge] < 0 && !isReached[target[edge]]) {
        isReached[target[edge]] = 1;
        open.push(target[edge]);
      }
    }
  }
  return isReached;
}

function joinHeads(
  source: Int32Array,
  target: Int32Array,
  group: Int32Array,
  heads: Map<number, number>,
  ofBox: Int32Array,
  find: (at: number) => number,
): Omit<Dispatch, "group"> {
  const [sources, targets] = [Array.from(source), Array.from(target)];
  const isElsewhere = Array.from(group, (of, edge) => Number(of >= 0 && heads.get(of) !== source[edge]));
  const isLedTo = new Set<number>();
  group.forEach((of, edge) => {
    if (of >= 0 && !isElsewhere[edge]) {
      isLedTo.add(target[edge]);
    }
  });
  ofBox.forEach((of, box) => {
    const head = of < 0 ? undefined : heads.get(find(of));
    if (head !== undefined && head !== box && !isLedTo.has(box)) {
      sources.push(head);
      targets.push(box);
      isElsewhere.push(0);
    }
  });
  return {
    source: Int32Array.from(sources),
    target: Int32Array.from(targets),
    isElsewhere: Uint8Array.from(isElsewhere),
  };
}
