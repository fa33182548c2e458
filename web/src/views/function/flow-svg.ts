// A function's whole picture as SVG: boxes with their code, and edges, each with a title. Names are text in it.
import { textOn, toHex } from "../../base/color.ts";
import { formatInteger } from "../../base/format.ts";
import { element, escapeXml, round } from "../../base/shapes.ts";
import { refuseTooMany, svgDocument } from "../../model/export/shown-picture.ts";
import { describeEdge, METRICS } from "../../model/flow/flow-boxes.ts";
import type { LaidOutFlow } from "../../model/flow/flow-of-function.ts";
import { heatOfBox } from "./flow-painter.ts";
import { EDGE_DASHES, type FlowTheme } from "./flow-theme.tsx";

const FONT = { "font-family": "monospace", "font-size": 11.5 };
const MARGIN = 10;

/** A document; throws an Error that says why where it would have too many elements. */
export function flowSvg(flow: LaidOutFlow, theme: FlowTheme): string {
  const { boxes, edges } = flow.model;
  refuseTooMany(
    boxes.length + edges.length + boxes.reduce((sum, box) => sum + box.lines.length, 0),
    "boxes, lines and edges",
  );
  const { width, height } = flow.layout;
  const title = element("title", {}, escapeXml(flow.model.code.name));
  return svgDocument(width + 2 * MARGIN, height + 2 * MARGIN, theme.ground, [
    title,
    `<g transform="translate(${MARGIN} ${MARGIN})">`,
    `<g id="edges">\n${edges.map((_, edge) => edgeElement(flow, edge, theme)).join("\n")}\n</g>`,
    `<g id="nodes">\n${boxes.map((_, box) => boxElement(flow, box, theme)).join("\n")}\n</g>`,
    "</g>",
  ]);
}

function edgeElement(flow: LaidOutFlow, edge: number, theme: FlowTheme): string {
  const { first, points } = flow.layout;
  const { source, target, style } = flow.model.edges[edge];
  const corners = points.subarray(2 * first[edge], 2 * first[edge + 1]);
  let path = "";
  for (let i = 0; i < corners.length; i += 2) {
    path += `${i === 0 ? "M" : "L"}${round(corners[i])} ${round(corners[i + 1])}`;
  }
  const [x, y] = [corners[corners.length - 2], corners[corners.length - 1]];
  const color = theme.edges[style];
  const address = (box: number) => flow.model.boxes[box].block.address;
  const words = describeEdge(flow.model.edges[edge], flow.model.isCounted);
  return element(
    "g",
    { class: "edge" },
    element("title", {}, escapeXml(`${address(source)} → ${address(target)}\n${words}`)) +
      element("path", {
        d: path,
        fill: "none",
        stroke: color,
        "stroke-width": 1.4,
        "stroke-dasharray": EDGE_DASHES[style].join(" ") || undefined,
      }) +
      element("path", { d: `M${round(x)} ${round(y)}l-4 -8h8z`, fill: color }),
  );
}

function boxElement(flow: LaidOutFlow, index: number, theme: FlowTheme): string {
  const box = flow.model.boxes[index];
  const { widths, heights } = flow.model.input;
  const heat = heatOfBox(flow, index);
  const [x, y, width, height] = [flow.layout.x[index], flow.layout.y[index], widths[index], heights[index]];
  const left = x + METRICS.padding;
  const text = (at: number, fill: string, content: string, more: Record<string, string | number> = {}) =>
    element("text", { x: left, y: at + 4, fill, ...FONT, "xml:space": "preserve", ...more }, content);
  let middle = y + METRICS.headHeight + METRICS.padding / 2 + METRICS.lineHeight / 2;
  const lines: string[] = [];
  for (const line of box.lines) {
    const tokens = line.tokens.map((token) =>
      element("tspan", { fill: theme.tokens[token.kind] }, escapeXml(token.text)),
    );
    lines.push(text(middle, theme.text, tokens.join("")));
    if (line.source) {
      const end = { x: x + width - METRICS.padding, "text-anchor": "end" };
      lines.push(text(middle, theme.quiet, escapeXml(line.source), end));
    }
    middle += METRICS.lineHeight;
  }
  if (box.more > 0) {
    lines.push(text(middle, theme.quiet, `… ${box.more} more`));
  }
  const { block } = box;
  const often = `executed ${formatInteger(block.executions)} times`;
  const how = !block.is_recorded ? "not counted" : flow.model.isCounted ? often : "executed";
  const told = `${block.address}, ${how}, ${block.instructions.length} instructions`;
  return element(
    "g",
    { class: "node" },
    [
      element("title", {}, escapeXml(told)),
      element("rect", { x, y, width, height, rx: 4, fill: theme.panel, stroke: theme.quiet, "stroke-width": 0.8 }),
      element("rect", { x, y, width, height: METRICS.headHeight, rx: 4, fill: heat ? toHex(heat) : theme.line }),
      text(y + METRICS.headHeight / 2, heat ? textOn(heat) : theme.text, escapeXml(box.head), { "font-weight": 600 }),
      ...lines,
    ].join(""),
  );
}
