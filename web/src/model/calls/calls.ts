// What was loaded of calls and entities, as signals, and what loads it while the view is there.
import { batch, computed, signal } from "@preact/signals";
import {
  type CallChart,
  type CallPlaces,
  type CallSummary,
  type EntityPage,
  type EntityRow,
  type OpenedCall,
  type OpenedEntity,
  fetchCall,
  fetchCallChart,
  fetchCallPlaces,
  fetchCallSummary,
  fetchEntities,
  fetchEntity,
  fetchTouches,
  type Touch,
} from "../../api/calls.ts";
import type { Parameters } from "../../api/client.ts";
import { chosenThreads, client, failure, processId, showCallOf, showProcess } from "../session.ts";
import { tell } from "../shell-state.ts";
import { visibleSpan } from "../timeline.ts";
import { calls, range, update, updateCalls } from "../view-state.ts";
import { callsPlace, isOfAll, processName } from "./call-processes.ts";
import { callTable, watchCallTable } from "./call-table.ts";
import { follow, followWhere, noCalls, onChange, where } from "./following.ts";

const CHART_BINS = 120;
const CHART_SERIES = 8;
const MOST_ENTITIES = 500;
const MOST_TOUCHES = 300;

export const callSummary = signal<CallSummary | null>(null);
export const callChart = signal<CallChart | null>(null);
export const callPlaces = signal<CallPlaces | null>(null);
export const entityPage = signal<EntityPage | null>(null);
/** The entity whose calls are listed. */
export const chosenEntity = signal<OpenedEntity | null>(null);
export const touches = signal<{ total: number; rows: Touch[] } | null>(null);
/** The call that was opened last. */
export const openCall = signal<OpenedCall | null>(null);
/** What is searched for among entities, and the one kind that is listed; null for all. */
export const entityText = signal("");
export const entityKind = signal<string | null>(null);
/** Whether also entities are listed that the process had nothing to do with. */
export const showsAllEntities = signal(false);

/** Words of a request that choose calls. */
export const chosen = computed<Parameters>(() => {
  const { text, name, isFailed, entity, kind, filter } = calls.value;
  const stretch = range.value;
  return {
    text: text || null,
    name,
    kind,
    filter,
    failed: isFailed,
    entity,
    // Threads are those of a process.
    threads: isOfAll.value ? null : (chosenThreads.value?.join(",") ?? null),
    from: stretch?.[0],
    to: stretch?.[1],
  };
});

/** The same without the stretch of time, which the chart and the lanes show around it. */
export const charted = computed<Parameters>(() => ({ ...chosen.value, from: null, to: null }));

/** What the chart tells apart: processes, where there are several. */
export const chartBy = computed(() => (calls.value.by === "process" && !isOfAll.value ? "name" : calls.value.by));

/** The chart with names as they are read: of processes the answer has their numbers. */
export const shownChart = computed<CallChart | null>(() => {
  const [chart, nameOf] = [callChart.value, processName.value];
  if (!chart || chartBy.value !== "process") {
    return chart;
  }
  const n = chart.names.length - Number(chart.others > 0);
  return { ...chart, names: chart.names.map((name, index) => (index < n ? nameOf(Number(name)) : name)) };
});

/** Whether single calls are known, with their times. */
export const hasCalls = computed(() => callSummary.value !== null && callSummary.value.source !== "counts");

/** Load what is wanted as long as the view is there; what is returned ends that. */
export function watchCalls(): () => void {
  const stops = [
    follow(callsPlace, () => chosen.value, fetchCallSummary, callSummary),
    watchCallTable(() =>
      hasCalls.value && callsPlace.value ? { place: callsPlace.value, words: sortedWords() } : null,
    ),
    follow(callsPlace, () => (hasCalls.value ? chartWords() : null), fetchCallChart, callChart),
    followWhere(
      () => (!isOfAll.value && (calls.value.part === "places" || !hasCalls.value) ? chosen.value : null),
      fetchCallPlaces,
      callPlaces,
    ),
    // Calls first: of half a million entities it takes seconds to count what was done with them.
    follow(
      callsPlace,
      () =>
        callTable.value || callSummary.value?.source === "counts" ? { ...entityWords(), count: MOST_ENTITIES } : null,
      fetchEntities,
      entityPage,
    ),
    follow(
      callsPlace,
      () => (calls.value.entity === null ? null : { entity: calls.value.entity }),
      (of, place, { entity }, signal) => fetchEntity(of, place, Number(entity), signal),
      chosenEntity,
    ),
    followWhere(
      () => (calls.value.part === "touches" ? {} : null),
      (of, place, _, signal) => fetchTouches(of, place, MOST_TOUCHES, signal),
      touches,
    ),
    onChange(
      () => [callsPlace.value],
      () => {
        openCall.value = null;
        noCalls.value = null;
      },
    ),
  ];
  return () => stops.forEach((stop) => stop());
}

/** Tables that the view has. */
export const CALL_TABLES = ["calls", "places", "entities", "touches"] as const;
export type CallTable = (typeof CALL_TABLES)[number];

/** Words that ask for what a table of the view has, on whichever page. */
export function wordsOfTable(of: CallTable): Parameters {
  return { calls: sortedWords, places: () => chosen.value, entities: entityWords, touches: () => ({}) }[of]();
}

function sortedWords(): Parameters {
  const { sort, isDescending } = calls.value;
  return { ...chosen.value, sort, descending: isDescending };
}

function chartWords(): Parameters {
  // What is in view of the timeline is time of one process.
  const span = isOfAll.value ? null : visibleSpan.value;
  const part = span && { from: Math.floor(span[0]), to: Math.ceil(span[1]) };
  return { ...charted.value, ...part, by: chartBy.value, bins: CHART_BINS, series: CHART_SERIES };
}

function entityWords(): Parameters {
  return { text: entityText.value || null, kind: entityKind.value, own: !showsAllEntities.value };
}

/** Select the block that made a call, and put the cursor where its thread was then; of another process look at that. */
export function showCall(row: { call: number; process: number; block: number }): void {
  if (isOfAll.peek()) {
    void goToCall(row.call, row.process);
    return;
  }
  batch(() => {
    updateCalls({ call: row.call });
    showBlock(row.block);
  });
  void readCall(row.call, true);
}

/** The same of a call of which only the number is known; without a process of the one that is looked at. */
export async function goToCall(call: number, process = processId.peek()): Promise<void> {
  if (process === processId.peek()) {
    updateCalls({ call });
  } else {
    showCallOf(process, call);
  }
  await readCall(call, true);
  if (isOpen(process, call) && openCall.peek()!.block >= 0) {
    update({ selection: { kind: "block", index: openCall.peek()!.block } });
  }
}

/** Whether a call is the one that was opened last. */
export function isOpen(process: number, call: number): boolean {
  const open = openCall.peek();
  return open?.process === process && open.call === call;
}

/** Read what is told of a call; `goes`: and go where its thread was. */
export async function readCall(call: number, goes: boolean): Promise<void> {
  const place = where.peek();
  if (!place) {
    return;
  }
  const isWanted = () => calls.peek().call === call && where.peek() === place;
  try {
    const found = await fetchCall(client(), place, call);
    if (!isWanted()) {
      return;
    }
    openCall.value = found;
    if (goes && found.position !== null && found.tid !== null) {
      update({ cursor: { thread: found.tid, position: found.position } });
    }
  } catch (error) {
    if (isWanted()) {
      failure.value = error instanceof Error ? error.message : String(error);
    }
  }
}

/** Select a block, unless it is not known. */
export function showBlock(block: number): void {
  if (block >= 0) {
    update({ selection: { kind: "block", index: block } });
  } else {
    tell("The block that called is not known");
  }
}

/** List the calls that have to do with an entity; of one without a number those of its thread or process. */
export function showEntity(row: Pick<EntityRow, "entity" | "tid" | "process">): void {
  if (row.entity !== null) {
    updateCalls({ entity: row.entity, part: calls.peek().part === "places" ? "places" : "calls", call: null });
  } else if (row.tid !== null) {
    update({ threads: [row.tid] });
  } else if (row.process !== null && row.process !== processId.peek()) {
    showProcess(row.process);
  } else {
    update({ threads: null });
  }
}
