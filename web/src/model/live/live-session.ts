// The recording that goes on, as signals: what is shown of it goes where that of a finished trace does (session.ts), so that
// views need not know. What comes is taken at once; what is shown follows at a pace that leaves the page its time.
import { batch, computed, effect, signal } from "@preact/signals";
import { LiveConnection } from "../../api/live.ts";
import type { ThreadSummary, TraceSummary } from "../../api/traces.ts";
import { freshFunctions, recentBlocks } from "../recent.ts";
import { blocks, counts, functions, isLive, processId, sessionToken, summary } from "../session.ts";
import { prefersReducedMotion } from "../settings.ts";
import { tell } from "../shell-state.ts";
import { type Selection, selection, update, viewState } from "../view-state.ts";
import { LiveActivity, type Newest, pulseStrength, type ThreadActivity } from "./live-activity.ts";
import { LiveGraph, type LiveMeta, type LiveProcess, type LiveThread } from "./live-graph.ts";
import { buildCounts, buildStructure, type LiveStructure } from "./live-picture.ts";
import { followLiveLayout, placesBytes } from "./live-layout.ts";

const LEAST_SHOWN_MS = 100;
/** So many times as long as showing took is waited before it is done again. */
const REST = 2;
/** So long, and so many at a time, what is new has a label before others. */
const FRESH_MS = 4000;
const MOST_FRESH = 8;
const PULSE_MS = 100;

export interface LiveState {
  meta: LiveMeta;
  processes: readonly LiveProcess[];
  newest: readonly Newest[];
  threads: readonly ThreadActivity[];
  threadsEnded: number;
  /** Bytes of all that the page keeps of the recording. */
  bytes: number;
}

/** What is known of the recording; null before the first frame. */
export const liveState = signal<LiveState | null>(null);
/** Whether the connection is there. */
export const isConnected = signal(true);
/** Whether the picture stands still; the program does not. */
export const isPaused = signal(false);
/** Frames that came since the picture was paused. */
export const framesBehind = signal(0);

const graph = new LiveGraph();
const activity = new LiveActivity();
let structure: LiveStructure | null = null;
/** Rows are the same as long as this is. */
let generation = 0;
let connection: LiveConnection | null = null;
let isStale = { structure: false, counts: false };
let shownAt = 0;
let shownForMs = 0;
let timer = 0;

/** Go with the recording, if the address is of one. */
export function openLive(): void {
  if (!isLive.peek()) {
    return;
  }
  connection = new LiveConnection(
    sessionToken(),
    {
      place: () => graph.place,
      onConnection: (isOpen) => (isConnected.value = isOpen),
      onFrame: (frame) => {
        const change = graph.apply(frame);
        activity.note(graph, change, performance.now());
        isStale.structure ||= change.hasNewStructure;
        isStale.counts = true;
        if (change.isWhole) {
          structure = null;
          generation++;
        }
        if (isPaused.peek()) {
          framesBehind.value++;
        }
        // What is newest is told at once; the picture follows when it can.
        tellState(performance.now());
        showSoon();
      },
    },
    viewState.peek().process,
  );
  const asked = computed(() => viewState.value.process);
  const ends = [
    effect(() => connection?.watch(asked.value)),
    effect(() => {
      if (viewState.value.view !== "graph") {
        update({ view: "graph" });
        tell("The other views come with the finished trace");
      }
    }),
    followLiveLayout(
      (drawn) => (structure && drawn.functions === structure.functions ? structure : null),
      () => generation,
    ),
    pulse(),
  ];
  const stopWatching = effect(() => {
    if (liveState.value?.meta.state === "published" && !isPaused.value) {
      stopWatching();
      ends.forEach((end) => end());
      goOver();
    }
  });
}

export function setPaused(isWanted: boolean): void {
  isPaused.value = isWanted;
  framesBehind.value = 0;
  if (!isWanted) {
    showSoon();
  }
}

/** Break the connection: it comes back, and nothing is lost. */
export function dropConnection(): void {
  connection?.drop();
}

/** Select what a row of the newest tells of. */
export function selectRow(row: number): void {
  const index = structure && row < structure.blockOfRow.length ? structure.blockOfRow[row] : -1;
  if (index >= 0) {
    update({ selection: { kind: "block", index } });
  }
}

function showSoon(): void {
  if (timer === 0) {
    const wait = Math.max(shownAt + Math.max(LEAST_SHOWN_MS, REST * shownForMs) - performance.now(), 0);
    timer = window.setTimeout(() => {
      timer = 0;
      show();
    }, wait);
  }
}

/** What the panel tells. */
function tellState(now: number): void {
  const { meta } = graph;
  activity.sample(graph.threads, now);
  liveState.value = meta && {
    meta,
    processes: graph.processes,
    newest: activity.newest,
    threads: activity.rows(graph.threads),
    threadsEnded: graph.totals?.threads_ended ?? 0,
    bytes: graph.bytes + activity.bytes + placesBytes(),
  };
}

/** Have the views show what is known. */
function show(): void {
  const { meta } = graph;
  if (!meta || !isLive.peek()) {
    return;
  }
  const started = performance.now();
  batch(() => {
    if (!isPaused.peek() && graph.totals) {
      showGraph();
    }
    summary.value = summarize(meta);
  });
  shownAt = performance.now();
  shownForMs = shownAt - started;
}

function showGraph(): void {
  if (isStale.structure || !structure) {
    const before = structure;
    structure = buildStructure(graph);
    const now = structure;
    if (before) {
      update({ selection: moveSelection(selection.peek(), before, now) });
    }
    functions.value = now.functions;
    blocks.value = now.blocks;
  }
  freshFunctions.value = findFresh(structure);
  if (isStale.counts) {
    counts.value = buildCounts(graph, structure);
  }
  isStale = { structure: false, counts: false };
}

/** The functions with new code or a new caller of late. */
function findFresh({ blocks: of, blockOfRow }: LiveStructure): ReadonlySet<number> {
  const since = performance.now() - FRESH_MS;
  const rows = activity.newest.slice(0, MOST_FRESH).filter(({ at, row }) => at > since && blockOfRow[row] >= 0);
  return new Set(rows.map(({ row }) => of.function[blockOfRow[row]]));
}

/** What is selected, by its index of now. */
function moveSelection(chosen: Selection | null, before: LiveStructure, now: LiveStructure): Selection | null {
  if (!chosen) {
    return null;
  }
  const isBlock = chosen.kind === "block";
  const row = (isBlock ? before.blockRows : before.functionRows)[chosen.index] as number | undefined;
  const index = row === undefined ? -1 : ((isBlock ? now.blockOfRow : now.functionOfRow)[row] ?? -1);
  return index < 0 ? null : index === chosen.index ? chosen : { kind: chosen.kind, index };
}

/** What the header and the panels tell of a trace, as far as it is known while it is made. */
function summarize(meta: LiveMeta): TraceSummary {
  const { totals } = graph;
  const times = { started: 0, ended: meta.elapsed_ns, start_ns: "0", end_ns: "0" };
  return {
    ...times,
    name: meta.name,
    format: 0,
    command: meta.command,
    mode: meta.mode,
    clew_version: "",
    totals: {
      instructions: totals?.instructions ?? 0,
      block_executions: totals?.executions ?? 0,
      blocks: structure?.blocks.count ?? 0,
      edges: structure?.edgeRows.length ?? 0,
      edge_executions: 0,
      lost_records: 0,
    },
    losses: {},
    releases: [],
    warnings: [],
    stored_bytes: 0,
    processes: graph.processes.map((one) => ({
      ...times,
      process_id: one.number,
      pid: one.pid,
      parent_pid: one.parent_pid,
      executable: one.executable,
      command: [one.command],
      exit: {},
      went_on_unfollowed: false,
      api_calls: 0,
      threads: one.number === meta.process ? graph.threads.map((thread) => summarizeThread(thread, times)) : [],
      images: [],
    })),
  };
}

function summarizeThread(thread: LiveThread, times: Pick<ThreadSummary, "started" | "ended" | "start_ns" | "end_ns">) {
  const { tid, name, instructions } = thread;
  const unknown = { parent_tid: 0, tags: 0, stored_bytes: 0, end: "exit" as const, lost_records: 0 };
  return { ...times, ...unknown, tid, name, instructions, block_executions: thread.executions };
}

/** Busy blocks pulse, as what was executed just before the cursor lights up in a finished trace. Returns what ends that. */
function pulse(): () => void {
  let shown = activity.busy;
  const beat = window.setInterval(() => {
    const isStill = prefersReducedMotion();
    const { busy } = activity;
    if (document.hidden || isPaused.peek() || !structure || (busy.length === 0 && shown.length === 0)) {
      return;
    }
    if (isStill && busy === shown) {
      return;
    }
    shown = busy;
    const strength = pulseStrength(performance.now(), isStill);
    const { blockOfRow } = structure;
    recentBlocks.value = busy
      .filter(({ row }) => row < blockOfRow.length && blockOfRow[row] >= 0)
      .map(({ row, weight }) => ({ block: blockOfRow[row], weight: weight * strength }));
  }, PULSE_MS);
  return () => {
    clearInterval(beat);
    recentBlocks.value = null;
    freshFunctions.value = new Set();
  };
}

/** The trace is there: look at the same in it. */
function goOver(): void {
  connection?.close();
  const chosen = selection.peek();
  const address = chosen && structure && addressOf(chosen, structure);
  const process = graph.meta?.process ?? -1;
  batch(() => {
    update({ process, selection: null, camera: null, threads: null });
    isLive.value = false;
    liveState.value = null;
  });
  tell("The program has ended: this is its trace");
  if (!chosen || !address) {
    return;
  }
  const stop = effect(() => {
    const [of, found] = [functions.value, blocks.value];
    if (!of || !found || of.processId !== processId.value) {
      return;
    }
    const index =
      chosen.kind === "function"
        ? of.address.indexOf(address.pc)
        : found.address.findIndex((pc, block) => pc === address.pc && found.codeVersion[block] === address.version);
    queueMicrotask(() => stop());
    if (index >= 0) {
      update({ selection: { kind: chosen.kind, index } });
    }
  });
}

function addressOf(chosen: Selection, { functions: of, blocks: found }: LiveStructure) {
  return chosen.kind === "function"
    ? { pc: of.address[chosen.index], version: 0 }
    : { pc: found.address[chosen.index], version: found.codeVersion[chosen.index] };
}
