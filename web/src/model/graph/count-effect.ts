// How strongly counts change what is drawn: the width of edges and the size of nodes, both by the counts' logarithm. `heat` is
// where a count stands on that scale, 0 to 1; `effect` is what the reader chose: 0 for none, 1 as at first, 2 at most. The
// shaders have the same (views/graph/shaders.ts). Pure.
import { heatByte } from "../../base/color.ts";
import type { DrawnCounts, DrawnGraph } from "./folding.ts";
import { functionHeat } from "./node-colors.ts";

/** The busiest edge is wider by so much, as a share of the width of one that was taken once. */
export const WIDTH_GAIN = 2;
/** The hottest node grows by so much, and the coldest shrinks by so much. */
export const GROWTH = { most: 0.3, least: 0.4 };

/** What the width of an edge is to be multiplied with. */
export function edgeWidening(heat: number, effect: number): number {
  return 1 + WIDTH_GAIN * effect * heat;
}

/** What the diameter of a node is to be multiplied with. */
export function nodeGrowth(heat: number, effect: number): number {
  return 1 + effect * ((GROWTH.most + GROWTH.least) * heat - GROWTH.least);
}

/** The heat of each node as a byte, blocks first; of functions that of their hottest block. */
export function nodeHeats(graph: DrawnGraph, counts: DrawnCounts, nBlocks: number): Uint8Array {
  const found = new Uint8Array(nBlocks + graph.nFunctions);
  const ofFunctions = functionHeat(graph, counts);
  const most = ofFunctions.reduce((a, b) => Math.max(a, b), 0);
  for (let block = 0; counts.blocks && block < nBlocks; block++) {
    found[block] = heatByte(counts.blocks[block], most);
  }
  for (let of = 0; of < graph.nFunctions; of++) {
    found[nBlocks + of] = heatByte(ofFunctions[of], most);
  }
  return found;
}
