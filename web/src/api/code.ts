// Code of a process in JSON: src/clew/server/code.py. Blocks and functions are named by their indices; addresses are text
// in hexadecimal.
import type { ApiClient } from "./client.ts";

/** Where a direct branch leads, as far as it is known. */
export interface BranchTarget {
  address: string;
  block: number | null;
  function: number | null;
  name: string | null;
}

export interface Instruction {
  address: string;
  bytes: string;
  text: string;
  target?: BranchTarget;
}

export interface CodeBlock {
  block: number;
  function: number;
  address: string;
  size_bytes: number;
  exit: string | null;
  code_version: number;
  is_recorded: boolean;
  executions: number;
  /** How a conditional branch went; null for other blocks. */
  taken: number | null;
  not_taken: number | null;
  instructions: Instruction[];
}

export interface CodeEdge {
  source: number;
  target: number;
  function: number;
  name: string;
  kind: string;
  executions: number;
}

export interface FunctionCode {
  function: number;
  name: string;
  image: string | null;
  address: string;
  /** How many it has; `blocks` may be only the first of them. */
  n_blocks: number;
  entry_block: number;
  blocks: CodeBlock[];
  /** Between the blocks. */
  edges: CodeEdge[];
  /** Calls, and jumps into other functions. */
  ways_out: CodeEdge[];
}

/** Source lines: by block for each instruction an index of `files` and a line, null where it is not known. */
export interface CodeLines {
  files: string[];
  lines: Record<string, ([number, number] | null)[]>;
}

export interface Place {
  block: number;
  function: number;
  name: string;
  address: string;
  function_offset: number | null;
}

export interface Reference {
  kind: string;
  executions: number;
  from?: Place | null;
  to?: Place | null;
  callee: Place | null;
}

export interface References {
  block: number;
  n_in: number;
  n_out: number;
  in: Reference[];
  out: Reference[];
}

export const NEW_IMAGE = 1;
export const NEW_FUNCTION = 2;
export const LABEL = 4;

/** What the listing has at each of its places: blocks in the order of their addresses. */
export interface ListingIndex {
  block: Uint32Array;
  /** NEW_IMAGE, NEW_FUNCTION, LABEL. */
  flags: Uint8Array;
  /** Bytes in front of the block that were not executed. */
  gapBytes: Float64Array;
  nRows: Uint32Array;
}

function base(trace: number, process: number): string {
  return `traces/${trace}/processes/${process}`;
}

export function fetchFunctionCode(
  client: ApiClient,
  trace: number,
  process: number,
  index: number,
  threads: readonly number[] | null,
  signal?: AbortSignal,
): Promise<FunctionCode> {
  return client.json(`${base(trace, process)}/functions/${index}`, { threads: threads?.join(",") }, signal);
}

/** May take long where there is much debugging information. */
export function fetchFunctionLines(
  client: ApiClient,
  trace: number,
  process: number,
  index: number,
  signal?: AbortSignal,
): Promise<CodeLines> {
  return client.json(`${base(trace, process)}/functions/${index}/lines`, {}, signal);
}

export async function fetchListingIndex(
  client: ApiClient,
  trace: number,
  process: number,
  signal?: AbortSignal,
): Promise<ListingIndex> {
  const found = await client.arrays(`${base(trace, process)}/listing-index`, {}, signal);
  return {
    block: found.get("block", "u32"),
    flags: found.get("flags", "u8"),
    gapBytes: found.get("gap_bytes", "f64"),
    nRows: found.get("n_rows", "u32"),
  };
}

/** Code of `count` blocks from place `start` of the listing on. */
export function fetchListing(
  client: ApiClient,
  trace: number,
  process: number,
  start: number,
  count: number,
  threads: readonly number[] | null,
): Promise<{ start: number; blocks: CodeBlock[] }> {
  return client.json(`${base(trace, process)}/listing`, { start, count, threads: threads?.join(",") });
}

/** May take long where there is much debugging information. */
export function fetchListingLines(
  client: ApiClient,
  trace: number,
  process: number,
  start: number,
  count: number,
): Promise<CodeLines> {
  return client.json(`${base(trace, process)}/listing/lines`, { start, count });
}

export function fetchReferences(
  client: ApiClient,
  trace: number,
  process: number,
  block: number,
  threads: readonly number[] | null,
  signal?: AbortSignal,
): Promise<References> {
  return client.json(`${base(trace, process)}/references`, { block, threads: threads?.join(",") }, signal);
}
