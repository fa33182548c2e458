// Draws a function's picture: edges under boxes, text only where it can be read, and nothing that is not in the view.
import { heatColor, heatOf, type Rgb, textOn, toHex } from "../../base/color.ts";
import { formatShare } from "../../base/format.ts";
import { METRICS } from "../../model/flow/flow-boxes.ts";
import type { LaidOutFlow } from "../../model/flow/flow-of-function.ts";
import type { FlowCamera, Size } from "./flow-camera.ts";
import { EDGE_DASHES, type FlowTheme } from "./flow-theme.tsx";

/** What stands out: indices of boxes and of an edge, -1 for none. */
export interface Marks {
  selected: number;
  recent: number;
  hoveredEdge: number;
}

export const NO_MARKS: Marks = { selected: -1, recent: -1, hoveredEdge: -1 };

/** Below this zoom boxes are patches of their heat, without text. */
const TEXT_FROM = 0.38;
const LABELS_FROM = 0.55;
const CORNER = 5;
const QUIET_EDGES = 0.5;

/** The colour of a box: its heat, or its own; null where it was not executed. */
export function heatOfBox(flow: LaidOutFlow, index: number): Rgb | null {
  if (flow.colorOf) {
    return flow.colorOf(index);
  }
  const heat = heatOf(flow.model.boxes[index].block.executions, flow.model.mostExecuted);
  return heat < 0 ? null : heatColor(heat);
}

export function paintFlow(
  context: CanvasRenderingContext2D,
  flow: LaidOutFlow,
  camera: FlowCamera,
  view: Size,
  ratio: number,
  theme: FlowTheme,
  marks: Marks,
): void {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = theme.ground;
  context.fillRect(0, 0, view.width, view.height);
  const scale = camera.scale * ratio;
  context.setTransform(scale, 0, 0, scale, -camera.x * scale, -camera.y * scale);
  const { x, y } = flow.layout;
  const { widths, heights } = flow.model.input;
  const [right, bottom] = [camera.x + view.width / camera.scale, camera.y + view.height / camera.scale];
  const edges = flow.model.edges.map((_, edge) => edge);
  // What stands out lies on top, and of the rest what was taken more.
  const rank = (edge: number) => (standsOut(flow, edge, marks) ? Infinity : flow.model.edges[edge].executions);
  edges.sort((a, b) => rank(a) - rank(b) || a - b);
  for (const edge of edges) {
    paintEdge(context, flow, edge, camera, [right, bottom], theme, marks);
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
  for (let box = 0; box < x.length; box++) {
    if (x[box] < right && y[box] < bottom && x[box] + widths[box] > camera.x && y[box] + heights[box] > camera.y) {
      paintBox(context, flow, box, camera.scale, theme);
    }
  }
  ring(context, flow, marks.recent, theme.recent, 5, camera.scale);
  ring(context, flow, marks.selected, theme.accent, 2, camera.scale);
  if (camera.scale >= LABELS_FROM) {
    paintFans(context, flow, theme);
  }
}

function standsOut(flow: LaidOutFlow, edge: number, marks: Marks): boolean {
  const { source, target } = flow.model.edges[edge];
  return (
    edge === marks.hoveredEdge || (marks.selected >= 0 && (source === marks.selected || target === marks.selected))
  );
}

function paintEdge(
  context: CanvasRenderingContext2D,
  flow: LaidOutFlow,
  edge: number,
  camera: FlowCamera,
  [right, bottom]: [number, number],
  theme: FlowTheme,
  marks: Marks,
): void {
  const { first, points } = flow.layout;
  const corners = points.subarray(2 * first[edge], 2 * first[edge + 1]);
  let [left, top, rightmost, lowest] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < corners.length; i += 2) {
    left = Math.min(left, corners[i]);
    rightmost = Math.max(rightmost, corners[i]);
    top = Math.min(top, corners[i + 1]);
    lowest = Math.max(lowest, corners[i + 1]);
  }
  if (left > right || top > bottom || rightmost < camera.x || lowest < camera.y) {
    return;
  }
  const { style, executions, share } = flow.model.edges[edge];
  const isSeen = standsOut(flow, edge, marks);
  const heat = flow.model.isCounted ? Math.max(heatOf(executions, flow.model.mostTaken), 0) : 0;
  const width = Math.max(1 + 2.2 * heat + (isSeen ? 1 : 0), 0.8 / camera.scale);
  const endX = corners[corners.length - 2];
  const endY = corners[corners.length - 1];
  const arrow = Math.max(4 + width, 3 / camera.scale);
  context.globalAlpha = marks.selected >= 0 && !isSeen ? QUIET_EDGES : executions > 0 ? 0.9 : 0.5;
  context.strokeStyle = context.fillStyle = theme.edges[style];
  context.lineWidth = width;
  context.setLineDash(camera.scale >= 0.25 ? [...EDGE_DASHES[style]] : []);
  context.beginPath();
  context.moveTo(corners[0], corners[1]);
  for (let i = 2; i + 2 < corners.length; i += 2) {
    const space = Math.min(
      Math.hypot(corners[i] - corners[i - 2], corners[i + 1] - corners[i - 1]),
      Math.hypot(corners[i + 2] - corners[i], corners[i + 3] - corners[i + 1]),
    );
    context.arcTo(corners[i], corners[i + 1], corners[i + 2], corners[i + 3], Math.min(CORNER, space / 2));
  }
  context.lineTo(endX, endY - arrow);
  context.stroke();
  context.beginPath();
  context.moveTo(endX, endY);
  context.lineTo(endX - arrow * 0.7, endY - arrow * 1.4);
  context.lineTo(endX + arrow * 0.7, endY - arrow * 1.4);
  context.fill();
  if (style < 2 && camera.scale >= LABELS_FROM && flow.model.isCounted) {
    const box = flow.model.edges[edge].source;
    const isLeft = corners[0] < flow.layout.x[box] + flow.model.input.widths[box] / 2 || isLeftmost(flow, edge);
    context.font = `9.5px ${theme.font}`;
    context.textAlign = isLeft ? "right" : "left";
    context.fillText(formatShare(share, 1), corners[0] + (isLeft ? -4 : 4), corners[1] + 11);
    context.textAlign = "left";
  }
}

/** Beside lines that lead to many boxes, how many those are. */
function paintFans(context: CanvasRenderingContext2D, flow: LaidOutFlow, theme: FlowTheme): void {
  const { first, points } = flow.layout;
  context.font = `600 10.5px ${theme.font}`;
  for (const { edge, targets } of flow.model.fans) {
    const text = `to ${targets} targets`;
    const [left, top] = [points[2 * first[edge]] + 5, points[2 * first[edge] + 1] + 3];
    // The lines of the edge may turn right below their box.
    context.fillStyle = theme.ground;
    context.fillRect(left, top, context.measureText(text).width + 4, 10);
    context.fillStyle = theme.edges[flow.model.edges[edge].style];
    context.fillText(text, left + 2, top + 8.5);
  }
}

/** Whether the edge leaves its box left of the other way that a conditional branch goes. */
function isLeftmost(flow: LaidOutFlow, edge: number): boolean {
  const { first, points } = flow.layout;
  const { source } = flow.model.edges[edge];
  return flow.model.edges.some(
    (other, index) => other.source === source && index !== edge && points[2 * first[index]] > points[2 * first[edge]],
  );
}

function paintBox(
  context: CanvasRenderingContext2D,
  flow: LaidOutFlow,
  index: number,
  scale: number,
  theme: FlowTheme,
): void {
  const { x, y } = flow.layout;
  const { widths, heights } = flow.model.input;
  const box = flow.model.boxes[index];
  const heat = heatOfBox(flow, index);
  const [left, top, width, height] = [x[index], y[index], widths[index], heights[index]];
  context.beginPath();
  context.roundRect(left, top, width, height, 4);
  context.fillStyle = scale < TEXT_FROM && heat ? toHex(heat) : theme.panel;
  context.fill();
  if (scale < TEXT_FROM) {
    context.strokeStyle = theme.line;
    context.lineWidth = 1 / scale;
    context.stroke();
    return;
  }
  if (heat) {
    context.globalAlpha = 0.09;
    context.fillStyle = toHex(heat);
    context.fill();
    context.globalAlpha = 1;
  }
  context.save();
  context.clip();
  context.fillStyle = heat ? toHex(heat) : theme.line;
  context.fillRect(left, top, width, METRICS.headHeight);
  context.textBaseline = "middle";
  context.font = `600 11.5px ${theme.font}`;
  context.fillStyle = heat ? textOn(heat) : theme.text;
  context.fillText(box.head, left + METRICS.padding, top + METRICS.headHeight / 2 + 1);
  context.font = `11.5px ${theme.font}`;
  const column = context.measureText("0").width;
  let middle = top + METRICS.headHeight + METRICS.padding / 2 + METRICS.lineHeight / 2;
  for (const line of box.lines) {
    let at = left + METRICS.padding;
    for (const token of line.tokens) {
      context.fillStyle = theme.tokens[token.kind];
      context.fillText(token.text, at, middle);
      at += token.text.length * column;
    }
    if (line.source) {
      context.fillStyle = theme.quiet;
      context.textAlign = "right";
      context.fillText(line.source, left + width - METRICS.padding, middle);
      context.textAlign = "left";
    }
    middle += METRICS.lineHeight;
  }
  if (box.more > 0) {
    context.fillStyle = theme.quiet;
    context.fillText(`… ${box.more} more`, left + METRICS.padding, middle);
  }
  context.restore();
  context.textBaseline = "alphabetic";
  context.beginPath();
  context.roundRect(left, top, width, height, 4);
  context.strokeStyle = theme.quiet;
  context.lineWidth = 0.8;
  context.stroke();
}

function ring(
  context: CanvasRenderingContext2D,
  flow: LaidOutFlow,
  index: number,
  color: string,
  distance: number,
  scale: number,
): void {
  if (index < 0) {
    return;
  }
  const { x, y } = flow.layout;
  const { widths, heights } = flow.model.input;
  context.strokeStyle = color;
  context.lineWidth = Math.max(2.5, 2 / scale);
  context.beginPath();
  context.roundRect(
    x[index] - distance,
    y[index] - distance,
    widths[index] + 2 * distance,
    heights[index] + 2 * distance,
    4 + distance,
  );
  context.stroke();
}
