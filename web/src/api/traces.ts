// What the server tells of traces in JSON: src/clew/server/summary.py.
import type { ModeWord, ThreadEndWord } from "../protocol/generated.ts";
import type { ApiClient } from "./client.ts";

export interface TraceName {
  index: number;
  name: string;
  mode: ModeWord;
  command: string[];
  processes: number;
}

/** `started` and `ended` are nanoseconds since the recording began; `start_ns` and `end_ns` since 1970, in decimal. */
interface Times {
  started: number;
  ended: number;
  start_ns: string;
  end_ns: string;
}

export interface ThreadSummary extends Times {
  tid: number;
  parent_tid: number;
  name: string;
  instructions: number;
  block_executions: number;
  tags: number;
  stored_bytes: number;
  end: ThreadEndWord;
  lost_records: number;
}

export interface ImageSummary {
  path: string;
  base: string;
  size_bytes: number;
  build_id: string | null;
  instructions: number;
  block_executions: number;
  blocks: number;
}

export interface ProcessSummary extends Times {
  process_id: number;
  pid: number;
  parent_pid: number;
  executable: string;
  command: string[];
  exit: { code?: number | null; signal?: number };
  went_on_unfollowed: boolean;
  /** Recorded calls. */
  api_calls: number;
  threads: ThreadSummary[];
  images: ImageSummary[];
}

export interface TraceSummary extends Times {
  name: string;
  format: number;
  command: string[];
  mode: ModeWord;
  clew_version: string;
  totals: Record<"instructions" | "block_executions" | "blocks" | "edges" | "edge_executions" | "lost_records", number>;
  losses: Record<string, number>;
  /** Threads that went on natively, by process and reason; `since`: when the first did, in nanoseconds of the recording. */
  releases: { pid: number; reason: string; threads: number; since: number }[];
  warnings: string[];
  stored_bytes: number;
  processes: ProcessSummary[];
}

export function fetchTraces(client: ApiClient): Promise<{ clew_version: string; traces: TraceName[] }> {
  return client.json("traces");
}

export function fetchSummary(client: ApiClient, trace: number): Promise<TraceSummary> {
  return client.json(`traces/${trace}`);
}
