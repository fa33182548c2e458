// What stands out of a picture: the edges at what is selected and under the pointer, and what was executed just before
// the cursor.
import { CATEGORIES, type Rgb } from "../../base/color.ts";
import { edgesAt, edgesAtFunction, nodeOfSelection, takenOf } from "../../model/graph/detail.ts";
import type { LeftOut, PlacedGraph } from "../../model/graph/scene.ts";
import type { RecentBlock } from "../../model/recent.ts";
import type { Selection } from "../../model/view-state.ts";

export const OUT_COLOR: Rgb = CATEGORIES[0];
export const IN_COLOR: Rgb = CATEGORIES[1];

const MOST_MARKED = 4000;
/** So many nodes that were executed just before the cursor glow. */
const MOST_TRAIL = 16;

/** How far up the scale of counts each edge of the graph is, as EdgeColors has it. */
export interface Heats {
  edges: { heat: Uint8Array };
  links: { heat: Uint8Array };
  /** What is not in the picture, and with it the edges that were not taken; null for nothing. */
  leftOut: LeftOut | null;
}

/** Both ends of each edge, four bytes of colour, and its heat; and what those at what is selected lead to and come from. */
export interface MarkedEdges {
  ends: Uint32Array;
  colors: Uint8Array;
  heats: Uint8Array;
  neighbours: Neighbour[];
  /** Those of them that are at what is under the pointer. */
  atHovered: { ends: Uint32Array; colors: Uint8Array; heats: Uint8Array };
}

/**
 * The edges at `selected` and at `hovered`, nodes or -1. `wholeFunction` is the drawn function that is selected as a whole,
 * or -1: where it is drawn by its blocks, those that leave and enter it count.
 */
export function findMarkedEdges(
  placed: PlacedGraph,
  isOpen: Uint8Array,
  selected: number,
  hovered: number,
  wholeFunction: number,
  { edges, links, leftOut }: Heats,
): MarkedEdges {
  const { graph, places } = placed;
  const ends: number[] = [];
  const colors: number[] = [];
  const heats: number[] = [];
  let neighbours: Neighbour[] = [];
  let firstHovered = 0;
  for (const node of new Set([selected, hovered])) {
    if (node < 0) {
      continue;
    }
    firstHovered = node === hovered ? heats.length : firstHovered;
    const isByBlocks = node === selected && wholeFunction >= 0 && isOpen[wholeFunction] === 1;
    const all = isByBlocks
      ? edgesAtFunction(graph, places.nBlocks, isOpen, wholeFunction)
      : edgesAt(graph, places.nBlocks, isOpen, node);
    const heatOf = all.areLinks ? links.heat : edges.heat;
    const found = leftOut ? takenOf(all, heatOf) : all;
    if (node === selected) {
      neighbours = findNeighbours(placed, found, selected);
    }
    for (const [list, indices, color] of [
      [found.out, found.outOf, OUT_COLOR],
      [found.in, found.inOf, IN_COLOR],
    ] as const) {
      for (let i = 0; i < indices.length && heats.length < MOST_MARKED; i++) {
        ends.push(list[2 * i], list[2 * i + 1]);
        colors.push(...color.map((part) => Math.round(255 * part)), 255);
        heats.push(heatOf[indices[i]] ?? 0);
      }
    }
  }
  const all = { ends: Uint32Array.from(ends), colors: Uint8Array.from(colors), heats: Uint8Array.from(heats) };
  const first = hovered >= 0 ? firstHovered : heats.length;
  const atHovered = {
    ends: all.ends.subarray(2 * first),
    colors: all.colors.subarray(4 * first),
    heats: all.heats.subarray(first),
  };
  return { ...all, neighbours, atHovered };
}

/** Where an edge at what is selected leads (`isOut`) or comes from: a node, its drawn function, and whether that is the own one. */
export interface Neighbour {
  node: number;
  drawn: number;
  isOut: boolean;
  isOwn: boolean;
}

/** The other ends of `edges` at `selected`: of its own function each block, of another one the first node. */
function findNeighbours(
  { graph, places }: PlacedGraph,
  edges: { out: Uint32Array; in: Uint32Array },
  selected: number,
): Neighbour[] {
  const functionOf = (node: number) => (node < places.nBlocks ? graph.functionOfBlock[node] : node - places.nBlocks);
  const found = new Map<string, Neighbour>();
  for (const isOut of [true, false]) {
    const ends = isOut ? edges.out : edges.in;
    for (let i = isOut ? 1 : 0; i < ends.length; i += 2) {
      const [node, drawn] = [ends[i], functionOf(ends[i])];
      if (node === selected) {
        continue;
      }
      const isOwn = drawn === functionOf(selected);
      const key = `${isOut} ${isOwn ? node : -1 - drawn}`;
      if (!found.has(key)) {
        found.set(key, { node, drawn, isOut, isOwn });
      }
    }
  }
  return [...found.values()];
}

/** The drawn function that is selected, or that a selected block is of; -1 for none. */
export function functionOfSelection({ graph }: PlacedGraph, selection: Selection | null): number {
  if (!selection) {
    return -1;
  }
  if (selection.kind === "function") {
    return graph.drawnFunction[selection.index] ?? -1;
  }
  const drawn = graph.drawnBlock[selection.index] ?? -1;
  return drawn >= 0 ? graph.functionOfBlock[drawn] : -1;
}

/** The nodes that `recent` is drawn by, the last first. */
export function findTrail(
  { graph, places }: PlacedGraph,
  isOpen: Uint8Array,
  recent: readonly RecentBlock[],
): { node: number; weight: number }[] {
  const found = new Map<number, number>();
  for (const { block, weight } of recent) {
    const node = nodeOfSelection(graph, places.nBlocks, isOpen, { kind: "block", index: block });
    if (node >= 0 && !found.has(node)) {
      found.set(node, weight);
      if (found.size === MOST_TRAIL) {
        break;
      }
    }
  }
  return [...found].map(([node, weight]) => ({ node, weight }));
}

/** Whether a node is drawn: a block where its function is open, a function where it is not; -1 is no node. */
export function isDrawn(
  { graph, places: { nBlocks } }: PlacedGraph,
  isOpen: Uint8Array,
  node: number,
  leftOut: LeftOut | null,
): boolean {
  if (node < nBlocks) {
    return node >= 0 && isOpen[graph.functionOfBlock[node]] === 1 && !leftOut?.blocks[node];
  }
  return isOpen[node - nBlocks] === 0 && !leftOut?.functions[node - nBlocks];
}
