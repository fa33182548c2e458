// Which nodes belong together: a function, as one node, and its blocks. Pure.
import type { NodePlaces } from "./detail.ts";
import type { DrawnGraph } from "./folding.ts";

interface Placed {
  graph: DrawnGraph;
  places: Pick<NodePlaces, "nBlocks">;
}

/** The nodes of a drawn function's blocks; none where blocks are not placed. */
export function blocksOfFunction({ graph, places }: Placed, of: number): number[] {
  if (places.nBlocks === 0) {
    return [];
  }
  const first = graph.firstBlock[of];
  return Array.from({ length: graph.firstBlock[of + 1] - first }, (_, i) => first + i);
}

/**
 * The nodes that go where `node` goes: a function goes with its blocks, a block alone. With `isWhole` it goes with its function;
 * so does the only block of one, which is in its place.
 */
export function nodesOfGroup(placed: Placed, node: number, isWhole: boolean): number[] {
  const { graph, places } = placed;
  const of = node < places.nBlocks ? graph.functionOfBlock[node] : node - places.nBlocks;
  const blocks = blocksOfFunction(placed, of);
  const goesWhole = node >= places.nBlocks || isWhole || blocks.length === 1;
  return goesWhole ? [...blocks, places.nBlocks + of] : [node];
}
