// Two processes compared: src/clew/server/comparison.py. Functions and nodes are named by their numbers in the graph of both,
// which comes in the arrays of a process' graph, with nodes in the place of blocks.
import type { Container } from "../protocol/container.ts";
import type { ApiClient } from "./client.ts";
import type { FunctionCode } from "./code.ts";
import { type Blocks, type Functions, readBlocks, readFunctions } from "./graph.ts";

/** A process of a trace. */
export interface ProcessOf {
  trace: number;
  process: number;
}

/** A and B, in this order. */
export interface Pair {
  a: ProcessOf;
  b: ProcessOf;
}

/** How many are the same, are in both and differ, and are in one only. */
export interface Difference {
  same: number;
  differ: number;
  only_in_a: number;
  only_in_b: number;
}

interface SideSummary {
  command: string[];
  mode: string;
  totals: Record<"instructions" | "block_executions" | "blocks" | "edges" | "edge_executions" | "lost_records", number>;
}

interface ImageSide {
  image: string | null;
  build_id: string | null;
  instructions: number;
  only: { blocks: number; instructions: number };
}

export interface ComparisonSummary {
  a: SideSummary;
  b: SideSummary;
  compared: "counts" | "coverage";
  equal: boolean;
  blocks: Difference;
  edges: Difference;
  functions: Difference;
  not_comparable: Record<"a" | "b", { blocks: number; instructions: number; edges: number }>;
  images: { matched_by: string | null; same: number; differ: number; a: ImageSide; b: ImageSide }[];
  notes: string[];
  /** A and B are the same process of the same trace. */
  is_same: boolean;
  is_ordered: boolean;
  /** Why their order is not compared; null if it is. */
  no_order: string | null;
}

/** Numbers of A and of B. */
export interface Both<T> {
  a: T;
  b: T;
}

/** What of the graph of both is whose. */
export interface Compared {
  isCounted: boolean;
  /** By node: 0 for memory of one that the other has nothing like. */
  isComparable: Uint8Array;
  /** By node the block that it is of in the graph of each; -1 for none. */
  block: Both<Int32Array>;
  executions: Both<Float64Array>;
  edges: Both<Float64Array>;
  links: Both<Float64Array>;
  /** By function which it is in the graph of each; -1 for none. */
  function: Both<Int32Array>;
  entries: Both<Float64Array>;
  instructions: Both<Float64Array>;
  /** By function how many nodes ran, and how many of them only there. */
  blocks: Both<Uint32Array>;
  only: Both<Uint32Array>;
  /** By function by how many instructions its nodes differ, how many do, and how many can't be compared. */
  difference: Float64Array;
  differing: Uint32Array;
  notComparable: Uint32Array;
}

/** The graph of both. */
export interface Union {
  functions: Functions;
  blocks: Blocks;
  compared: Compared;
}

export interface ComparedFunction extends Both<FunctionCode | null> {
  function: number;
  name: string;
}

export interface OrderPlace {
  symbol: string | null;
  symbol_offset: number | null;
  image: string | null;
  offset: string | null;
  app_pc: string;
  line: string | null;
  node: number | null;
}

interface Numbers {
  instruction: number;
  execution: number;
}

interface PartingSide {
  at: Numbers;
  next: OrderPlace[];
  ran: Numbers | null;
  met: Numbers | null;
}

export interface Parting extends Both<PartingSide> {
  last: OrderPlace | null;
  met: OrderPlace | null;
  n_calls: number;
  calls: OrderPlace[];
}

interface OrderSide {
  pid: number;
  tid: number;
  instructions: number;
  block_executions: number;
  start: Numbers | null;
  end: Numbers | null;
}

export interface ThreadOrder extends Both<OrderSide | null> {
  start: string | null;
  without_c_library: boolean;
  end: string | null;
  last: OrderPlace | null;
  partings: Parting[];
}

function pathOf({ a, b }: Pair): string {
  return `traces/${a.trace}/processes/${a.process}/compared/${b.trace}/${b.process}`;
}

export function fetchComparison(client: ApiClient, pair: Pair, signal: AbortSignal): Promise<ComparisonSummary> {
  return client.json(pathOf(pair), {}, signal);
}

export async function fetchUnion(client: ApiClient, pair: Pair, signal: AbortSignal): Promise<Union> {
  const ask = (what: string) => client.arrays(`${pathOf(pair)}/${what}`, {}, signal);
  const [functions, blocks, compared] = await Promise.all([ask("functions"), ask("blocks"), ask("comparison")]);
  return {
    functions: readFunctions(functions),
    blocks: { ...readBlocks(blocks), distance: compared.get("distance", "f64") },
    compared: readCompared(compared),
  };
}

function readCompared(found: Container): Compared {
  const numbers = (name: string) => ({ a: found.get(`${name}_a`, "f64"), b: found.get(`${name}_b`, "f64") });
  const indices = (name: string) => ({ a: found.get(`${name}_a`, "i32"), b: found.get(`${name}_b`, "i32") });
  const counts = (name: string) => ({ a: found.get(`${name}_a`, "u32"), b: found.get(`${name}_b`, "u32") });
  return {
    isCounted: found.meta.is_counted as boolean,
    isComparable: found.get("is_comparable", "u8"),
    block: indices("block"),
    executions: numbers("executions"),
    edges: numbers("edge"),
    links: numbers("link"),
    function: indices("function"),
    entries: numbers("entries"),
    instructions: numbers("instructions"),
    blocks: counts("blocks"),
    only: counts("only"),
    difference: found.get("function_difference", "f64"),
    differing: found.get("function_differing", "u32"),
    notComparable: found.get("function_not_comparable", "u32"),
  };
}

export function fetchComparedFunction(
  client: ApiClient,
  pair: Pair,
  index: number,
  signal: AbortSignal,
): Promise<ComparedFunction> {
  return client.json(`${pathOf(pair)}/functions/${index}`, {}, signal);
}

/** Where threads part: from `start` on, and in images like `only`, as `clew diff --from --only` has it; empty for its own choice. */
export function fetchOrder(
  client: ApiClient,
  pair: Pair,
  wanted: { partings: number; start: string; only: string },
  signal: AbortSignal,
): Promise<{ threads: ThreadOrder[]; reason: string | null }> {
  const { partings, start, only } = wanted;
  return client.json(`${pathOf(pair)}/order`, { partings, start: start || null, only: only || null }, signal);
}

/** Blocks that a thread executed one after the other, from `start` on; 2^32 - 1 for those that are not known. */
export async function fetchPath(
  client: ApiClient,
  of: ProcessOf,
  thread: number,
  start: number,
  count: number,
  signal: AbortSignal,
): Promise<{ blocks: Uint32Array; start: number; length: number }> {
  const path = `traces/${of.trace}/processes/${of.process}/threads/${thread}/path`;
  const found = await client.arrays(path, { start, count }, signal);
  return {
    blocks: found.get("block", "u32"),
    start: found.meta.start as number,
    length: found.meta.length as number,
  };
}
