// The legend as shapes, for pictures that are taken out of the page. Pure.
import { type Rgb, toHex } from "../../base/color.ts";
import { formatInteger } from "../../base/format.ts";
import type { Font, Shape } from "../../base/shapes.ts";
import type { Legend } from "../../model/graph/paint.ts";
import type { LabelColors } from "./labels-layer.ts";

const WIDTH = 210;
const PADDING = 10;
const LINE = 17;
const RAMP_HEIGHT = 10;
const MOST_LETTERS = 30;
const TITLE: Font = { family: "sans-serif", size: 11.5, isBold: true };
const TEXT: Font = { family: "sans-serif", size: 11 };

/** The legend with its lower left corner at a point. `lines` are what colours of edges mean. */
export function legendShapes(
  legend: Legend,
  lines: readonly { color: Rgb | string; label: string }[],
  colors: LabelColors,
  left: number,
  bottom: number,
): Shape[] {
  const rampHeight = legend.ramp ? RAMP_HEIGHT + LINE + 4 : 0;
  const height = 2 * PADDING + LINE * (1 + legend.swatches.length + lines.length) + rampHeight;
  const top = bottom - height;
  const x = left + PADDING;
  const inner = WIDTH - 2 * PADDING;
  const shapes: Shape[] = [
    { kind: "box", x: left, y: top, width: WIDTH, height, radius: 4, fill: colors.panel, stroke: colors.line },
  ];
  let y = top + PADDING + LINE / 2;
  const write = (text: string, at: number, fill: string, anchor: "start" | "middle" | "end", font = TEXT) =>
    shapes.push({ kind: "text", x: at, y, text, fill, font, anchor });
  write(legend.title, x, colors.text, "start", TITLE);
  y += LINE;
  if (legend.ramp) {
    const { colors: stops, ticks } = legend.ramp;
    shapes.push({ kind: "ramp", x, y: y - 6, width: inner, height: RAMP_HEIGHT, colors: stops.map(toHex) });
    y += RAMP_HEIGHT + 4;
    for (const { at, label } of ticks) {
      write(label, x + at * inner, colors.text, at === 0 ? "start" : at === 1 ? "end" : "middle");
    }
    y += LINE;
  }
  for (const { color, label, count } of legend.swatches) {
    shapes.push({ kind: "box", x, y: y - 5, width: 10, height: 10, radius: 2, fill: toHex(color) });
    write(cut(label), x + 16, colors.text, "start");
    write(formatInteger(count), x + inner, colors.quiet, "end");
    y += LINE;
  }
  for (const { color, label } of lines) {
    shapes.push({
      kind: "line",
      x,
      y,
      toX: x + 12,
      toY: y,
      stroke: typeof color === "string" ? color : toHex(color),
      width: 2.5,
    });
    write(cut(label), x + 16, colors.text, "start");
    y += LINE;
  }
  return shapes;
}

function cut(text: string): string {
  const letters = [...text];
  return letters.length > MOST_LETTERS ? `${letters.slice(0, MOST_LETTERS - 1).join("")}…` : text;
}
