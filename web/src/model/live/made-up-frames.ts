// Frames of made-up recordings, for tests: blocks in functions, each leading on to the next one, with what they executed.
import { Container } from "../../protocol/container.ts";
import { CONTAINER_MAGIC, CONTAINER_VERSION, EDGE_KIND } from "../../protocol/generated.ts";

export interface MadeUpRow {
  function: number;
  address: number;
  executions: number;
  isGone: boolean;
}

export interface MadeUpMore {
  /** Blocks that are counted beside those that are told of, and how much. */
  counted?: number[];
  executions?: number;
  threads?: number[];
}

type Numbers = readonly number[];
const MAKE = {
  u8: Uint8Array,
  i8: Int8Array,
  u32: Uint32Array,
  i32: Int32Array,
  f64: Float64Array,
} as const;

/** A frame of the blocks `told` of `rows`, with the functions that they are in and an edge from each to the next. */
export function makeFrame(
  rows: readonly MadeUpRow[] | null,
  told: Numbers,
  since: number,
  sequence: number,
  more: MadeUpMore = {},
): Container {
  const meta = {
    ...{ name: "n", mode: "counts", command: ["c"], epoch: "e", sequence, since, process: 0, state: "running" },
    ...{ reason: "", trouble: "", elapsed_ns: 1, processes: null, images: since < 0 ? [] : null },
    totals: rows && { functions: 0, blocks: rows.length, edges: 0, instructions: 0, executions: 0, threads_ended: 0 },
  };
  if (!rows) {
    return pack(meta, []);
  }
  const functions = [...new Set(told.map((row) => rows[row].function))];
  const of = told.map((row) => rows[row]);
  const counted = more.counted ?? told;
  const executions = more.counted?.map(() => more.executions ?? 0) ?? of.map((row) => row.executions);
  const edges = told.filter((row) => row > 0);
  const all = (rows_: Numbers, value: number) => rows_.map(() => value);
  const threads = more.threads ?? [7];
  return pack(meta, [
    ["function", "u32", functions],
    ["function_image", "i32", all(functions, -1)],
    ["function_offset", "u64", functions],
    ["function_address", "u64", functions.map((one) => 1000 * one)],
    ["function_discovered", "f64", functions],
    ["function_caller", "i32", functions.map((one) => one - 1)],
    ["function_depth", "i32", functions],
    ["function_flags", "u8", all(functions, 0)],
    ["function_gone", "u8", all(functions, 0)],
    ...text(
      "function_name",
      functions.map((one) => `f${one}`),
    ),
    ["block", "u32", told],
    ["block_address", "u64", of.map((row) => 1000 * row.function + row.address)],
    ["block_code_version", "u32", all(told, 0)],
    ["block_function", "i32", of.map((row) => row.function)],
    ["block_size_bytes", "u32", all(told, 4)],
    ["block_n_instructions", "u32", all(told, 2)],
    ["block_exit_kind", "i8", all(told, 1)],
    ["block_is_recorded", "u8", all(told, 1)],
    ["block_first", "f64", told],
    ["block_gone", "u8", of.map((row) => Number(row.isGone))],
    ["edge", "u32", edges],
    ["edge_source", "i32", edges.map((row) => row - 1)],
    ["edge_target", "i32", edges],
    ["edge_kind", "i8", all(edges, EDGE_KIND.jump)],
    ["edge_callee", "i32", all(edges, -1)],
    ["edge_gone", "u8", all(edges, 0)],
    ["counted_block", "u32", counted],
    ["counted_block_executions", "f64", executions],
    ["counted_edge", "u32", edges],
    ["counted_edge_executions", "f64", edges.map((row) => rows[row].executions)],
    ["thread_tid", "u32", threads],
    ["thread_running", "u8", all(threads, 1)],
    ["thread_members", "u32", all(threads, 1)],
    ["thread_instructions", "f64", all(threads, sequence)],
    ["thread_executions", "f64", all(threads, sequence)],
    ...text(
      "thread_name",
      threads.map(() => "t"),
    ),
  ]);
}

type Part = [string, keyof typeof MAKE | "u64", Numbers];

function text(name: string, texts: readonly string[]): Part[] {
  const bytes = texts.map((one) => [...new TextEncoder().encode(one)]);
  let end = 0;
  return [
    [`${name}.bytes`, "u8", bytes.flat()],
    [`${name}.ends`, "u32", bytes.map((one) => (end += one.length))],
  ];
}

function pack(meta: object, parts: Part[]): Container {
  const arrays: object[] = [];
  const contents: Uint8Array[] = [];
  let offset = 0;
  for (const [name, type, numbers] of parts) {
    const array = type === "u64" ? BigUint64Array.from(numbers, BigInt) : MAKE[type].from(numbers);
    arrays.push({ name, type, offset, length: array.length });
    const padded = new Uint8Array(Math.ceil(array.byteLength / 8) * 8);
    padded.set(new Uint8Array(array.buffer));
    contents.push(padded);
    offset += padded.length;
  }
  let header = JSON.stringify({ kind: "live", meta, arrays });
  header += " ".repeat((8 - (header.length % 8)) % 8);
  const content = new Uint8Array(16 + header.length + offset);
  const view = new DataView(content.buffer);
  view.setBigUint64(0, CONTAINER_MAGIC, true);
  view.setUint32(8, CONTAINER_VERSION, true);
  view.setUint32(12, header.length, true);
  content.set(new TextEncoder().encode(header), 16);
  let at = 16 + header.length;
  for (const part of contents) {
    content.set(part, at);
    at += part.length;
  }
  return new Container(content.buffer);
}
