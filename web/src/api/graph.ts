// The graph of a process in typed arrays: src/clew/server/graph_arrays.py. Functions and blocks are named by their indices.
import type { Container } from "../protocol/container.ts";
import type { ApiClient } from "./client.ts";

/** Where a function's `offset` is not known. */
export const NO_OFFSET = 0xffffffffffffffffn;

export interface Image {
  path: string;
  name: string;
  base: bigint;
  sizeBytes: number;
}

/** Functions in the order in which they were discovered; blocks of one follow one another. */
export interface Functions {
  processId: number;
  count: number;
  nBlocks: number;
  nEdges: number;
  images: Image[];
  /** The executable's image, an index of `images`; -1 if it is not known. */
  mainImage: number;
  /** Ids of threads, in the order in which they began. */
  threads: number[];
  names: string[];
  /** An index of `images`; -1 outside of them. */
  image: Int32Array;
  offset: BigUint64Array;
  address: BigUint64Array;
  entryBlock: Uint32Array;
  /** One more than there are functions: blocks of f are those from firstBlock[f] up to firstBlock[f + 1]. */
  firstBlock: Uint32Array;
  /** Nanoseconds since the recording began. */
  discovered: Float64Array;
  /** The function that called it first; -1 where nobody is known. Always discovered before. */
  caller: Int32Array;
  /** How many calls deep it was when it was discovered. */
  depth: Int32Array;
  flags: Uint8Array;
  /** Edges between functions; `linkCall` is 1 for calls, 0 for jumps. */
  linkSource: Uint32Array;
  linkTarget: Uint32Array;
  linkCall: Uint8Array;
}

/** Blocks from `firstBlock` on, and the edges that touch them. */
export interface Blocks {
  firstBlock: number;
  count: number;
  function: Uint32Array;
  blockId: Float64Array;
  address: BigUint64Array;
  sizeBytes: Uint32Array;
  nInstructions: Uint32Array;
  /** One of EXIT_KIND; -1 where it is not known. */
  exitKind: Int8Array;
  codeVersion: Uint32Array;
  /** When it was first come to: nanoseconds since the recording began. */
  first: Float64Array;
  isRecorded: Uint8Array;
  /** How far from the start of its function, in bytes; null where addresses tell that. */
  distance: Float64Array | null;
  /** Of each edge its index among all of the process, where from and where to (-1: none), and one of EDGE_KIND. */
  edgeIndex: Uint32Array;
  edgeSource: Int32Array;
  edgeTarget: Int32Array;
  edgeKind: Int8Array;
  /** Of a return the first block of the function that returned; -1 where it is not known, and else. */
  edgeCallee: Int32Array;
}

/** Executions, by index; of blocks and edges only where they were asked for. */
export interface Counts {
  functionInstructions: Float64Array;
  functionEntries: Float64Array;
  linkExecutions: Float64Array;
  blockExecutions: Float64Array | null;
  edgeExecutions: Float64Array | null;
  /** The thread that executed a block most, an index of `threads`; -1 for none, -2 where it is shared by several. */
  blockOwner: Int32Array | null;
}

export interface ThreadFunctions {
  /** Rows: an index of `threads`, a function, and how many instructions the thread executed in it. */
  thread: Uint32Array;
  function: Uint32Array;
  instructions: Float64Array;
}

function processPath(trace: number, process: number): string {
  return `traces/${trace}/processes/${process}`;
}

export async function fetchFunctions(client: ApiClient, trace: number, process: number): Promise<Functions> {
  return readFunctions(await client.arrays(`${processPath(trace, process)}/functions`));
}

export function readFunctions(found: Container): Functions {
  const meta = found.meta as {
    process_id: number;
    n_blocks: number;
    n_edges: number;
    main_image: number;
    images: { path: string; base: string; size_bytes: number }[];
    threads: number[];
  };
  const names = found.texts("name");
  return {
    processId: meta.process_id,
    count: names.length,
    nBlocks: meta.n_blocks,
    nEdges: meta.n_edges,
    images: meta.images.map(({ path, base, size_bytes }) => ({
      path,
      name: path.slice(path.lastIndexOf("/") + 1),
      base: BigInt(base),
      sizeBytes: size_bytes,
    })),
    mainImage: meta.main_image,
    threads: meta.threads,
    names,
    image: found.get("image", "i32"),
    offset: found.get("offset", "u64"),
    address: found.get("address", "u64"),
    entryBlock: found.get("entry_block", "u32"),
    firstBlock: found.get("first_block", "u32"),
    discovered: found.get("discovered", "f64"),
    caller: found.get("caller", "i32"),
    depth: found.get("depth", "i32"),
    flags: found.get("flags", "u8"),
    linkSource: found.get("link_source", "u32"),
    linkTarget: found.get("link_target", "u32"),
    linkCall: found.get("link_call", "u8"),
  };
}

/** Blocks of a process; with `functions` of those from one up to another only. */
export async function fetchBlocks(
  client: ApiClient,
  trace: number,
  process: number,
  functions: readonly [number, number] | null = null,
  signal?: AbortSignal,
): Promise<Blocks> {
  const range = functions && `${functions[0]}-${functions[1]}`;
  const found = await client.arrays(`${processPath(trace, process)}/blocks`, { functions: range }, signal);
  return readBlocks(found);
}

export function readBlocks(found: Container): Blocks {
  const address = found.get("address", "u64");
  return {
    firstBlock: found.meta.first_block as number,
    count: address.length,
    function: found.get("function", "u32"),
    blockId: found.get("block_id", "f64"),
    address,
    sizeBytes: found.get("size_bytes", "u32"),
    nInstructions: found.get("n_instructions", "u32"),
    exitKind: found.get("exit_kind", "i8"),
    codeVersion: found.get("code_version", "u32"),
    first: found.get("first", "f64"),
    isRecorded: found.get("is_recorded", "u8"),
    distance: null,
    edgeIndex: found.get("edge_index", "u32"),
    edgeSource: found.get("edge_source", "i32"),
    edgeTarget: found.get("edge_target", "i32"),
    edgeKind: found.get("edge_kind", "i8"),
    edgeCallee: found.get("edge_callee", "i32"),
  };
}

/** Executions by `threads` (ids), or by all. */
export async function fetchCounts(
  client: ApiClient,
  trace: number,
  process: number,
  threads: readonly number[] | null,
  wanted: { blocks: boolean; owners: boolean },
): Promise<Counts> {
  const found = await client.arrays(`${processPath(trace, process)}/counts`, {
    threads: threads?.join(","),
    blocks: wanted.blocks,
    owners: wanted.owners,
  });
  return {
    functionInstructions: found.get("function_instructions", "f64"),
    functionEntries: found.get("function_entries", "f64"),
    linkExecutions: found.get("link_executions", "f64"),
    blockExecutions: found.has("block_executions") ? found.get("block_executions", "f64") : null,
    edgeExecutions: found.has("edge_executions") ? found.get("edge_executions", "f64") : null,
    blockOwner: found.has("block_owner") ? found.get("block_owner", "i32") : null,
  };
}

export async function fetchThreadFunctions(
  client: ApiClient,
  trace: number,
  process: number,
): Promise<ThreadFunctions> {
  const found = await client.arrays(`${processPath(trace, process)}/thread-functions`);
  return {
    thread: found.get("thread", "u32"),
    function: found.get("function", "u32"),
    instructions: found.get("instructions", "f64"),
  };
}
