// What the server tells of time, and of the order of execution: src/clew/server/replay_answers.py. Times are nanoseconds
// since the recording began; a position is in front of number so many of a thread's blocks (full) or tags (region).
import { GAP_REASON, type ModeWord, type TICK_KIND } from "../protocol/generated.ts";
import type { ApiClient } from "./client.ts";

/** Positions by times, both rising: between two of them positions are taken to go by evenly. */
export interface Marks {
  time: Float64Array;
  position: Float64Array;
}

/** Why the order of a stretch is not there, by a gap's reason. */
export function wordsOfGap(reason: number): string {
  if (reason === GAP_REASON.lost) {
    return "lost: order not recorded";
  }
  return reason === GAP_REASON.thinned ? "left out: order beyond the budget" : "order not recorded";
}

/** A stretch of time without order. `covers` ns of it are so, if it stands for several. */
export interface Gap {
  from: number;
  to: number;
  covers: number;
  executions: number;
  reason: number;
}

/** What happened in a bin: `count` of a kind, the first of them at `time`, with the number of signal or system call. */
export interface Tick {
  time: number;
  kind: number;
  value: number;
  count: number;
}

export interface TimelineThread {
  tid: number;
  name: string;
  started: number;
  ended: number;
  isOrdered: boolean;
  length: number;
  /** By bin: blocks or tags whose order is known, and new blocks that only this thread executed. */
  density: Float32Array;
  newCode: Uint32Array;
  gaps: Gap[];
  ticks: Tick[];
  marks: Marks;
}

export interface Timeline {
  processId: number;
  mode: ModeWord;
  from: number;
  to: number;
  /** When the first thread began and the last one ended. */
  first: number;
  last: number;
  bins: number;
  /** What positions count; null where no order was recorded, and then `reason` says why. */
  unit: "block" | "tag" | null;
  reason: string | null;
  newCode: Uint32Array;
  threads: TimelineThread[];
}

/** What there is between two positions and has no order. */
export interface ReplayGap {
  start: number;
  end: number;
  from: number;
  to: number;
  executions: number;
  reason: keyof typeof GAP_REASON;
  counts: { block: number; executions: number }[];
}

/** A thread in front of a position. `block` comes next, -1 for none. */
export interface ReplayState {
  thread: number;
  position: number;
  length: number;
  block: number;
  instruction: number | null;
  time: number;
  /** The innermost open calls, the outermost of them first; null where that is not recorded. */
  calls: { block: number; returns_to: string }[] | null;
  calls_omitted: number;
  /** Blocks executed before, and those that come. */
  recent: number[];
  coming: number[];
  gap: ReplayGap | null;
}

/** Positions one after the other, and the last blocks in front of each: `block` from `blockEnd` of the one before on. */
export interface Frames {
  position: Float64Array;
  block: Uint32Array;
  blockEnd: Uint32Array;
}

export type Seek =
  | { time: number }
  | { step: number }
  | { block: number; back: boolean }
  | { what: "call" | "syscall" | "signal" | "api"; back: boolean };

export interface EventRow {
  time: number;
  tid: number;
  kind: keyof typeof TICK_KIND;
  name: string;
  number: number;
}

const pathOf = (trace: number, process: number) => `traces/${trace}/processes/${process}`;

export async function fetchTimeline(
  client: ApiClient,
  trace: number,
  process: number,
  wanted: { span: readonly [number, number] | null; bins: number; threads: readonly number[] | null },
  signal?: AbortSignal,
): Promise<Timeline> {
  const found = await client.arrays(
    `${pathOf(trace, process)}/timeline`,
    { from: wanted.span?.[0], to: wanted.span?.[1], bins: wanted.bins, threads: wanted.threads?.join(",") },
    signal,
  );
  const meta = found.meta as Omit<Timeline, "threads" | "newCode" | "processId">;
  const [started, ended, length] = (["started", "ended", "length"] as const).map((name) => found.get(name, "f64"));
  const tid = found.get("tid", "u32");
  const isOrdered = found.get("is_ordered", "u8");
  const density = found.get("density", "f32");
  const newCode = found.get("thread_new_code", "u32");
  const markEnd = found.get("mark_end", "u32");
  const [markTime, markPosition] = [found.get("mark_time", "f64"), found.get("mark_position", "f64")];
  const threads: TimelineThread[] = found.texts("name").map((name, index) => ({
    tid: tid[index],
    name,
    started: started[index],
    ended: ended[index],
    isOrdered: isOrdered[index] !== 0,
    length: length[index],
    density: density.subarray(index * meta.bins, (index + 1) * meta.bins),
    newCode: newCode.subarray(index * meta.bins, (index + 1) * meta.bins),
    gaps: [],
    ticks: [],
    marks: {
      time: markTime.subarray(index > 0 ? markEnd[index - 1] : 0, markEnd[index]),
      position: markPosition.subarray(index > 0 ? markEnd[index - 1] : 0, markEnd[index]),
    },
  }));
  const [from, to, covers] = (["gap_from", "gap_to", "gap_covers"] as const).map((name) => found.get(name, "f64"));
  const [executions, reason] = [found.get("gap_executions", "f64"), found.get("gap_reason", "u8")];
  found.get("gap_thread", "u32").forEach((thread, i) => {
    threads[thread].gaps.push({
      from: from[i],
      to: to[i],
      covers: covers[i],
      executions: executions[i],
      reason: reason[i],
    });
  });
  const [time, kind] = [found.get("tick_time", "f64"), found.get("tick_kind", "u8")];
  const [value, count] = [found.get("tick_value", "i32"), found.get("tick_count", "u32")];
  found.get("tick_thread", "u32").forEach((thread, i) => {
    threads[thread].ticks.push({ time: time[i], kind: kind[i], value: value[i], count: count[i] });
  });
  const { mode, unit, reason: why, first, last, bins } = meta;
  return {
    processId: process,
    mode,
    unit,
    reason: why,
    from: meta.from,
    to: meta.to,
    first,
    last,
    bins,
    newCode: found.get("new_code", "u32"),
    threads,
  };
}

export function fetchReplay(
  client: ApiClient,
  trace: number,
  process: number,
  at: { thread: number; position: number },
  signal?: AbortSignal,
): Promise<ReplayState> {
  return client.json(
    `${pathOf(trace, process)}/threads/${at.thread}/replay`,
    { position: Math.round(at.position) },
    signal,
  );
}

/** The state where something is, looked for from a position on; `found` is false if it is not there. */
export function fetchSeek(
  client: ApiClient,
  trace: number,
  process: number,
  at: { thread: number; position: number },
  seek: Seek,
): Promise<ReplayState & { found: boolean }> {
  const thread = `${pathOf(trace, process)}/threads/${at.thread}`;
  if ("what" in seek && seek.what === "api") {
    return client.json(`${thread}/next-call`, { position: at.position, back: seek.back });
  }
  return client.json(`${thread}/seek`, { position: at.position, ...seek });
}

export async function fetchFrames(
  client: ApiClient,
  trace: number,
  process: number,
  thread: number,
  wanted: { start: number; stride: number; frames: number },
): Promise<Frames> {
  const path = `${pathOf(trace, process)}/threads/${thread}/frames`;
  if (client.isFile) {
    return joinFrames((await client.json<{ frames: ReplayState[] }>(path, wanted)).frames);
  }
  const found = await client.arrays(path, wanted);
  return {
    position: found.get("position", "f64"),
    block: found.get("block", "u32"),
    blockEnd: found.get("block_end", "u32"),
  };
}

/** Frames out of the states at their positions, which is what a file has. */
function joinFrames(states: readonly ReplayState[]): Frames {
  const recent = states.map((state) => state.recent.filter((block) => block >= 0));
  let end = 0;
  return {
    position: Float64Array.from(states, (state) => state.position),
    block: Uint32Array.from(recent.flat()),
    blockEnd: Uint32Array.from(recent, (blocks) => (end += blocks.length)),
  };
}

export function fetchEvents(
  client: ApiClient,
  trace: number,
  process: number,
  span: readonly [number, number],
  threads: readonly number[] | null,
): Promise<{ events: EventRow[]; omitted: number }> {
  return client.json(`${pathOf(trace, process)}/events`, {
    from: Math.floor(span[0]),
    to: Math.ceil(span[1]),
    threads: threads?.join(","),
  });
}
