// The colours of the graph of two processes, and the legend that explains them. Pure.
import type { Union } from "../../api/compare.ts";
import type { Counts } from "../../api/graph.ts";
import type { Rgb } from "../../base/color.ts";
import type { DrawnGraph } from "../graph/folding.ts";
import { DIM, type Painter, PLAIN } from "../graph/paint.ts";
import { CLASS_COLORS, CLASS_SIGNS, CLASS_WORDS, CLASSES, classOf, colorOf } from "./classes.ts";
import { classOfFunction } from "./function-rows.ts";

/** What is drawn: executions of the one that has more. */
export function unionCounts({ compared }: Union): Counts {
  const most = ({ a, b }: { a: Float64Array; b: Float64Array }) => a.map((value, i) => Math.max(value, b[i]));
  return {
    functionInstructions: most(compared.instructions),
    functionEntries: most(compared.entries),
    linkExecutions: most(compared.links),
    blockExecutions: most(compared.executions),
    edgeExecutions: most(compared.edges),
    blockOwner: null,
  };
}

/** The same of one of both. */
export function sideCounts({ compared }: Union, side: "a" | "b"): Counts {
  return {
    functionInstructions: compared.instructions[side],
    functionEntries: compared.entries[side],
    linkExecutions: compared.links[side],
    blockExecutions: compared.executions[side],
    edgeExecutions: compared.edges[side],
    blockOwner: null,
  };
}

/** Paints nodes by who executed them; `hasBlocks` tells whether the legend counts nodes or functions. */
export function paintCompared(union: Union, graph: DrawnGraph, hasBlocks: boolean): Painter {
  const { compared } = union;
  const totals = new Map<string, number>();
  const n = hasBlocks ? graph.nBlocks : graph.nFunctions;
  for (let i = 0; i < n; i++) {
    const kind = hasBlocks ? nodeClass(union, graph.blockOf[i]) : classOfFunction(union, graph.functionOf[i]);
    totals.set(kind, (totals.get(kind) ?? 0) + 1);
  }
  const paint = (color: Rgb, isSame: boolean) => ({ color, strength: isSame ? DIM : PLAIN });
  return {
    legend: {
      title: hasBlocks ? "Blocks, as cut by both" : "Functions",
      swatches: CLASSES.filter((kind) => (totals.get(kind) ?? 0) > 0).map((kind) => ({
        color: CLASS_COLORS[kind],
        label: `${CLASS_SIGNS[kind]} ${CLASS_WORDS[kind]}`.trim(),
        count: totals.get(kind)!,
      })),
      ramp: null,
    },
    paintBlock: (drawn) =>
      paint(nodeColor(union, graph.blockOf[drawn]), nodeClass(union, graph.blockOf[drawn]) === "same"),
    paintFunction: (drawn) => {
      const index = graph.functionOf[drawn];
      const kind = classOfFunction(union, index);
      const isBoth = kind === "moreInB" || kind === "lessInB";
      const color = isBoth
        ? colorOf(compared.instructions.a[index], compared.instructions.b[index], true)
        : CLASS_COLORS[kind];
      return paint(color, kind === "same");
    },
  };
}

export function nodeClass({ compared }: Union, node: number) {
  return classOf(compared.executions.a[node], compared.executions.b[node], compared.isComparable[node] > 0);
}

export function nodeColor({ compared }: Union, node: number): Rgb {
  return colorOf(compared.executions.a[node], compared.executions.b[node], compared.isComparable[node] > 0);
}
