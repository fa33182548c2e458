// The colours and the weights of drawn edges in each mode, and their ranking: the busiest first. Pure.
import { CATEGORIES, heatByte, heatColor, heatOf, type Rgb } from "../../base/color.ts";
import { EDGE_KIND } from "../../protocol/generated.ts";
import type { ColorMode } from "../view-state.ts";
import type { DrawnEdges } from "./folding.ts";
import { OUTCOME_COLORS } from "./node-colors.ts";

/**
 * Colours, red green blue and the weight, a byte each; `heat` has where the count of each edge stands on a scale of logarithms,
 * 1 to 255, and 0 where it was not taken; `ranking` has the indices of edges that were taken, busiest first.
 */
export interface EdgeColors {
  colors: Uint8Array;
  heat: Uint8Array;
  ranking: Uint32Array;
}

/** How hot an edge is drawn of which only that it was taken is known: of a middling width. */
const UNCOUNTED_HEAT = 0.4;

const QUIET: Rgb = [0.42, 0.48, 0.58];
const CALL: Rgb = CATEGORIES[1];
const FLOW: Rgb = CATEGORIES[0];
const BACK: Rgb = CATEGORIES[3];
const INDIRECT: Rgb = CATEGORIES[2];
const EVENT: Rgb = CATEGORIES[5];

const KIND_COLORS: Record<number, Rgb> = {
  [EDGE_KIND.jump]: FLOW,
  [EDGE_KIND.taken]: FLOW,
  [EDGE_KIND.not_taken]: FLOW,
  [EDGE_KIND.fall_through]: FLOW,
  [EDGE_KIND.call]: CALL,
  [EDGE_KIND.indirect_call]: CALL,
  [EDGE_KIND.indirect_jump]: INDIRECT,
  [EDGE_KIND.return]: BACK,
  [EDGE_KIND.syscall]: EVENT,
  [EDGE_KIND.signal]: EVENT,
  [EDGE_KIND.sigreturn]: EVENT,
  [EDGE_KIND.fault]: EVENT,
};

/** What the colours of edges mean in the mode "structure". */
export const EDGE_LEGEND: readonly { color: Rgb; label: string }[] = [
  { color: FLOW, label: "jump or branch" },
  { color: CALL, label: "call" },
  { color: BACK, label: "return" },
  { color: INDIRECT, label: "indirect jump" },
  { color: EVENT, label: "system call, signal, fault" },
];

/** What the colours of edges mean in the mode "conditionals". */
export const BRANCH_LEGEND: readonly { color: Rgb; label: string }[] = [
  { color: OUTCOME_COLORS.taken, label: "taken" },
  { color: OUTCOME_COLORS.notTaken, label: "not taken" },
];

/**
 * Colours of edges between blocks (`areLinks` false), whose labels are kinds, or between functions, whose labels are 1 for
 * calls. `nodeColors` are those of the ends, by index. Where nothing was counted (`isCounted`) no edge is hotter than another.
 * With `colorOf` edges have colours of their own, whatever the mode.
 */
export function colorEdges(
  edges: DrawnEdges,
  executions: Float64Array,
  mode: ColorMode,
  areLinks: boolean,
  nodeColors: Uint8Array,
  isCounted: boolean,
  colorOf?: (edge: number) => Rgb,
): EdgeColors {
  const { source, target, label } = edges;
  const most = executions.reduce((a, b) => Math.max(a, b), 0);
  const colors = new Uint8Array(4 * source.length);
  const heatBytes = new Uint8Array(source.length);
  // A bucket for each step of heat: sorting by every count would take longer, and no eye could tell.
  const bucket = new Int16Array(source.length).fill(-1);
  const sizes = new Uint32Array(258);
  for (let edge = 0; edge < source.length; edge++) {
    const heat = isCounted ? heatOf(executions[edge], most) : executions[edge] > 0 ? UNCOUNTED_HEAT : -1;
    if (heat < 0 || source[edge] < 0 || target[edge] < 0) {
      continue;
    }
    heatBytes[edge] = isCounted ? heatByte(executions[edge], most) : Math.round(255 * UNCOUNTED_HEAT);
    bucket[edge] = 255 - Math.round(heat * 255);
    sizes[bucket[edge] + 1]++;
    const at = 4 * edge;
    const end = 4 * target[edge];
    if (!colorOf && (mode === "recency" || mode === "degree" || mode === "thread")) {
      colors[at] = nodeColors[end];
      colors[at + 1] = nodeColors[end + 1];
      colors[at + 2] = nodeColors[end + 2];
    } else {
      const color = colorOf?.(edge) ?? edgeColor(mode, areLinks, label[edge], heat, isCounted);
      colors[at] = Math.round(color[0] * 255);
      colors[at + 1] = Math.round(color[1] * 255);
      colors[at + 2] = Math.round(color[2] * 255);
    }
    const faintest = Math.min(nodeColors[4 * source[edge] + 3], nodeColors[end + 3]) / 255;
    const isQuiet =
      mode === "conditionals" && !areLinks && label[edge] !== EDGE_KIND.taken && label[edge] !== EDGE_KIND.not_taken;
    const weight = mode === "heat" ? 0.32 + 0.68 * heat ** 1.8 : 0.24 + 0.76 * heat ** 1.8;
    colors[at + 3] = Math.max(Math.round(255 * weight * faintest * (isQuiet ? 0.7 : 1)), 1);
  }
  for (let i = 1; i < sizes.length; i++) {
    sizes[i] += sizes[i - 1];
  }
  const ranking = new Uint32Array(sizes[sizes.length - 1]);
  for (let edge = 0; edge < source.length; edge++) {
    if (bucket[edge] >= 0) {
      ranking[sizes[bucket[edge]]++] = edge;
    }
  }
  return { colors, heat: heatBytes, ranking };
}

function edgeColor(mode: ColorMode, areLinks: boolean, label: number, heat: number, isCounted: boolean): Rgb {
  if (mode === "heat") {
    return isCounted ? heatColor(heat) : QUIET;
  }
  if (mode === "conditionals") {
    const isTaken = !areLinks && label === EDGE_KIND.taken;
    return isTaken
      ? OUTCOME_COLORS.taken
      : !areLinks && label === EDGE_KIND.not_taken
        ? OUTCOME_COLORS.notTaken
        : QUIET;
  }
  return areLinks ? (label === 1 ? CALL : FLOW) : (KIND_COLORS[label] ?? QUIET);
}
