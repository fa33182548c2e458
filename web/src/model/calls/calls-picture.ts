// The view of calls as a picture to take out of the page: the chart over time with its legend, and below it who did what
// with what, where that is looked at. Pure.
import type { CallChart } from "../../api/calls.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import type { Font, Shape } from "../../base/shapes.ts";
import { binsOf, binStart, stackBars } from "./stacked-bars.ts";
import { TOUCH_PLACES, type TouchGraph, type TouchLine, touchPath } from "./touch-graph.ts";

const MARGIN = 10;
const LINE = 18;
const SWATCH = 10;
const GAP = 12;
const TEXT: Font = { family: "sans-serif", size: 12 };
const SMALL: Font = { family: "sans-serif", size: 11 };
/** Lines are seen through where they cross, but not that of what is chosen. */
const LINE_OPACITY = 0.6;

/** What the view shows. */
export interface SeenCalls {
  chart: CallChart | null;
  /** What the chart tells apart. */
  by: string;
  /** The stretch of time that is chosen. */
  range: readonly [number, number] | null;
  touches: TouchGraph | null;
  /** The entity that is chosen. */
  entity: number | null;
}

/** Colours, as the theme has them. */
export interface CallsTheme {
  ground: string;
  panel: string;
  line: string;
  text: string;
  quiet: string;
  accent: string;
  picked: string;
  straight: string;
}

export interface CallsPicture {
  width: number;
  height: number;
  shapes: Shape[];
}

/**
 * The picture of what is seen, the bars as wide and high as they are seen. `measure` says how wide a text is in letters of
 * 12 pixels.
 */
export function drawCalls(
  seen: SeenCalls,
  bars: { width: number; height: number },
  theme: CallsTheme,
  measure: (text: string) => number,
): CallsPicture {
  const shapes: Shape[] = [];
  let width = bars.width + 2 * MARGIN;
  let y = MARGIN;
  if (seen.chart) {
    y = drawChart(shapes, seen.chart, seen, { ...bars, top: y }, theme, measure);
  }
  if (seen.touches) {
    width = Math.max(width, TOUCH_PLACES.width + 2 * MARGIN);
    y = drawTouches(shapes, seen.touches, seen.entity, y, theme);
  }
  return { width: Math.ceil(width), height: Math.ceil(y + MARGIN), shapes };
}

/** The chart from `top` on; gives where it ends. */
function drawChart(
  shapes: Shape[],
  chart: CallChart,
  { by, range }: Pick<SeenCalls, "by" | "range">,
  box: { top: number; width: number; height: number },
  theme: CallsTheme,
  measure: (text: string) => number,
): number {
  const { series, highest } = stackBars(chart);
  const write = (text: string, x: number, y: number, font = TEXT, anchor: "start" | "middle" | "end" = "start") =>
    shapes.push({ kind: "text", x, y, text, fill: font === TEXT ? theme.text : theme.quiet, font, anchor });
  const right = MARGIN + box.width;
  const title = `Calls over time by ${by}`;
  let [x, y] = [MARGIN, box.top + LINE / 2];
  write(title, x, y);
  x += measure(title) + GAP;
  for (const { label, color, calls } of series) {
    const count = formatInteger(calls);
    const wide = SWATCH + 4 + measure(label) + 4 + measure(count);
    if (x + wide > right && x > MARGIN) {
      [x, y] = [MARGIN, y + LINE];
    }
    shapes.push({ kind: "box", x, y: y - SWATCH / 2, width: SWATCH, height: SWATCH, radius: 2, fill: color });
    // By themselves, so that a name that is written from the right to the left does not move the number.
    write(label, x + SWATCH + 4, y);
    write(count, x + wide - measure(count), y);
    x += wide + GAP;
  }
  const top = y + LINE / 2 + 4;
  const ground = { kind: "box", x: MARGIN, y: top, width: box.width, height: box.height, radius: 3 } as const;
  shapes.push({ ...ground, fill: theme.panel, stroke: theme.line });
  const [across, up] = [box.width / chart.bins, box.height / highest];
  if (range) {
    const [first, last] = binsOf(chart, range);
    const marked = { x: MARGIN + first * across, y: top, width: (last - first + 1) * across, height: box.height };
    shapes.push({ kind: "box", ...marked, radius: 0, fill: theme.picked });
  }
  for (const { name, label, color, bars, isOthers } of series) {
    for (const { bin, calls, below } of bars) {
      const times = `${formatDuration(binStart(chart, bin))} to ${formatDuration(binStart(chart, bin + 1))}`;
      shapes.push({
        kind: "box",
        x: MARGIN + bin * across,
        y: top + box.height - (below + calls) * up,
        width: across,
        height: calls * up,
        radius: 0,
        fill: color,
        told: { class: "bar", title: `${isOthers ? label : name}\n${tellCalls(calls)}, ${times}` },
      });
    }
  }
  const axis = top + box.height + LINE / 2;
  write(formatDuration(chart.from), MARGIN, axis, SMALL);
  write(`at most ${formatInteger(highest)} in a bar`, MARGIN + box.width / 2, axis, SMALL, "middle");
  write(formatDuration(chart.to), right, axis, SMALL, "end");
  return axis + LINE / 2;
}

/** Processes and entities from `top` on; gives where they end. */
function drawTouches(
  shapes: Shape[],
  graph: TouchGraph,
  entity: number | null,
  top: number,
  theme: CallsTheme,
): number {
  const { left, right, gap } = TOUCH_PLACES;
  const moved = <T extends { y: number }>(node: T): T => ({ ...node, y: top + node.y });
  const isChosen = ({ to }: TouchLine) => to.id === entity;
  // What is chosen is in front.
  for (const line of [...graph.lines].sort((a, b) => Number(isChosen(a)) - Number(isChosen(b)))) {
    const { from, to, touch, width } = line;
    const roles = touch.roles.map(([role, n]) => `${role} ${formatInteger(n)}`).join(", ");
    shapes.push({
      kind: "curve",
      path: touchPath({ ...line, from: moved(from), to: moved(to) }),
      stroke: isChosen(line) ? theme.accent : theme.straight,
      width,
      opacity: isChosen(line) ? 1 : LINE_OPACITY,
      told: { class: "touch", title: `${from.name} → ${to.name}\n${tellCalls(touch.calls)}: ${roles}` },
    });
  }
  const sides = [
    { nodes: graph.processes, kind: "process", x: left - gap, anchor: "end" },
    { nodes: graph.entities, kind: "entity", x: right + gap, anchor: "start" },
  ] as const;
  for (const { nodes, kind, x, anchor } of sides) {
    for (const node of nodes.map(moved)) {
      const told = { class: kind, title: `${node.name}\n${node.kind}, ${tellCalls(node.calls)}` };
      shapes.push({ kind: "text", x, y: node.y, text: node.label, fill: theme.text, font: TEXT, anchor, told });
    }
  }
  return top + graph.height;
}

function tellCalls(n: number): string {
  return `${formatInteger(n)} ${n === 1 ? "call" : "calls"}`;
}
