// Calls in the file that the page is in: all of a process are there (src/clew/server/taken_calls.py), and what is asked for
// is chosen from them and added up here, as src/clew/server/call_answers.py and entity_answers.py do it. Pure.
import {
  CALL_FILTERS,
  type CallChart,
  type CallDetails,
  type CallFilter,
  type CallPage,
  type CallRow,
  type CallPlaces,
  type CallSource,
  type CallSummary,
  type EntityPage,
  type LifeEvent,
  type OpenedCall,
  type PlaceRow,
  type OpenedEntity,
} from "./calls.ts";
import { ApiError } from "./client.ts";
import { choose, compare, type TakenCalls, without } from "./file-call-choice.ts";
import { lanesOf } from "./file-call-lanes.ts";
import { treeOf } from "./file-call-tree.ts";

/** A chart as JSON: what is typed arrays elsewhere. */
export type PlainChart = Omit<CallChart, "counts"> & { counts: number[] };

/** So many references of a call are told. */
const MOST_REFERENCES = 16;
/** And so many calls around it and in it. */
const MOST_AROUND = 32;
const MOST_WITHIN = 20;
/** Roles of which there may be any number: of an entity's life the first is told. */
const USES = new Set(["read", "written", "subject", "changed", "locked", "unlocked", "waited"]);
export const MOST_LIFE = 200;

/** What is asked for behind the path of a process: `calls/summary`, `entities/3`. Throws an ApiError for what there is not. */
export function answerFromCalls(taken: TakenCalls, path: string, words: URLSearchParams): unknown {
  const [what, which] = path.split("/") as [string, string | undefined];
  if (what === "touches") {
    return { total: taken.touches.length, rows: taken.touches.slice(0, Number(words.get("limit") ?? 100)) };
  }
  if (what === "entities") {
    return which === undefined ? pageOfEntities(taken.entities, words) : oneEntity(taken, Number(which));
  }
  switch (which) {
    case undefined:
      return pageOf(choose(taken, words), words, ({ call }) => call === Number(words.get("call")));
    case "summary":
      return taken.summary.source === "counts"
        ? { ...taken.summary, filters: filtersOf(countedPlaces(taken, without(words, "filter"))) }
        : sumUp(taken.summary, choose(taken, words), choose(taken, without(words, "filter")));
    case "chart":
      return chartOf(taken.summary, words, (inside) => choose(taken, inside));
    case "places":
      return placesOf(taken, words);
    case "tree":
      return treeOf(taken, words);
    case "lanes":
      return lanesOf(taken, words);
    default:
      return oneCall(taken, Number(which));
  }
}

/** What of a summary does not depend on which calls are asked for. */
export type Summed = Omit<CallSummary, "calls" | "names" | "names_omitted" | "filters" | "processes" | "threads">;

/** What is told of calls that are asked for, and `ofAnyFilter` of those that are by whatever filter. */
export function sumUp(
  { source, reason, total, omitted, untimed, from, to }: Summed,
  chosen: readonly CallDetails[],
  ofAnyFilter: readonly CallDetails[],
): CallSummary {
  const names = new Map<string, CallSummary["names"][number]>();
  const threads = new Map<number, number>();
  const processes = new Map<number, number>();
  for (const { name, kind, process, tid, error } of chosen) {
    processes.set(process, (processes.get(process) ?? 0) + 1);
    const key = `${kind} ${name}`;
    const known = names.get(key) ?? { name, kind, calls: 0, failed: 0 };
    names.set(key, { ...known, calls: known.calls + 1, failed: known.failed + (error === null ? 0 : 1) });
    if (tid !== null) {
      threads.set(tid, (threads.get(tid) ?? 0) + 1);
    }
  }
  const filters = new Map<CallFilter, number>();
  for (const { filter } of ofAnyFilter) {
    filters.set(filter, (filters.get(filter) ?? 0) + 1);
  }
  return {
    ...{ source, reason, total, omitted, untimed, from, to },
    filters: CALL_FILTERS.flatMap((filter) => (filters.has(filter) ? [{ filter, calls: filters.get(filter)! }] : [])),
    calls: chosen.length,
    names: [...names.values()].sort((a, b) => b.calls - a.calls || compare(a.name, b.name)),
    names_omitted: 0,
    processes: [...processes].sort(([a], [b]) => a - b).map(([process, calls]) => ({ process, calls })),
    threads: [...threads].sort(([a], [b]) => a - b).map(([tid, calls]) => ({ tid, calls })),
  };
}

/** By what calls are sorted; of what is not known there is one that is none of the others. */
const SORT_KEYS: Record<string, ((call: CallDetails) => number | string) | undefined> = {
  process: ({ process }) => process,
  thread: ({ process, tid }) => process * 2 ** 32 + (tid ?? 2 ** 32 - 1),
  name: ({ name }) => name,
  duration: ({ duration }) => duration ?? -1,
  block: ({ block }) => block,
};

/** A page of the calls `chosen`, which are in the order of time; `isNamed`: the one that is to be on it. */
export function pageOf(
  chosen: CallDetails[],
  words: URLSearchParams,
  isNamed: (call: CallDetails) => boolean,
): CallPage {
  const sortKey = SORT_KEYS[words.get("sort") ?? "time"];
  const sign = words.has("descending") ? -1 : 1;
  if (sortKey) {
    chosen.sort((a, b) => sign * compare(sortKey(a), sortKey(b)));
  } else if (sign < 0) {
    chosen.reverse();
  }
  const count = Number(words.get("count") ?? 100);
  const found = words.has("call") ? chosen.findIndex(isNamed) : -1;
  const at = found < 0 ? null : found;
  const offset = words.has("offset") || at === null ? Number(words.get("offset") ?? 0) : at - (at % Math.max(count, 1));
  return { total: chosen.length, at, offset, rows: chosen.slice(offset, offset + count) };
}

/** Places of calls of which nothing else is known. */
function countedPlaces({ places }: TakenCalls, words: URLSearchParams): PlaceRow[] {
  const [name, filter, text] = [words.get("name"), words.get("filter"), (words.get("text") ?? "").toLowerCase()];
  return places.rows.filter(
    (row) =>
      (name === null || row.name === name) &&
      (filter === null || row.filter === filter) &&
      (row.name ?? "").toLowerCase().includes(text),
  );
}

/** How many calls there are of which filter; blocks, where calls were not counted. */
function filtersOf(rows: readonly PlaceRow[]): CallSummary["filters"] {
  return CALL_FILTERS.flatMap((filter) => {
    const own = rows.filter((row) => row.filter === filter);
    return own.length > 0 ? [{ filter, calls: own.reduce((sum, { calls }) => sum + (calls ?? 1), 0) }] : [];
  });
}

function placesOf(taken: TakenCalls, words: URLSearchParams): CallPlaces {
  const source: CallSource = taken.summary.source;
  let rows: CallPlaces["rows"];
  if (source === "counts") {
    rows = countedPlaces(taken, words);
  } else {
    const places = new Map<string, CallPlaces["rows"][number]>();
    for (const { block, function: of, name: called } of choose(taken, words)) {
      const key = `${block} ${called}`;
      const known = places.get(key);
      places.set(key, { block, function: of, name: called, calls: (known?.calls ?? 0) + 1, filter: null });
    }
    rows = [...places.values()].sort(
      (a, b) => (b.calls ?? 0) - (a.calls ?? 0) || a.block - b.block || compare(a.name ?? "", b.name ?? ""),
    );
  }
  const isCounted = rows.every(({ calls }) => calls !== null);
  return { total: rows.length, calls: isCounted ? rows.reduce((sum, { calls }) => sum + calls!, 0) : null, rows };
}

/** `chooses` gives the calls that words ask for. */
export function chartOf(
  summary: Pick<Summed, "from" | "to">,
  words: URLSearchParams,
  chooses: (inside: URLSearchParams) => CallDetails[],
): PlainChart {
  const from = words.has("from") ? Number(words.get("from")) : (summary.from ?? 0);
  const to = words.has("to") ? Number(words.get("to")) : Math.max(summary.to ?? 0, from + 1);
  const bins = Math.min(Number(words.get("bins") ?? 100), to - from);
  const most = Number(words.get("series") ?? 8);
  const by = words.get("by") ?? "name";
  const wordOf = ({ tid, ...call }: CallDetails) =>
    by === "thread" ? String(tid ?? "unknown") : String(call[by as "name" | "kind" | "filter" | "process"]);
  // What was at the last edge is in the last bin.
  const inside = new URLSearchParams(words);
  inside.set("from", String(from));
  inside.set("to", words.has("to") ? String(to) : String(to + 1));
  const chosen = chooses(inside);
  const totals = new Map<string, number>();
  for (const call of chosen) {
    totals.set(wordOf(call), (totals.get(wordOf(call)) ?? 0) + 1);
  }
  const ranked = [...totals].sort(([, a], [, b]) => b - a).map(([word]) => word);
  const shown = ranked.length <= most ? ranked : ranked.slice(0, most - 1);
  const others = ranked.length - shown.length;
  const names = others > 0 ? [...shown, "others"] : shown;
  const place = new Map(shown.map((word, index) => [word, index]));
  const counts = new Array<number>(names.length * bins).fill(0);
  for (const call of chosen) {
    const bin = Math.min(Math.floor(((call.time - from) * bins) / (to - from)), bins - 1);
    counts[(place.get(wordOf(call)) ?? shown.length) * bins + bin]++;
  }
  return { from, to, bins, others, names, counts };
}

function oneCall(taken: TakenCalls, number: number): OpenedCall {
  const found = taken.calls[number] as CallDetails | undefined;
  if (!found) {
    throw new ApiError(400, `call: there are ${taken.calls.length}`);
  }
  const around: CallRow[] = [];
  for (let at = found.parent; at >= 0 && around.length < MOST_AROUND; at = taken.calls[at].parent) {
    around.unshift(taken.calls[at]);
  }
  const within = taken.calls.filter(({ parent }) => parent === number);
  const entities = new Map(taken.entities.rows.map((row) => [row.entity, row]));
  const references = found.references.slice(0, MOST_REFERENCES).map((one) => {
    const { name, kind } = entities.get(one.entity) ?? { name: "", kind: "other" };
    return { ...one, name, kind };
  });
  return { ...found, references, around, within: within.slice(0, MOST_WITHIN), n_within: within.length };
}

export function pageOfEntities(entities: TakenCalls["entities"], words: URLSearchParams): EntityPage {
  const [kind, text] = [words.get("kind"), (words.get("text") ?? "").toLowerCase()];
  const found = entities.rows.filter(
    (row) => (row.own || !words.has("own")) && (text === "" || row.name.toLowerCase().includes(text)),
  );
  const kinds: Record<string, number> = {};
  for (const row of found) {
    kinds[row.kind] = (kinds[row.kind] ?? 0) + 1;
  }
  const chosen = kind === null ? found : found.filter((row) => row.kind === kind);
  const offset = Number(words.get("offset") ?? 0);
  const rows = chosen.slice(offset, offset + Number(words.get("count") ?? 100));
  return { source: entities.source, total: chosen.length, offset, kinds, rows };
}

function oneEntity({ entities, touches, calls }: TakenCalls, entity: number): OpenedEntity {
  const found = entities.rows.find((row) => row.entity === entity);
  if (!found) {
    throw new ApiError(400, `no entity ${entity} in this trace`);
  }
  const of = touches.filter((one) => one.entity === entity);
  const life = lifeOf(calls, entity, of[0]?.process ?? 0);
  return {
    ...found,
    touches: of,
    parent_name: entities.rows.find((row) => row.entity !== null && row.entity === found.parent)?.name ?? null,
    life: life.slice(0, MOST_LIFE),
    life_total: life.length,
  };
}

/** What calls of a process did with an entity, by time. */
export function lifeOf(calls: readonly CallDetails[], entity: number, process: number): LifeEvent[] {
  const events: LifeEvent[] = [];
  const first = new Map<string, LifeEvent>();
  for (const { call, tid, time, name, references } of calls) {
    for (const role of new Set(references.filter((one) => one.entity === entity).map((one) => one.role))) {
      const known = USES.has(role) ? first.get(role) : undefined;
      if (known) {
        known.more++;
      } else {
        const event = { process, tid: tid ?? 0, call, time, name, role, more: 0 };
        events.push(event);
        first.set(role, event);
      }
    }
  }
  return events;
}
