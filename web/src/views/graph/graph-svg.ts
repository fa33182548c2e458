// The graph as it is seen, as SVG: nodes and edges with titles, labels, the legend. Names are text in it.
import { type Rgb, toHex } from "../../base/color.ts";
import { projectionMatrix } from "../../base/projection.ts";
import { element, escapeXml, type Shape, shapesToSvg } from "../../base/shapes.ts";
import { refuseTooMany, svgDocument } from "../../model/export/shown-picture.ts";
import { listEdges } from "../../model/graph/detail.ts";
import { edgeWidening } from "../../model/graph/count-effect.ts";
import type { DrawnCounts } from "../../model/graph/folding.ts";
import { edgePath, loopPath } from "./edge-path.ts";
import { edgeStrength, sampleEdges } from "./edge-strength.ts";
import { MOST_EDGES } from "./frame-pace.ts";
import type { LabelColors, ShownLabel } from "./labels-layer.ts";
import { findMarkedEdges, functionOfSelection } from "./marked-edges.ts";
import { factsOf, type NodeFacts } from "./node-facts.ts";
import type { GraphPicture } from "./picture.ts";

/** Longer edges are fainter. */
const SHORT_PX = 70;

/** What the SVG has besides nodes and edges. */
export interface GraphSurroundings {
  ground: string;
  colors: LabelColors;
  labels: readonly ShownLabel[];
  legend: readonly Shape[];
  /** How strong edges are drawn, 0 to 2. */
  edgeOpacity: number;
  /** The size of labels' letters. */
  labelSize: number;
  /** How often a node was executed, in words. */
  describe: (facts: NodeFacts) => string;
}

/** A document; throws an Error that says why where there is no picture yet, or it would have too many elements. */
export function graphSvg(picture: GraphPicture, counts: DrawnCounts, around: GraphSurroundings): string {
  const { placed, colors, eye, frame, isOpen, look } = picture;
  if (!placed || !colors) {
    throw new Error("the graph is still being laid out");
  }
  const { graph, places, result } = placed;
  const project = picture.projector();
  const nodes: { node: number; x: number; y: number; depth: number }[] = [];
  for (const node of picture.nodes) {
    const [x, y, depth] = project(node);
    if (depth > 0 && x >= 0 && y >= 0 && x <= frame.width && y <= frame.height && alphaOf(picture, node) > 0) {
      nodes.push({ node, x, y, depth });
    }
  }
  nodes.sort((a, b) => b.depth - a.depth || a.node - b.node);
  const list = listEdges(graph, places.nBlocks, isOpen, colors.edges, colors.links, MOST_EDGES);
  refuseTooMany(nodes.length + list.count, "nodes and edges");
  const titles = new Map<number, string>();
  const titleOf = (node: number) => {
    let title = titles.get(node);
    if (title === undefined) {
      const facts = factsOf(graph, places.nBlocks, counts, node);
      title = `${facts.symbol}\n${facts.address} in ${facts.image}, ${around.describe(facts)}`;
      titles.set(node, title);
    }
    return title;
  };
  const matrix = projectionMatrix(eye, frame, 1);
  const { positions } = places;
  const strength = around.edgeOpacity * edgeStrength(sampleEdges(list.ends), positions, eye, frame);
  const widthOf = (heat: number) => edgeWidening(heat / 255, look.countEffect);
  const edgeElement = (source: number, target: number, color: string, opacity: number, kind: string, width: number) => {
    const found =
      source === target
        ? loopPath(project(source), picture.diameter(source, project(source)[2]))
        : edgePath(matrix, frame, positions, source, target, result.cylinderRadius);
    if (!found) {
      return "";
    }
    const shorter = kind === "edge" ? Math.min((SHORT_PX / Math.max(found.span, 1)) ** 0.6, 1) : 1;
    const title = `${titleOf(source).split("\n")[0]} → ${titleOf(target).split("\n")[0]}`;
    return element(
      "path",
      { class: kind, d: found.path, stroke: color, "stroke-opacity": opacity * shorter, "stroke-width": width },
      element("title", {}, escapeXml(title)),
    );
  };
  const lines: string[] = [];
  // The busiest, which come first, are in front.
  for (let edge = list.count - 1; edge >= 0; edge--) {
    const at = 4 * edge;
    const opacity = Math.min((list.colors[at + 3] / 255) * strength, 1);
    const [source, target] = [list.ends[2 * edge], list.ends[2 * edge + 1]];
    lines.push(edgeElement(source, target, hexAt(list.colors, at), opacity, "edge", widthOf(list.heat[edge])));
  }
  const whole = picture.selected?.kind === "function" ? functionOfSelection(placed, picture.selected) : -1;
  const marked = findMarkedEdges(placed, isOpen, picture.selectedNode, -1, whole, colors);
  for (let edge = 0; edge < marked.ends.length / 2; edge++) {
    const [source, target] = [marked.ends[2 * edge], marked.ends[2 * edge + 1]];
    const width = 1.6 * widthOf(marked.heats[edge]);
    lines.push(edgeElement(source, target, hexAt(marked.colors, 4 * edge), 0.9, "edge marked", width));
  }
  const dots = nodes.map(({ node, x, y, depth }) => {
    const alpha = alphaOf(picture, node);
    const { bytes, at } = colorOf(picture, node);
    return element(
      "circle",
      {
        class: "node",
        cx: x,
        cy: y,
        r: picture.diameter(node, depth) / 2,
        fill: hexAt(bytes, at),
        "fill-opacity": look.nodeOpacity * (alpha < 77 ? 0.6 : alpha < 128 ? 0.5 : 1),
      },
      element("title", {}, escapeXml(titleOf(node))),
    );
  });
  const selected = nodes.find(({ node }) => node === picture.selectedNode);
  const ring = selected
    ? [
        element("circle", {
          class: "ring",
          cx: selected.x,
          cy: selected.y,
          r: picture.diameter(selected.node, selected.depth) / 2 + 3,
          fill: "none",
          stroke: around.colors.accent,
          "stroke-width": 2,
        }),
      ]
    : [];
  return svgDocument(frame.width, frame.height, around.ground, [
    `<g id="edges" fill="none">\n${lines.filter((line) => line !== "").join("\n")}\n</g>`,
    `<g id="nodes">\n${dots.join("\n")}\n</g>`,
    ...ring,
    `<g id="labels">\n${shapesToSvg(around.labels.flatMap(labelShapes(around.colors, around.labelSize)), "label")}\n</g>`,
    `<g id="legend">\n${shapesToSvg(around.legend, "legend")}\n</g>`,
  ]);
}

function labelShapes(colors: LabelColors, size: number): (label: ShownLabel) => Shape[] {
  const font = { family: "monospace", size } as const;
  return ({ text, left, top, width, height, isMarked, end, leader }) => {
    const stroke = end ? toHex(end) : isMarked ? colors.accent : colors.line;
    return [
      ...(leader ? [{ kind: "line", ...leader, stroke, width: 1 } as const] : []),
      { kind: "box", x: left, y: top, width, height, radius: 3, fill: colors.panel, stroke },
      { kind: "text", x: left + 6, y: top + height / 2, text, fill: colors.text, font, anchor: "start" },
    ];
  };
}

function colorOf(picture: GraphPicture, node: number): { bytes: Uint8Array; at: number } {
  const { blocks, functions } = picture.colors!;
  const nBlocks = blocks.length / 4;
  return node < nBlocks ? { bytes: blocks, at: 4 * node } : { bytes: functions, at: 4 * (node - nBlocks) };
}

function alphaOf(picture: GraphPicture, node: number): number {
  const { bytes, at } = colorOf(picture, node);
  return bytes[at + 3];
}

function hexAt(bytes: Uint8Array, at: number): string {
  return toHex([bytes[at] / 255, bytes[at + 1] / 255, bytes[at + 2] / 255] satisfies Rgb);
}
