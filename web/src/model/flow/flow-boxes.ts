// A function's code as boxes and lines of text, before they are laid out: what each box says and how large it is.
import type { CodeBlock, CodeEdge, CodeLines, FunctionCode } from "../../api/code.ts";
import { formatInteger, formatShare, formatShort } from "../../base/format.ts";
import { splitInstruction, type Token } from "../../base/instruction-text.ts";
import type { FlowInput } from "./flow-graph.ts";

/** Edges by how they are drawn. The order is that of the legend. */
export const FLOW_STYLES = ["taken", "not taken", "jump", "fall through", "behind a call"] as const;

const STYLE_OF_KIND: Record<string, number> = {
  taken: 0,
  not_taken: 1,
  jump: 2,
  indirect_jump: 2,
  fall_through: 3,
  syscall: 3,
  return: 4,
  sigreturn: 4,
};

/** Of a block with more instructions the first are shown. */
export const MOST_LINES = 40;
const MOST_COLUMNS = 56;
/** Of a box that jumps to so many others, as tables of jumps do, it is said how many they are. */
const LEAST_FAN = 3;
const JUMP = 2;

export const METRICS = {
  charWidth: 7,
  lineHeight: 15,
  headHeight: 20,
  padding: 8,
} as const;

export interface BoxLine {
  tokens: Token[];
  /** The function that the instruction calls or jumps to, -1 for none. */
  leadsTo: number;
  /** `file:line`, only where it is another than that of the instruction above. */
  source: string;
}

export interface FlowBox {
  block: CodeBlock;
  lines: BoxLine[];
  /** Instructions that are not shown. */
  more: number;
  head: string;
}

export interface FlowEdge {
  source: number;
  target: number;
  style: number;
  kinds: string[];
  executions: number;
  /** Of all that the source executed, this part went this way, 0 to 1. */
  share: number;
}

export interface FlowModel {
  code: FunctionCode;
  /** Whether it was counted how often it ran. */
  isCounted: boolean;
  boxes: FlowBox[];
  /** By index of boxes. */
  edges: FlowEdge[];
  /** Boxes that jump to many others: one of the edges, and how many boxes they lead to. */
  fans: { edge: number; targets: number }[];
  /** Executions of the most executed block and edge. */
  mostExecuted: number;
  mostTaken: number;
  /** Column at which source lines begin, in characters; 0 where none is shown. */
  sourceColumn: Float64Array;
  input: FlowInput;
}

/** Boxes and edges of a function; with source lines if they are given, with numbers if it was counted how often it ran. */
export function makeFlow(code: FunctionCode, lines: CodeLines | null, isCounted: boolean): FlowModel {
  const indexOf = new Map(code.blocks.map((block, index) => [block.block, index]));
  const callees = new Map<number, number>();
  for (const way of code.ways_out) {
    // The most taken comes first.
    if (!callees.has(way.source)) {
      callees.set(way.source, way.function);
    }
  }
  const boxes = code.blocks.map((block) =>
    makeBox(block, callees.get(block.block) ?? -1, wayName(code, block), lines, isCounted),
  );
  const edges = mergeEdges(code.edges, indexOf, code.blocks);
  const sourceColumn = new Float64Array(boxes.length);
  const widths = new Float64Array(boxes.length);
  const heights = new Float64Array(boxes.length);
  boxes.forEach((box, index) => {
    const longest = Math.max(...box.lines.map(({ tokens }) => lengthOf(tokens)), box.more > 0 ? 12 : 0);
    const source = Math.max(...box.lines.map((line) => line.source.length), 0);
    sourceColumn[index] = source > 0 ? longest + 2 : 0;
    const columns = Math.max(longest + (source > 0 ? source + 2 : 0), box.head.length);
    widths[index] = Math.max(Math.ceil(columns * METRICS.charWidth) + 2 * METRICS.padding, 90);
    heights[index] =
      METRICS.headHeight + (box.lines.length + (box.more > 0 ? 1 : 0)) * METRICS.lineHeight + METRICS.padding;
  });
  return {
    code,
    isCounted,
    boxes,
    edges,
    fans: findFans(edges),
    mostExecuted: boxes.reduce((most, box) => Math.max(most, box.block.executions), 0),
    mostTaken: edges.reduce((most, edge) => Math.max(most, edge.executions), 0),
    sourceColumn,
    input: {
      widths,
      heights,
      entry: indexOf.get(code.entry_block) ?? 0,
      source: Int32Array.from(edges, (edge) => edge.source),
      target: Int32Array.from(edges, (edge) => edge.target),
      style: Uint8Array.from(edges, (edge) => edge.style),
    },
  };
}

/** `parser.c:120`, of the pair that the server told. */
export function nameLine(lines: CodeLines, line: readonly [number, number] | null): string {
  if (!line) {
    return "";
  }
  const file = lines.files[line[0]] ?? "?";
  return `${file.slice(file.lastIndexOf("/") + 1)}:${line[1]}`;
}

function wayName(code: FunctionCode, block: CodeBlock): string | null {
  const ways = code.ways_out.filter((way) => way.source === block.block);
  return ways.length === 0 ? null : ways.length === 1 ? ways[0].name : `${ways[0].name} +${ways.length - 1}`;
}

function makeBox(
  block: CodeBlock,
  callee: number,
  calleeName: string | null,
  lines: CodeLines | null,
  isCounted: boolean,
): FlowBox {
  const sources = lines?.lines[String(block.block)];
  let above = "";
  const shown = block.instructions.slice(0, MOST_LINES).map((instruction, index): BoxLine => {
    const isLast = index === block.instructions.length - 1;
    const tokens = shorten(splitInstruction(instruction.text, instruction.target?.name ?? null));
    if (isLast && calleeName !== null && !instruction.target && tokens.length > 1) {
      tokens.push({ kind: "sign", text: "  → " }, { kind: "name", text: cut(calleeName, 40) });
    }
    const named = lines && sources ? nameLine(lines, sources[index] ?? null) : "";
    const source = named !== above ? named : "";
    above = named;
    return { tokens, leadsTo: isLast ? callee : -1, source };
  });
  const version = block.code_version > 0 ? ` v${block.code_version}` : "";
  return {
    block,
    lines: shown,
    more: block.instructions.length - shown.length,
    head: `${block.address}${version}${countInHead(block, isCounted)}`,
  };
}

function countInHead(block: CodeBlock, isCounted: boolean): string {
  return !block.is_recorded ? "  not counted" : isCounted ? `  ×${formatShort(block.executions)}` : "";
}

/** What an edge is, and how often it was taken, if that was counted. */
export function describeEdge({ kinds, executions, share }: FlowEdge, isCounted: boolean): string {
  const words = kinds.join(", ").replaceAll("_", " ");
  return isCounted ? `${words} ×${formatInteger(executions)} (${formatShare(share, 1)})` : words;
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Names can be of any length; a box may not. */
function shorten(tokens: Token[]): Token[] {
  let room = MOST_COLUMNS;
  const kept: Token[] = [];
  for (const token of tokens) {
    if (room <= 0) {
      break;
    }
    kept.push({ kind: token.kind, text: cut(token.text, room) });
    room -= token.text.length;
  }
  return kept;
}

function lengthOf(tokens: Token[]): number {
  return tokens.reduce((sum, token) => sum + token.text.length, 0);
}

/** Edges between the same blocks that are drawn alike are one. */
function mergeEdges(edges: CodeEdge[], indexOf: Map<number, number>, blocks: CodeBlock[]): FlowEdge[] {
  const merged = new Map<string, FlowEdge>();
  for (const { source, target, kind, executions } of edges) {
    const [from, to] = [indexOf.get(source), indexOf.get(target)];
    if (from === undefined || to === undefined) {
      continue;
    }
    const style = STYLE_OF_KIND[kind] ?? 2;
    const key = `${from} ${to} ${style}`;
    const known = merged.get(key);
    if (known) {
      known.executions += executions;
      known.kinds = known.kinds.includes(kind) ? known.kinds : [...known.kinds, kind];
    } else {
      merged.set(key, { source: from, target: to, style, kinds: [kind], executions, share: 0 });
    }
  }
  for (const edge of merged.values()) {
    const whole = blocks[edge.source].executions;
    edge.share = whole > 0 ? edge.executions / whole : 0;
  }
  return [...merged.values()];
}

function findFans(edges: readonly FlowEdge[]): FlowModel["fans"] {
  const fans = new Map<number, { edge: number; targets: number }>();
  edges.forEach(({ source, style }, edge) => {
    if (style === JUMP) {
      const known = fans.get(source);
      fans.set(source, { edge: known?.edge ?? edge, targets: (known?.targets ?? 0) + 1 });
    }
  });
  return [...fans.values()].filter(({ targets }) => targets >= LEAST_FAN);
}
