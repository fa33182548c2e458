// Which functions may have labels, and in which order. Pure.
import { type DrawnCounts, type DrawnGraph, nameOfDrawn } from "../../model/graph/folding.ts";
import { functionHeat } from "../../model/graph/node-colors.ts";
import type { LabelledFunction } from "./labels-layer.ts";

/** Functions that were executed, the hottest first; `tellEntries` says how often one was entered. */
export function rankFunctions(
  graph: DrawnGraph,
  counts: DrawnCounts,
  tellEntries: (drawn: number, entries: number) => string,
): LabelledFunction[] {
  const heat = functionHeat(graph, counts);
  const found: LabelledFunction[] = [];
  for (let drawn = 0; drawn < graph.nFunctions; drawn++) {
    let hottestBlock = graph.firstBlock[drawn];
    for (let block = hottestBlock + 1; counts.blocks && block < graph.firstBlock[drawn + 1]; block++) {
      if (counts.blocks[block] > counts.blocks[hottestBlock]) {
        hottestBlock = block;
      }
    }
    const name = nameOfDrawn(graph, drawn);
    // What the threads that are looked at did not execute has nothing to say.
    if (heat[drawn] > 0) {
      const entered = tellEntries(drawn, counts.entries[drawn]);
      found.push({ drawn, name, entered, executions: heat[drawn], hottestBlock });
    }
  }
  return found.sort((a, b) => b.executions - a.executions || a.drawn - b.drawn);
}
