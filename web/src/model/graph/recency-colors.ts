// The mode "recency": when code was first executed, or what was just before the cursor. Pure.
import { amountColor, COLD, heatColor } from "../../base/color.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import type { RecentBlock } from "../recent.ts";
import type { DrawnGraph } from "./folding.ts";
import { type ColoringInput, DIM, type Painter, plain, rampColors } from "./paint.ts";

export function paintRecency(input: ColoringInput): Painter {
  const { graph, recent } = input;
  if (recent) {
    return paintRecent(graph, recent);
  }
  const { blocks, functions } = graph;
  const times = blocks
    ? Float64Array.from(graph.blockOf, (block) => blocks.first[block])
    : Float64Array.from(graph.functionOf, (function_) => functions.discovered[function_]);
  // By rank and not by time: most code is new within the first moments, and would be all of one colour.
  const sorted = times.slice().sort();
  const rankOf = (time: number): number => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return sorted.length > 1 ? low / (sorted.length - 1) : 0;
  };
  const paint = (time: number) => plain(amountColor(rankOf(time)));
  return {
    legend: {
      title: blocks ? "First execution of blocks, after the start" : "First execution, after the start",
      swatches: [],
      ramp: {
        colors: rampColors(amountColor),
        ticks: [0, 0.5, 1].map((at) => ({
          at,
          label: formatDuration(sorted[Math.round(at * (sorted.length - 1))] ?? 0),
        })),
      },
    },
    paintBlock: (drawn) => paint(times[drawn]),
    paintFunction: (drawn) => paint(functions.discovered[graph.functionOf[drawn]]),
  };
}

/** What was executed just before the cursor is hot, the rest dim. */
function paintRecent(graph: DrawnGraph, recent: readonly RecentBlock[]): Painter {
  const ofBlocks = new Float64Array(graph.blocks ? graph.nBlocks : 0);
  const ofFunctions = new Float64Array(graph.nFunctions);
  for (const { block, weight } of recent) {
    const drawn = graph.drawnBlock[block] ?? -1;
    if (drawn >= 0) {
      const function_ = graph.functionOfBlock[drawn];
      ofBlocks[drawn] = Math.max(ofBlocks[drawn], weight);
      ofFunctions[function_] = Math.max(ofFunctions[function_], weight);
    }
  }
  const paint = (weight: number) => (weight > 0 ? plain(heatColor(weight)) : { color: COLD, strength: DIM });
  return {
    legend: {
      title: `The last ${formatInteger(recent.length)} blocks before the cursor`,
      swatches: [],
      ramp: {
        colors: rampColors(heatColor),
        ticks: [
          { at: 0, label: "before" },
          { at: 1, label: "last" },
        ],
      },
    },
    paintBlock: (drawn) => paint(ofBlocks[drawn]),
    paintFunction: (drawn) => paint(ofFunctions[drawn]),
  };
}
