// The colours of drawn blocks and functions in each mode, and the legend that explains them. Pure.
import { amountColor, CATEGORIES, COLD, HEAT_TOP, heatColor, heatOf, type Rgb, UNCOUNTED } from "../../base/color.ts";
import { EXIT_KIND } from "../../protocol/generated.ts";
import type { ColorMode } from "../view-state.ts";
import { type BranchOutcome, branchOutcomes } from "./branch-outcomes.ts";
import type { DrawnCounts, DrawnGraph } from "./folding.ts";
import { paintStructure } from "./image-colors.ts";
import {
  COLD_PAINT,
  coldBlock,
  coldFunction,
  type ColoringInput,
  DIM,
  FAINT,
  isExecuted,
  isUncounted,
  logTicks,
  type Legend,
  type NodeColors,
  OTHER,
  type Paint,
  type Painter,
  PLAIN,
  plain,
  rampColors,
} from "./paint.ts";
import { paintRecency } from "./recency-colors.ts";

export const OUTCOME_COLORS: Record<BranchOutcome, Rgb> = {
  taken: CATEGORIES[0],
  notTaken: CATEGORIES[1],
  both: CATEGORIES[2],
};

export function colorNodes(input: ColoringInput): NodeColors {
  return paintNodes(PAINTERS[input.mode](input), input);
}

/** The colours of everything drawn, as `painter` has them. */
export function paintNodes(
  { legend, paintBlock, paintFunction }: Painter,
  { graph, counts, text, highlights }: Pick<ColoringInput, "graph" | "counts" | "text" | "highlights">,
): NodeColors {
  const nBlocks = graph.blocks && counts.blocks ? graph.nBlocks : 0;
  const found: NodeColors = {
    blocks: new Uint8Array(4 * nBlocks),
    functions: new Uint8Array(4 * graph.nFunctions),
    legend,
  };
  const isFound = findText(graph, text);
  const own = findHighlights(graph, highlights);
  legend.swatches.push(...own.swatches);
  const write = (to: Uint8Array, i: number, { color, strength }: Paint, isDimmed: boolean) => {
    to[4 * i] = Math.round(color[0] * 255);
    to[4 * i + 1] = Math.round(color[1] * 255);
    to[4 * i + 2] = Math.round(color[2] * 255);
    to[4 * i + 3] = isDimmed ? Math.min(strength, FAINT) : strength;
  };
  for (let i = 0; i < nBlocks; i++) {
    const paint = counts.blocks![i] > 0 ? recolor(paintBlock(i), own.ofBlocks.get(i)) : coldBlock(graph, i);
    write(found.blocks, i, paint, isFound !== null && !isFound[graph.functionOfBlock[i]]);
  }
  for (let i = 0; i < graph.nFunctions; i++) {
    const paint = isExecuted(counts, i) ? recolor(paintFunction(i), own.ofFunctions.get(i)) : coldFunction(graph, i);
    write(found.functions, i, paint, isFound !== null && !isFound[i]);
  }
  return found;
}

/** The colours of sets by drawn block and drawn function; of several sets the first has it. */
function findHighlights(graph: DrawnGraph, highlights: ColoringInput["highlights"]) {
  const ofBlocks = new Map<number, Rgb>();
  const ofFunctions = new Map<number, Rgb>();
  const swatches: Legend["swatches"] = [];
  const set = (to: Map<number, Rgb>, drawn: number, color: Rgb) => {
    if (drawn >= 0 && !to.has(drawn)) {
      to.set(drawn, color);
    }
  };
  for (const { name, color, functions, blocks } of highlights) {
    for (const block of blocks) {
      set(ofBlocks, graph.drawnBlock[block] ?? -1, color);
    }
    for (const function_ of functions) {
      const drawn = graph.drawnFunction[function_] ?? -1;
      set(ofFunctions, drawn, color);
      for (let i = graph.firstBlock[drawn]; graph.blocks && i < graph.firstBlock[drawn + 1]; i++) {
        set(ofBlocks, i, color);
      }
    }
    swatches.push({ color, label: `set: ${name}`, count: functions.length + blocks.length });
  }
  return { ofBlocks, ofFunctions, swatches };
}

function recolor(paint: Paint, color: Rgb | undefined): Paint {
  return color ? { color, strength: PLAIN } : paint;
}

/** By drawn function whether its name holds the text; null where there is no text. */
function findText(graph: DrawnGraph, text: string): Uint8Array | null {
  if (!text) {
    return null;
  }
  const wanted = text.toLowerCase();
  const found = new Uint8Array(graph.nFunctions);
  graph.functions.names.forEach((name, i) => {
    const drawn = graph.drawnFunction[i];
    if (drawn >= 0 && name.toLowerCase().includes(wanted)) {
      found[drawn] = 1;
    }
  });
  return found;
}

const PAINTERS: Record<ColorMode, (input: ColoringInput) => Painter> = {
  structure: paintStructure,
  heat: paintHeat,
  conditionals: paintConditionals,
  recency: paintRecency,
  degree: paintDegree,
  thread: paintThreads,
};

/** By drawn function the highest of its blocks' values. */
function mostOfBlocks(graph: DrawnGraph, ofBlocks: Float64Array): Float64Array {
  const most = new Float64Array(graph.nFunctions);
  for (let i = 0; i < graph.nBlocks; i++) {
    const of = graph.functionOfBlock[i];
    most[of] = Math.max(most[of], ofBlocks[i]);
  }
  return most;
}

/** How often functions were executed, as colours have it: as often as their hottest block; or instructions, without blocks. */
export function functionHeat(graph: DrawnGraph, counts: DrawnCounts): Float64Array {
  return counts.blocks ? mostOfBlocks(graph, counts.blocks) : counts.instructions;
}

function highest(values: Float64Array): number {
  let most = 0;
  for (const value of values) {
    most = Math.max(most, value);
  }
  return most;
}

function paintHeat({ graph, counts, isCounted }: ColoringInput): Painter {
  const ofFunctions = functionHeat(graph, counts);
  const most = highest(ofFunctions);
  const totals = { hot: 0, cold: 0, uncounted: 0 };
  (counts.blocks ?? ofFunctions).forEach((value, i) => {
    totals[value > 0 ? "hot" : counts.blocks && isUncounted(graph, i) ? "uncounted" : "cold"]++;
  });
  const paint = (executions: number) => plain(heatColor(heatOf(executions, most)));
  // Of what was only noted as executed there is nothing between.
  const isScale = isCounted || !counts.blocks;
  const title = !isScale ? "Blocks that ran" : counts.blocks ? "Executions of blocks" : "Instructions of functions";
  const swatches = [
    { color: HEAT_TOP, label: "executed", count: isScale ? 0 : totals.hot },
    { color: COLD, label: "not executed", count: totals.cold },
    { color: UNCOUNTED, label: "left out, not counted", count: totals.uncounted },
  ];
  return {
    legend: {
      title,
      swatches: swatches.filter(({ count }) => count > 0),
      ramp: isScale ? { colors: rampColors(heatColor), ticks: logTicks(most) } : null,
    },
    paintBlock: (drawn) => paint(counts.blocks![drawn]),
    paintFunction: (drawn) => (ofFunctions[drawn] > 0 ? paint(ofFunctions[drawn]) : COLD_PAINT),
  };
}

function paintConditionals({ graph, edgeExecutions }: ColoringInput): Painter {
  const { blocks } = graph;
  const other: Paint = { color: COLD, strength: DIM };
  if (!blocks || !edgeExecutions) {
    const legend = { title: "Conditional branches: only where blocks are loaded", swatches: [], ramp: null };
    return { legend, paintBlock: () => other, paintFunction: () => other };
  }
  const outcomes = branchOutcomes(blocks, edgeExecutions);
  const totals: Record<BranchOutcome, number> = { taken: 0, notTaken: 0, both: 0 };
  const byFunction = Array.from({ length: graph.nFunctions }, () => ({ taken: 0, notTaken: 0, both: 0 }));
  let others = 0;
  for (let i = 0; i < graph.nBlocks; i++) {
    const outcome = outcomes(graph.blockOf[i]);
    if (outcome) {
      totals[outcome]++;
      byFunction[graph.functionOfBlock[i]][outcome]++;
    } else if (blocks.exitKind[graph.blockOf[i]] !== EXIT_KIND.conditional) {
      others++;
    }
  }
  const paint = (outcome: BranchOutcome | null) => (outcome ? plain(OUTCOME_COLORS[outcome]) : other);
  return {
    legend: {
      title: "Conditional branches",
      swatches: [
        { color: OUTCOME_COLORS.taken, label: "always taken", count: totals.taken },
        { color: OUTCOME_COLORS.notTaken, label: "never taken", count: totals.notTaken },
        { color: OUTCOME_COLORS.both, label: "both ways", count: totals.both },
        { color: COLD, label: "no condition, dim", count: others },
      ],
      ramp: null,
    },
    paintBlock: (drawn) => paint(outcomes(graph.blockOf[drawn])),
    paintFunction: (drawn) => {
      const of = byFunction[drawn];
      const names: BranchOutcome[] = ["both", "taken", "notTaken"];
      const most = names.reduce((a, b) => (of[b] > of[a] ? b : a));
      return paint(of[most] > 0 ? most : null);
    },
  };
}

function paintDegree({ graph }: ColoringInput): Painter {
  const count = (n: number, { source, target }: DrawnGraph["links"]) => {
    const degrees = new Float64Array(n);
    for (let edge = 0; edge < source.length; edge++) {
      if (source[edge] >= 0 && target[edge] >= 0) {
        degrees[source[edge]]++;
        degrees[target[edge]]++;
      }
    }
    return degrees;
  };
  const ofBlocks = count(graph.blocks ? graph.nBlocks : 0, graph.edges);
  const ofFunctions = graph.blocks ? mostOfBlocks(graph, ofBlocks) : count(graph.nFunctions, graph.links);
  const most = highest(ofFunctions);
  const paint = (degree: number) => plain(amountColor(heatOf(degree, most)));
  return {
    legend: {
      title: graph.blocks ? "Edges into and out of a block" : "Links into and out of a function",
      swatches: [],
      ramp: { colors: rampColors(amountColor), ticks: logTicks(most) },
    },
    paintBlock: (drawn) => paint(ofBlocks[drawn]),
    paintFunction: (drawn) => paint(ofFunctions[drawn]),
  };
}

/** The colour of a thread, an index of the process' threads. */
export function threadColor(thread: number): Rgb {
  return CATEGORIES[thread % 7];
}

function paintThreads({ graph, counts }: ColoringInput): Painter {
  const { functions } = graph;
  const { owner } = counts;
  const ownerOf = (drawn: number) => (owner ? owner[drawn] : 0);
  const color = (thread: number) => (thread < 0 ? OTHER : threadColor(thread));
  const totals = new Map<number, number>();
  const ofFunctions = new Int32Array(graph.nFunctions).fill(-1);
  for (let i = 0; i < (counts.blocks?.length ?? 0); i++) {
    const thread = ownerOf(i);
    if (thread !== -1 && counts.blocks![i] > 0) {
      totals.set(thread, (totals.get(thread) ?? 0) + 1);
      const of = graph.functionOfBlock[i];
      ofFunctions[of] = ofFunctions[of] === -1 || ofFunctions[of] === thread ? thread : -2;
    }
  }
  const shown = [...totals.entries()].filter(([thread]) => thread >= 0).sort((a, b) => a[0] - b[0]);
  const swatches = shown.slice(0, 12).map(([thread, count]) => ({
    color: color(thread),
    label: `thread ${functions.threads[thread]}`,
    count,
  }));
  if (totals.has(-2)) {
    swatches.push({ color: OTHER, label: "shared by several", count: totals.get(-2)! });
  }
  const title = counts.blocks
    ? "Blocks by the thread that executed them most"
    : "Threads: only where blocks are loaded";
  return {
    legend: { title, swatches, ramp: null },
    paintBlock: (drawn) => plain(color(ownerOf(drawn))),
    paintFunction: (drawn) => plain(color(counts.blocks ? ofFunctions[drawn] : -2)),
  };
}
