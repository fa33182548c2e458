// What the server tells of calls and of what they are about: src/clew/server/call_answers.py and entity_answers.py. Times
// are nanoseconds since the recording began; a call is named by its index among those of its process, in the order of time.
import type { ApiClient, Parameters } from "./client.ts";

/** `counts`: no single calls are known, only which blocks made how many. */
export type CallSource = "recorded" | "system_calls" | "counts";

/** What descriptions choose calls by (FILTERS of src/clew/api/description.py). */
export const CALL_FILTERS = [
  ...(["File", "Directory", "Network", "Process", "Thread", "Memory", "Synchronisation"] as const),
  ...(["DynamicLoading", "Time", "User", "Crypto", "Compression", "Database", "Terminal", "IPC"] as const),
  ...(["Signal", "Other"] as const),
] as const;
export type CallFilter = (typeof CALL_FILTERS)[number];

export interface CallSummary {
  source: CallSource;
  /** Why less is told than of recorded calls; null where they were recorded. */
  reason: string | null;
  /** Calls that are listed, and those that are not. */
  total: number;
  omitted: number;
  /** System calls that were counted where the order is not known; they are not listed either. */
  untimed: number;
  /** When the first and the last were made; null where there are none. */
  from: number | null;
  to: number | null;
  /** Of the calls asked for: how many, and of what. */
  calls: number;
  names: { name: string; kind: string; calls: number; failed: number }[];
  names_omitted: number;
  /** Of the calls that are asked for by whatever filter: by what they can be chosen. Where none were counted, of blocks. */
  filters: { filter: CallFilter; calls: number }[];
  processes: { process: number; calls: number }[];
  threads: { tid: number; calls: number }[];
}

export interface CallArgument {
  name?: string;
  type?: string;
  value?: string;
  text?: string;
}

export interface CallRow {
  call: number;
  process: number;
  time: number;
  duration: number | null;
  tid: number | null;
  kind: string;
  name: string;
  /** The block that made it and its function; -1 where they are not known, and among the calls of all processes. */
  block: number;
  function: number;
  filter: CallFilter;
  library: string | null;
  arguments: CallArgument[];
  result: string | null;
  error: string | null;
  /** What was done to it by who recorded it: `result`, `delay_enter`, `delay_exit`, `signal`. */
  injected: string[];
}

export interface CallPage {
  /** How many calls were asked for, and at which of them the rows begin. */
  total: number;
  offset: number;
  /** Where among them the call is that was asked for; null if it is not. */
  at: number | null;
  rows: CallRow[];
}

export interface CallDetails extends CallRow {
  /** Where its thread was; null where there is no order. */
  position: number | null;
  /** The call that it was made within, -1 for none, and how many are around it. */
  parent: number;
  depth: number;
  /** How much of its time was not within calls in it. */
  own: number | null;
  references: CallReference[];
}

export interface CallReference {
  entity: number;
  role: string;
  argument: number | null;
  bytes: number | null;
}

/** A call with the names of what it had to do with, and the calls around it and in it. */
export interface OpenedCall extends CallDetails {
  references: (CallReference & { name: string; kind: string })[];
  /** The outermost first. */
  around: CallRow[];
  /** The first of those that it is the innermost around, of so many. */
  within: CallRow[];
  n_within: number;
}

/** A call in the order of execution of its thread. */
export interface PlacedCall extends CallRow {
  position: number;
  depth: number;
  parent: number;
}

/** Calls of a thread around a place: `rows` from number `first` of `total` on, and those around the first of them. */
export interface NearCalls {
  total: number;
  first: number;
  rows: PlacedCall[];
  around: PlacedCall[];
}

/** Calls as bars, by thread and depth: bar `i` stands for `calls[i]` from `from[i]` to `to[i]`, the longest `call[i]`. */
export interface CallLanes {
  /** How many calls are within one another at most; 0 where there are no recorded calls. */
  deep: number;
  names: string[];
  tid: Uint32Array;
  depth: Uint8Array;
  from: Float64Array;
  to: Float64Array;
  calls: Uint32Array;
  failed: Uint32Array;
  call: Uint32Array;
  named: Uint32Array;
}

/** The same as JSON, bar by bar. */
export interface PlainLanes {
  deep: number;
  names: string[];
  bars: Record<"tid" | "depth" | "from" | "to" | "calls" | "failed" | "call" | "named", number>[];
}

/** A thread at the root of the tree. */
export interface TreeThread {
  process: number;
  tid: number;
  calls: number;
  failed: number;
  total: number;
  within: number;
}

/** A call in the tree, or as many as have the same calls around them: then `path` is their number. */
export interface TreeRow {
  path?: number;
  call: number;
  name: string;
  kind: string;
  calls: number;
  failed: number;
  total: number | null;
  own: number;
  /** How many there are in it. */
  within: number;
  time?: number;
  block?: number;
  arguments?: CallArgument[];
  result?: string | null;
  error?: string | null;
  injected?: string[];
}

/** What a call did in an entity's life; `more`: how often its process did so again, where only the first is told. */
export interface LifeEvent {
  process: number;
  tid: number;
  call: number | null;
  time: number;
  name: string;
  role: string;
  more: number;
}

export interface OpenedEntity extends EntityRow {
  touches: Touch[];
  parent_name: string | null;
  life: LifeEvent[];
  life_total: number;
}

export interface PlaceRow {
  block: number;
  function: number;
  name: string | null;
  calls: number | null;
  /** Where no single calls are known. */
  filter: CallFilter | null;
}

export interface CallPlaces {
  total: number;
  calls: number | null;
  rows: PlaceRow[];
}

/** Calls by series and bin: those of series `s` in bin `b` are `counts[s * bins + b]`. */
export interface CallChart {
  from: number;
  to: number;
  bins: number;
  names: string[];
  /** Of how many the last series is the sum; 0 where each has its own. */
  others: number;
  counts: Uint32Array;
}

export interface EntityRow {
  /** null: a process or thread of the trace, which has no recorded calls. */
  entity: number | null;
  kind: string;
  name: string;
  process: number | null;
  tid: number | null;
  parent: number | null;
  details: [string, string][];
  from: number;
  to: number;
  /** Calls of the process that have to do with it, and of all; null where that is not known. */
  calls: number | null;
  all_calls: number | null;
  bytes: number;
}

export interface EntityPage {
  source: "recorded" | "known";
  total: number;
  offset: number;
  kinds: Record<string, number>;
  rows: EntityRow[];
}

/** What a process did with an entity: in how many calls, in which roles. */
export interface Touch {
  process: number;
  entity: number;
  kind: string;
  name: string;
  calls: number;
  roles: [string, number][];
  bytes_read: number;
  bytes_written: number;
}

/** A process of a trace; null for all of them together, which is asked of recorded calls and what they are about alone. */
export interface Where<Process extends number | null = number | null> {
  trace: number;
  process: Process;
}

const pathOf = ({ trace, process }: Where) =>
  process === null ? `traces/${trace}` : `traces/${trace}/processes/${process}`;

export function fetchCallSummary(
  client: ApiClient,
  place: Where,
  wanted: Parameters,
  signal?: AbortSignal,
): Promise<CallSummary> {
  return client.json(`${pathOf(place)}/calls/summary`, wanted, signal);
}

export function fetchCalls(
  client: ApiClient,
  place: Where,
  wanted: Parameters,
  signal?: AbortSignal,
): Promise<CallPage> {
  return client.json(`${pathOf(place)}/calls`, wanted, signal);
}

export function fetchCall(client: ApiClient, place: Where<number>, call: number): Promise<OpenedCall> {
  return client.json(`${pathOf(place)}/calls/${call}`);
}

export function fetchCallPlaces(
  client: ApiClient,
  place: Where<number>,
  wanted: Parameters,
  signal?: AbortSignal,
): Promise<CallPlaces> {
  return client.json(`${pathOf(place)}/calls/places`, wanted, signal);
}

export async function fetchCallChart(
  client: ApiClient,
  place: Where,
  wanted: Parameters,
  signal?: AbortSignal,
): Promise<CallChart> {
  const path = `${pathOf(place)}/calls/chart`;
  if (client.isFile) {
    const plain = await client.json<Omit<CallChart, "counts"> & { counts: number[] }>(path, wanted, signal);
    return { ...plain, counts: Uint32Array.from(plain.counts) };
  }
  const found = await client.arrays(path, wanted, signal);
  const meta = found.meta as Pick<CallChart, "from" | "to" | "bins" | "others">;
  const { from, to, bins, others } = meta;
  return { from, to, bins, others, names: found.texts("name"), counts: found.get("calls", "u32") };
}

export async function fetchCallLanes(
  client: ApiClient,
  place: Where<number>,
  wanted: Parameters,
  signal?: AbortSignal,
): Promise<CallLanes> {
  const path = `${pathOf(place)}/calls/lanes`;
  if (client.isFile) {
    const plain = await client.json<PlainLanes>(path, wanted, signal);
    const numbers = (name: keyof PlainLanes["bars"][number]) => plain.bars.map((bar) => bar[name]);
    return {
      deep: plain.deep,
      names: plain.names,
      tid: Uint32Array.from(numbers("tid")),
      depth: Uint8Array.from(numbers("depth")),
      from: Float64Array.from(numbers("from")),
      to: Float64Array.from(numbers("to")),
      calls: Uint32Array.from(numbers("calls")),
      failed: Uint32Array.from(numbers("failed")),
      call: Uint32Array.from(numbers("call")),
      named: Uint32Array.from(numbers("named")),
    };
  }
  const found = await client.arrays(path, wanted, signal);
  return {
    deep: (found.meta as { deep: number }).deep,
    names: found.texts("name"),
    tid: found.get("tid", "u32"),
    depth: found.get("depth", "u8"),
    from: found.get("from", "f64"),
    to: found.get("to", "f64"),
    calls: found.get("calls", "u32"),
    failed: found.get("failed", "u32"),
    call: found.get("call", "u32"),
    named: found.get("named", "u32"),
  };
}

export function fetchNearCalls(
  client: ApiClient,
  place: Where<number>,
  thread: number,
  wanted: { position: number; count: number },
  signal?: AbortSignal,
): Promise<NearCalls> {
  return client.json(`${pathOf(place)}/threads/${thread}/calls-near`, wanted, signal);
}

export function fetchTreeThreads(
  client: ApiClient,
  place: Where,
  wanted: Parameters,
  signal?: AbortSignal,
): Promise<{ threads: TreeThread[] }> {
  return client.json(`${pathOf(place)}/calls/tree`, wanted, signal);
}

/** Some of what is within a call, a path or a thread: words `parent` or `thread`. */
export function fetchTreeRows(
  client: ApiClient,
  place: Where<number>,
  wanted: Parameters,
  signal?: AbortSignal,
): Promise<{ total: number; offset: number; rows: TreeRow[] }> {
  return client.json(`${pathOf(place)}/calls/tree`, wanted, signal);
}

export function fetchEntities(
  client: ApiClient,
  place: Where,
  wanted: Parameters,
  signal?: AbortSignal,
): Promise<EntityPage> {
  return client.json(`${pathOf(place)}/entities`, wanted, signal);
}

export function fetchEntity(
  client: ApiClient,
  place: Where,
  entity: number,
  signal?: AbortSignal,
): Promise<OpenedEntity> {
  return client.json(`${pathOf(place)}/entities/${entity}`, {}, signal);
}

export function fetchTouches(
  client: ApiClient,
  place: Where<number>,
  limit: number,
  signal?: AbortSignal,
): Promise<{ total: number; rows: Touch[] }> {
  return client.json(`${pathOf(place)}/touches`, { limit }, signal);
}
