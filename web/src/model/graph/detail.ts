// Level of detail: which functions are drawn as one node and which by their blocks, and what nodes and edges that makes.
// Pure. Nodes are numbered: drawn blocks first, then drawn functions.
import { type Eye, type Frame, pixelsPerUnit, projectionMatrix } from "../../base/projection.ts";
import { EDGE_KIND } from "../../protocol/generated.ts";
import type { LayoutResult } from "../layout/layout.ts";
import type { EdgeColors } from "./edge-colors.ts";
import type { DrawnGraph } from "./folding.ts";

/** Blocks nearer to each other than so many pixels are drawn as their function. */
export const LEAST_SPACING_PX = 2;

/** Positions of all nodes, x, y, z one after the other; and how far apart the blocks of each function are. */
export interface NodePlaces {
  nBlocks: number;
  positions: Float32Array;
  radii: Float32Array;
  spacing: Float32Array;
}

export function nodePlaces(graph: DrawnGraph, result: LayoutResult): NodePlaces {
  const nBlocks = result.blocks.length / 3;
  const positions = new Float32Array(3 * (nBlocks + graph.nFunctions));
  positions.set(result.blocks);
  positions.set(result.functions, result.blocks.length);
  const spacing = new Float32Array(graph.nFunctions);
  for (let of = 0; nBlocks > 0 && of < graph.nFunctions; of++) {
    const [first, last] = [graph.firstBlock[of], graph.firstBlock[of + 1]];
    if (last - first === 1) {
      spacing[of] = Infinity;
      continue;
    }
    let sum = 0;
    for (let block = first; block + 1 < last; block++) {
      const at = 3 * block;
      sum += Math.hypot(
        positions[at + 3] - positions[at],
        positions[at + 4] - positions[at + 1],
        positions[at + 5] - positions[at + 2],
      );
    }
    spacing[of] = sum / Math.max(last - first - 1, 1);
  }
  return { nBlocks, positions, radii: result.radii, spacing };
}

/**
 * Sets in `isOpen` which functions are drawn by their blocks, and returns whether that is others than before. `always` is
 * one that is open at any distance, or -1. What is open closes a little later than it opened, so that nothing flickers.
 */
export function openFunctions(places: NodePlaces, eye: Eye, frame: Frame, always: number, isOpen: Uint8Array): boolean {
  if (places.nBlocks === 0) {
    return false;
  }
  const { positions, spacing, nBlocks } = places;
  const matrix = projectionMatrix(eye, frame, 1);
  const pixels = pixelsPerUnit(frame);
  let isChanged = false;
  for (let of = 0; of < isOpen.length; of++) {
    const at = 3 * (nBlocks + of);
    const depth =
      matrix[3] * positions[at] + matrix[7] * positions[at + 1] + matrix[11] * positions[at + 2] + matrix[15];
    const least = isOpen[of] ? LEAST_SPACING_PX * 0.85 : LEAST_SPACING_PX;
    const open = of === always || (spacing[of] * pixels) / Math.max(depth, 1e-9) >= least ? 1 : 0;
    if (open !== isOpen[of]) {
      isOpen[of] = open;
      isChanged = true;
    }
  }
  return isChanged;
}

/** The nodes that are drawn: blocks of open functions, and the functions that are not. */
export function listNodes(
  graph: DrawnGraph,
  nBlocks: number,
  isOpen: Uint8Array,
  leftOut: { blocks: Uint8Array; functions: Uint8Array } | null = null,
): Uint32Array {
  let count = 0;
  for (let of = 0; of < graph.nFunctions; of++) {
    count += isOpen[of] ? graph.firstBlock[of + 1] - graph.firstBlock[of] : 1;
  }
  const nodes = new Uint32Array(count);
  let at = 0;
  for (let of = 0; of < graph.nFunctions; of++) {
    if (isOpen[of]) {
      for (let block = graph.firstBlock[of]; block < graph.firstBlock[of + 1]; block++) {
        nodes[at++] = block;
      }
    } else {
      nodes[at++] = nBlocks + of;
    }
  }
  if (leftOut) {
    return nodes.filter((node) => !(node < nBlocks ? leftOut.blocks[node] : leftOut.functions[node - nBlocks]));
  }
  return nodes;
}

/** Edges to draw: the nodes at their two ends one after the other, four bytes of colour each, and `heat` as EdgeColors has it. */
export interface EdgeList {
  count: number;
  ends: Uint32Array;
  colors: Uint8Array;
  heat: Uint8Array;
}

/** The busiest edges, `most` of them at most: between blocks where one of both functions is open, else between functions. */
export function listEdges(
  graph: DrawnGraph,
  nBlocks: number,
  isOpen: Uint8Array,
  edges: EdgeColors,
  links: EdgeColors,
  most: number,
): EdgeList {
  const room = Math.min(most, edges.ranking.length + links.ranking.length);
  const ends = new Uint32Array(2 * room);
  const colors = new Uint32Array(room);
  const heat = new Uint8Array(room);
  const edgeColors = wordsOf(edges.colors);
  const linkColors = wordsOf(links.colors);
  let count = 0;
  // Links are few beside edges; they may take half of the room, so that neither is pushed out.
  const forLinks = edges.ranking.length > 0 && isOpen.includes(1) ? Math.ceil(room / 2) : room;
  for (let i = 0; i < links.ranking.length && count < forLinks; i++) {
    const link = links.ranking[i];
    const [source, target] = [graph.links.source[link], graph.links.target[link]];
    if (!isOpen[source] && !isOpen[target]) {
      ends[2 * count] = nBlocks + source;
      ends[2 * count + 1] = nBlocks + target;
      heat[count] = links.heat[link];
      colors[count++] = linkColors[link];
    }
  }
  for (let i = 0; i < edges.ranking.length && count < room; i++) {
    const edge = edges.ranking[i];
    const [source, target] = [graph.edges.source[edge], graph.edges.target[edge]];
    const [from, to] = [graph.functionOfBlock[source], graph.functionOfBlock[target]];
    if (isOpen[from] || isOpen[to]) {
      ends[2 * count] = isOpen[from] ? source : nBlocks + from;
      ends[2 * count + 1] = isOpen[to] ? target : nBlocks + to;
      heat[count] = edges.heat[edge];
      colors[count++] = edgeColors[edge];
    }
  }
  return {
    count,
    ends: ends.subarray(0, 2 * count),
    colors: new Uint8Array(colors.buffer, 0, 4 * count),
    heat: heat.subarray(0, count),
  };
}

function wordsOf(colors: Uint8Array): Uint32Array {
  return new Uint32Array(colors.buffer, colors.byteOffset, colors.byteLength / 4);
}

/**
 * Edges that lead away and edges that lead to something, by their ends as they are drawn. `outOf` and `inOf` have the index of
 * each among the graph's links (`areLinks`) or edges. One that leads back to where it begins is among those that lead away.
 */
export interface EdgesAt {
  out: Uint32Array;
  in: Uint32Array;
  outOf: Uint32Array;
  inOf: Uint32Array;
  areLinks: boolean;
}

/** The edges at a node as it is drawn. */
export function edgesAt(graph: DrawnGraph, nBlocks: number, isOpen: Uint8Array, node: number): EdgesAt {
  const found = new FoundEdges(node >= nBlocks);
  if (found.areLinks) {
    const { source, target } = graph.links;
    const of = node - nBlocks;
    // The other end of a link may be open: then its function's first block stands for it.
    const nodeOf = (other: number) => (isOpen[other] ? graph.firstBlock[other] : nBlocks + other);
    for (let link = 0; link < source.length; link++) {
      if (source[link] === of) {
        found.addOut(link, node, target[link] === of ? node : nodeOf(target[link]));
      } else if (target[link] === of) {
        found.addIn(link, nodeOf(source[link]), node);
      }
    }
  } else {
    const { source, target } = graph.edges;
    const nodeOf = (block: number) => {
      const of = graph.functionOfBlock[block];
      return isOpen[of] ? block : nBlocks + of;
    };
    for (let edge = 0; edge < source.length; edge++) {
      if (source[edge] === node && target[edge] >= 0) {
        found.addOut(edge, node, target[edge] === node ? node : nodeOf(target[edge]));
      } else if (target[edge] === node && source[edge] >= 0) {
        found.addIn(edge, nodeOf(source[edge]), node);
      }
    }
  }
  return found.done();
}

/** Those of the edges that were taken: `heat` is that of edges or of links, as `areLinks` says. */
export function takenOf(found: EdgesAt, heat: Uint8Array): EdgesAt {
  const taken = (ends: Uint32Array, indices: Uint32Array) => ({
    ends: ends.filter((_, i) => heat[indices[i >> 1]] > 0),
    indices: indices.filter((index) => heat[index] > 0),
  });
  const [out, into] = [taken(found.out, found.outOf), taken(found.in, found.inOf)];
  return { out: out.ends, outOf: out.indices, in: into.ends, inOf: into.indices, areLinks: found.areLinks };
}

/** The same of a function that is drawn by its blocks: whom it leads to, and who leads to it; without returns. */
export function edgesAtFunction(graph: DrawnGraph, nBlocks: number, isOpen: Uint8Array, of: number): EdgesAt {
  const { source, target, label } = graph.edges;
  const found = new FoundEdges(false);
  const [first, end] = [graph.firstBlock[of], graph.firstBlock[of + 1]];
  const isOwn = (block: number) => block >= first && block < end;
  const nodeOf = (block: number) => {
    const other = graph.functionOfBlock[block];
    return isOpen[other] ? block : nBlocks + other;
  };
  for (let edge = 0; edge < source.length; edge++) {
    const [a, b] = [source[edge], target[edge]];
    if (a >= 0 && b >= 0 && label[edge] !== EDGE_KIND.return && isOwn(a) !== isOwn(b)) {
      if (isOwn(a)) {
        found.addOut(edge, nodeOf(a), nodeOf(b));
      } else {
        found.addIn(edge, nodeOf(a), nodeOf(b));
      }
    }
  }
  return found.done();
}

class FoundEdges {
  private readonly out: number[] = [];
  private readonly into: number[] = [];
  private readonly outOf: number[] = [];
  private readonly inOf: number[] = [];

  constructor(readonly areLinks: boolean) {}

  addOut(index: number, source: number, target: number): void {
    this.out.push(source, target);
    this.outOf.push(index);
  }

  addIn(index: number, source: number, target: number): void {
    this.into.push(source, target);
    this.inOf.push(index);
  }

  done(): EdgesAt {
    return {
      out: Uint32Array.from(this.out),
      in: Uint32Array.from(this.into),
      outOf: Uint32Array.from(this.outOf),
      inOf: Uint32Array.from(this.inOf),
      areLinks: this.areLinks,
    };
  }
}

/** The drawn node of a selection: a block, or the function that it is drawn as; -1 if it is not in the picture. */
export function nodeOfSelection(
  graph: DrawnGraph,
  nBlocks: number,
  isOpen: Uint8Array,
  selection: { kind: "function" | "block"; index: number } | null,
): number {
  if (!selection) {
    return -1;
  }
  if (selection.kind === "block" && nBlocks > 0) {
    const drawn = graph.drawnBlock[selection.index] ?? -1;
    const of = drawn >= 0 ? graph.functionOfBlock[drawn] : -1;
    return of < 0 ? -1 : isOpen[of] ? drawn : nBlocks + of;
  }
  const of = selection.kind === "function" ? (graph.drawnFunction[selection.index] ?? -1) : -1;
  return of < 0 ? -1 : isOpen[of] ? entryNode(graph, of) : nBlocks + of;
}

/** The drawn block at which a drawn function is entered. */
function entryNode(graph: DrawnGraph, of: number): number {
  const entry = graph.drawnBlock[graph.functions.entryBlock[graph.functionOf[of]]] ?? -1;
  return entry >= 0 ? entry : graph.firstBlock[of];
}
