// Searches in the code of a process: src/clew/server/search.py.
import type { ApiClient } from "./client.ts";

/** A block by its index, where in it, what is there, and how often the block was executed by all threads. */
export interface SearchHit {
  block: number;
  function: number;
  /** Hexadecimal, with 0x. */
  address: string;
  text: string;
  /** How often the block has it. */
  count: number;
  executions: number;
}

export interface SearchAnswer {
  hits: SearchHit[];
  /** Why there may be more: there were enough, or it took too long. */
  stopped: "limit" | "time" | null;
}

export function fetchSearch(
  client: ApiClient,
  trace: number,
  process: number,
  by: "address" | "bytes" | "text",
  query: string,
  limit: number,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  return client.json(`traces/${trace}/processes/${process}/search`, { by, query, limit }, signal);
}
