// What was loaded of calls and entities, as signals, and what loads it while the view is there.
import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import {
  type CallChart,
  type CallDetails,
  type CallPage,
  type CallPlaces,
  type CallSummary,
  type EntityPage,
  type EntityRow,
  fetchCall,
  fetchCallChart,
  fetchCallPlaces,
  fetchCalls,
  fetchCallSummary,
  fetchEntities,
  fetchEntity,
  fetchTouches,
  type Touch,
} from "../../api/calls.ts";
import { ApiError, type Parameters } from "../../api/client.ts";
import { chosenThreads, client, failure, isFile, processId, showProcess } from "../session.ts";
import { tell } from "../shell-state.ts";
import { visibleSpan } from "../timeline.ts";
import { calls, range, update, updateCalls, viewState } from "../view-state.ts";

export const PAGE_ROWS = 200;
const CHART_BINS = 120;
const CHART_SERIES = 8;
const MOST_ENTITIES = 500;
const MOST_TOUCHES = 300;
const DELAY_MS = 90;

export const callSummary = signal<CallSummary | null>(null);
export const callPage = signal<CallPage | null>(null);
export const callChart = signal<CallChart | null>(null);
export const callPlaces = signal<CallPlaces | null>(null);
export const entityPage = signal<EntityPage | null>(null);
/** The entity whose calls are listed. */
export const chosenEntity = signal<(EntityRow & { touches: Touch[] }) | null>(null);
export const touches = signal<{ total: number; rows: Touch[] } | null>(null);
/** The call that was opened last. */
export const openCall = signal<CallDetails | null>(null);
/** Why nothing is told of calls, where the page is a file that has none of the process; null if there is no reason. */
export const noCalls = signal<string | null>(null);
/** Which page of the table is looked at; null for the one with the call of the address, or the first. */
export const pageNumber = signal<number | null>(null);
/** What is searched for among entities, and the one kind that is listed; null for all. */
export const entityText = signal("");
export const entityKind = signal<string | null>(null);
/** Whether also entities are listed that the process had nothing to do with. */
export const showsAllEntities = signal(false);

interface Where {
  trace: number;
  process: number;
}

const where = computed<Where | null>(() => {
  const process = processId.value;
  return process < 0 ? null : { trace: viewState.value.trace, process };
});

/** Words of a request that choose calls. */
const chosen = computed<Parameters>(() => {
  const { text, name, isFailed, entity } = calls.value;
  const stretch = range.value;
  return {
    text: text || null,
    name,
    failed: isFailed,
    entity,
    threads: chosenThreads.value?.join(",") ?? null,
    from: stretch?.[0],
    to: stretch?.[1],
  };
});

/** The same without the stretch of time, which the chart shows around it. */
const charted = computed<Parameters>(() => ({ ...chosen.value, from: null, to: null }));

/** Whether single calls are known, with their times. */
export const hasCalls = computed(() => callSummary.value !== null && callSummary.value.source !== "counts");

/** Load what is wanted as long as the view is there; what is returned ends that. */
export function watchCalls(): () => void {
  const stops = [
    follow(() => chosen.value, fetchCallSummary, callSummary),
    follow(() => (hasCalls.value ? pageWords() : null), fetchCalls, callPage),
    follow(() => (hasCalls.value ? chartWords() : null), fetchCallChart, callChart),
    follow(() => (calls.value.part === "places" || !hasCalls.value ? chosen.value : null), fetchCallPlaces, callPlaces),
    follow(() => ({ ...entityWords(), count: MOST_ENTITIES }), fetchEntities, entityPage),
    follow(
      () => (calls.value.entity === null ? null : { entity: calls.value.entity }),
      (of, place, { entity }, signal) => fetchEntity(of, place, Number(entity), signal),
      chosenEntity,
    ),
    follow(
      () => (calls.value.part === "touches" ? {} : null),
      (of, place, _, signal) => fetchTouches(of, place, MOST_TOUCHES, signal),
      touches,
    ),
    // Other calls are read from their first page.
    onChange(
      () => [where.value, chosen.value, calls.value.sort, calls.value.isDescending],
      () => {
        pageNumber.value = null;
      },
    ),
    onChange(
      () => [where.value],
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

function pageWords(): Parameters {
  const { call } = calls.value;
  const page = pageNumber.value;
  const place = page === null ? { call, offset: call === null ? 0 : null } : { offset: page * PAGE_ROWS };
  return { ...sortedWords(), ...place, count: PAGE_ROWS };
}

function chartWords(): Parameters {
  const span = visibleSpan.value;
  const part = span && { from: Math.floor(span[0]), to: Math.ceil(span[1]) };
  return { ...charted.value, ...part, by: calls.value.by, bins: CHART_BINS, series: CHART_SERIES };
}

function entityWords(): Parameters {
  return { text: entityText.value || null, kind: entityKind.value, own: !showsAllEntities.value };
}

/** Ask for what is wanted whenever that changes; null asks for nothing. Of a process that was left nothing stays. */
function follow<T>(
  wanted: () => Parameters | null,
  ask: (of: ReturnType<typeof client>, place: Where, words: Parameters, signal: AbortSignal) => Promise<T>,
  found: Signal<T | null>,
): () => void {
  let timer = 0;
  let running: AbortController | null = null;
  let before: Where | null = null;
  const key = computed(() => JSON.stringify([where.value, wanted()]));
  const stop = effect(() => {
    const [place, words] = JSON.parse(key.value) as [Where | null, Parameters | null];
    clearTimeout(timer);
    running?.abort();
    const isSame = place !== null && before?.trace === place.trace && before.process === place.process;
    before = place;
    if (!isSame || words === null) {
      found.value = null;
    }
    if (place === null || words === null) {
      return;
    }
    timer = window.setTimeout(() => {
      const current = (running = new AbortController());
      ask(client(), place, words, current.signal).then(
        (answer) => {
          if (!current.signal.aborted) {
            found.value = answer;
          }
        },
        (error: unknown) => {
          if (!current.signal.aborted) {
            // Of a file it is the same with whatever is asked.
            const isMissing = isFile.peek() && error instanceof ApiError && error.status === 404;
            (isMissing ? noCalls : failure).value = error instanceof Error ? error.message : String(error);
          }
        },
      );
    }, DELAY_MS);
  });
  return () => {
    stop();
    clearTimeout(timer);
    running?.abort();
  };
}

/** Do something whenever what is read changes, not at first. */
function onChange(read: () => unknown, work: () => void): () => void {
  const key: ReadonlySignal<string> = computed(() => JSON.stringify(read()));
  let last = key.peek();
  return effect(() => {
    if (key.value !== last) {
      last = key.value;
      work();
    }
  });
}

/** Select the block that made a call, and put the cursor where its thread was then. */
export function showCall(row: { call: number; block: number }): void {
  batch(() => {
    pageNumber.value = pageNumber.peek() ?? Math.floor((callPage.peek()?.offset ?? 0) / PAGE_ROWS);
    updateCalls({ call: row.call });
    showBlock(row.block);
  });
  void readCall(row.call, true);
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
