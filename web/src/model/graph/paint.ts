// What the colours of each mode are made of: paints, legends, ramps with ticks. Pure.
import { CATEGORIES, COLD, type Rgb, UNCOUNTED } from "../../base/color.ts";
import { formatShort } from "../../base/format.ts";
import type { RecentBlock } from "../recent.ts";
import type { ColorMode } from "../view-state.ts";
import type { DrawnCounts, DrawnGraph } from "./folding.ts";

/** How much a node stands out, in the colours' fourth byte: its size and opacity follow. */
export const PLAIN = 255;
export const DIM = 110;
export const FAINT = 56;

/** Colours, red green blue and how much it stands out, a byte each. */
export interface NodeColors {
  blocks: Uint8Array;
  functions: Uint8Array;
  legend: Legend;
}

/** What colours mean: swatches, each with its label and how many blocks (or functions) it stands for; or a ramp with ticks. */
export interface Legend {
  title: string;
  swatches: { color: Rgb; label: string; count: number }[];
  ramp: { colors: Rgb[]; ticks: { at: number; label: string }[] } | null;
}

/** Functions and blocks, by their indices, that have a colour of their own. */
export interface Highlight {
  name: string;
  color: Rgb;
  functions: readonly number[];
  blocks: readonly number[];
}

export interface ColoringInput {
  graph: DrawnGraph;
  counts: DrawnCounts;
  /** How often each edge of the process was taken; null where blocks are not loaded. */
  edgeExecutions: Float64Array | null;
  mode: ColorMode;
  /** Functions whose name does not hold this are dim. */
  text: string;
  recent: readonly RecentBlock[] | null;
  /** Whether it was counted how often code ran, and not only what did. */
  isCounted: boolean;
  /** Sets that the reader made: they have their own colours in every mode. */
  highlights: readonly Highlight[];
}

/** A class of nodes: its colour, and how much they stand out. */
export interface Paint {
  color: Rgb;
  strength: number;
}

/** What was not executed. */
export const COLD_PAINT: Paint = { color: COLD, strength: FAINT };
/** What filters left out when it was recorded: nothing of it was counted. */
export const UNCOUNTED_PAINT: Paint = { color: UNCOUNTED, strength: FAINT };
/** The colour of what has none of its own. */
export const OTHER: Rgb = CATEGORIES[7];

export interface Painter {
  legend: Legend;
  paintBlock: (drawn: number) => Paint;
  paintFunction: (drawn: number) => Paint;
}

export function isExecuted(counts: DrawnCounts, drawn: number): boolean {
  return counts.instructions[drawn] > 0 || counts.entries[drawn] > 0;
}

/** Whether a drawn block was left out when it was recorded, so that it says nothing that it was not executed. */
export function isUncounted({ blocks, blockOf }: DrawnGraph, drawn: number): boolean {
  return blocks !== null && blocks.isRecorded[blockOf[drawn]] === 0;
}

/** Whether all blocks of a drawn function were. */
function isUncountedFunction(graph: DrawnGraph, drawn: number): boolean {
  const [first, end] = [graph.firstBlock[drawn], graph.firstBlock[drawn + 1]];
  for (let block = first; block < end; block++) {
    if (!isUncounted(graph, block)) {
      return false;
    }
  }
  return end > first;
}

/** The paint of a drawn block of which no execution was counted. */
export function coldBlock(graph: DrawnGraph, drawn: number): Paint {
  return isUncounted(graph, drawn) ? UNCOUNTED_PAINT : COLD_PAINT;
}

/** The paint of a drawn function of which none was. */
export function coldFunction(graph: DrawnGraph, drawn: number): Paint {
  return isUncountedFunction(graph, drawn) ? UNCOUNTED_PAINT : COLD_PAINT;
}

export function plain(color: Rgb): Paint {
  return { color, strength: PLAIN };
}

/** Ticks of a logarithmic scale from 1 to `most`. */
export function logTicks(most: number): { at: number; label: string }[] {
  const decades = Math.max(Math.log10(Math.max(most, 1)), 0);
  const step = Math.max(Math.ceil(decades / 4), 1);
  const ticks: { at: number; label: string }[] = [];
  for (let power = 0; power < decades - 0.8 * step; power += step) {
    ticks.push({ at: power / decades, label: formatShort(10 ** power) });
  }
  ticks.push({ at: 1, label: formatShort(most) });
  return ticks;
}

export function rampColors(color: (t: number) => Rgb): Rgb[] {
  return Array.from({ length: 13 }, (_, i) => color(i / 12));
}
