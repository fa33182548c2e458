// What was loaded of the traces, as signals, and what loads it: views read these and never ask the server for graphs.
import { batch, computed, effect, signal } from "@preact/signals";
import { ApiClient, ApiError } from "../api/client.ts";
import { FileSource } from "../api/file-source.ts";
import { type Blocks, type Counts, type Functions, fetchBlocks, fetchCounts, fetchFunctions } from "../api/graph.ts";
import { ServerSource } from "../api/server-source.ts";
import { fetchSummary, fetchTraces, type TraceName, type TraceSummary } from "../api/traces.ts";
import { readElement } from "../base/embedded.ts";
import { MOST_BLOCKS } from "../protocol/generated.ts";
import { formatFragment, parseFragment } from "./address-bar.ts";
import { tell } from "./shell-state.ts";
import { type Calls, type Compare, INITIAL_STATE, threads, update, type ViewState, viewState } from "./view-state.ts";

const ADDRESS_DELAY_MS = 250;

export const traceNames = signal<TraceName[]>([]);
export const summary = signal<TraceSummary | null>(null);
export const functions = signal<Functions | null>(null);
/** All blocks of the process; null while they are loaded, and where they are more than MOST_BLOCKS. */
export const blocks = signal<Blocks | null>(null);
/** Executions by the threads chosen. */
export const counts = signal<Counts | null>(null);
/** What could not be done, for the reader; null if nothing. */
export const failure = signal<string | null>(null);
/** The status of the answer that told of it: 403 without the token, 422 for a damaged trace, 0 for no answer. */
export const failureStatus = signal<number | null>(null);
/** Whether the answers are in the file that the page is in, and nobody can be asked for others. */
export const isFile = signal(false);
/** What of the trace is then not in the file, in words. */
export const leftOut = signal<readonly string[]>([]);

/** Whether a recording is looked at that goes on; what is loaded then comes from live-session.ts. */
export const isLive = signal(false);

/** Whether it was counted how often code ran: mode coverage only knows what did. */
export const isCounted = computed(() => summary.value?.mode !== "coverage");

/** Whether there is code to look at: in events of probes alone there is none. */
export const hasCode = computed(() => isLive.value || (summary.value?.totals.blocks ?? 1) > 0);

/** The process that is looked at; -1 until the trace is known. */
export const processId = computed(() => {
  const known = summary.value;
  const asked = viewState.value.process;
  if (!known || known.processes.length === 0) {
    return -1;
  }
  if (known.processes.some((process) => process.process_id === asked)) {
    return asked;
  }
  if (isLive.value) {
    // The server chose one.
    return functions.value?.processId ?? -1;
  }
  const work = known.processes.map((process) => process.threads.reduce((sum, thread) => sum + thread.instructions, 0));
  return known.processes[work.indexOf(Math.max(...work))].process_id;
});

export const process = computed(
  () => summary.value?.processes.find((one) => one.process_id === processId.value) ?? null,
);

/** Ids of the threads of the process that are looked at; null for all. The address may name others, which are none. */
export const chosenThreads = computed(() => {
  const own = process.value?.threads;
  return (own && threads.value?.filter((tid) => own.some((thread) => thread.tid === tid))) ?? null;
});

let token = "";
let theClient: ApiClient | null = null;

/** Asks the server. Not before `openSession`. */
export function client(): ApiClient {
  if (!theClient) {
    throw new Error("the session is not open yet");
  }
  return theClient;
}

/** What lets the page ask. Not before `openSession`. */
export function sessionToken(): string {
  return token;
}

/** Read the address, load what it tells of, and keep the address as the state is. */
export function openSession(): void {
  const first = parseFragment(location.hash);
  token = first.token;
  viewState.value = first.state;
  isLive.value = first.isLive;
  if (readElement("clew-index") === null) {
    theClient = new ApiClient(new ServerSource(token));
  } else {
    openFile();
  }
  keepAddress();
  const traceIndex = computed(() => viewState.value.trace);
  effect(() => {
    if (!isLive.value) {
      run(async () => {
        traceNames.value = (await fetchTraces(client())).traces;
      });
    }
  });
  effect(() => {
    const trace = traceIndex.value;
    if (isLive.value) {
      return;
    }
    reset();
    run(async () => {
      const found = await fetchSummary(client(), trace);
      if (traceIndex.peek() === trace) {
        batch(() => {
          summary.value = found;
          if (!hasCode.peek() && viewState.peek().view === INITIAL_STATE.view) {
            update({ view: "calls" });
          }
        });
      }
    });
  });
  let graph: GraphRequest | null = null;
  effect(() => {
    const id = processId.value;
    const chosen = threads.value;
    if (id < 0 || isLive.value) {
      graph = null;
      return;
    }
    if (graph?.process !== id) {
      graph = loadGraph(traceIndex.peek(), id);
    }
    loadCounts(graph, chosen);
  });
}

/** Have the answers that the file has. */
function openFile(): void {
  const source = new FileSource(readElement);
  theClient = new ApiClient(source);
  isFile.value = true;
  run(async () => {
    leftOut.value = await source.leftOut();
  });
  effect(() => {
    if (threads.value !== null) {
      update({ threads: null });
      tell("This file tells of all threads together; clew view shows single ones");
    }
  });
}

function reset(): void {
  batch(() => {
    summary.value = null;
    functions.value = null;
    blocks.value = null;
    counts.value = null;
    failure.value = null;
  });
}

/** A process whose graph is asked for. */
interface GraphRequest {
  trace: number;
  process: number;
  functions: Promise<Functions>;
  /** Whether the summary says that it has few enough blocks, which then need not wait for the functions. */
  isSmall: boolean;
}

function loadGraph(trace: number, id: number): GraphRequest {
  batch(() => {
    functions.value = null;
    blocks.value = null;
    counts.value = null;
  });
  const images = process.peek()?.images ?? [];
  const isSmall = images.reduce((sum, image) => sum + image.blocks, 0) <= MOST_BLOCKS;
  const asked: GraphRequest = { trace, process: id, functions: fetchFunctions(client(), trace, id), isSmall };
  const early = isSmall ? fetchBlocks(client(), trace, id) : null;
  const isWanted = () => viewState.peek().trace === trace && processId.peek() === id;
  run(async () => {
    const loaded = await asked.functions;
    if (isWanted()) {
      functions.value = loaded;
    }
  });
  run(async () => {
    const found = await early;
    const loaded = await asked.functions;
    if (loaded.nBlocks <= MOST_BLOCKS) {
      const all = found ?? (await fetchBlocks(client(), trace, id));
      if (isWanted()) {
        blocks.value = all;
      }
    }
  });
  return asked;
}

function loadCounts(asked: GraphRequest, chosen: readonly number[] | null): void {
  const { trace, process: id, isSmall } = asked;
  const isThreaded = (process.peek()?.threads.length ?? 0) > 1;
  run(async () => {
    const hasBlocks = isSmall || (await asked.functions).nBlocks <= MOST_BLOCKS;
    const wanted = { blocks: hasBlocks, owners: hasBlocks && isThreaded };
    const found = await fetchCounts(client(), trace, id, chosen, wanted);
    const of = await asked.functions;
    if (functions.peek() === of && viewState.peek().threads === chosen) {
      counts.value = found;
    }
  });
}

function run(work: () => Promise<void>): void {
  work().catch((error: unknown) => {
    failureStatus.value = error instanceof ApiError ? error.status : null;
    failure.value = error instanceof Error ? error.message : String(error);
  });
}

/** The address follows the state, and a changed address (a link, the way back) the state follows. */
function keepAddress(): void {
  let timer = 0;
  const write = () => {
    const fragment = `#${formatFragment(token, viewState.peek(), isLive.peek())}`;
    if (fragment === location.hash) {
      return;
    }
    const isStep = isOtherPlace(parseFragment(location.hash).state, viewState.peek());
    if (isStep) {
      history.pushState(null, "", fragment);
    } else {
      history.replaceState(null, "", fragment);
    }
  };
  effect(() => {
    viewState.value;
    isLive.value;
    clearTimeout(timer);
    timer = window.setTimeout(write, ADDRESS_DELAY_MS);
  });
  // Not hashchange, which comes later: between the two the address would be written as the state still was.
  window.addEventListener("popstate", () => {
    viewState.value = parseFragment(location.hash).state;
  });
}

/** Whether going from one to the other is a step that the way back should undo: another thing looked at, not another angle. */
function isOtherPlace(from: ViewState, to: ViewState): boolean {
  const whatOf = ({ trace, process, part, selection }: Compare) => [trace, process, part, selection];
  const callsOf = ({ part, name, entity, call, isOfAll }: Calls) => [part, name, entity, call, isOfAll];
  const place = (state: ViewState) =>
    JSON.stringify([
      [state.trace, state.process, state.view, state.layout, state.selection],
      whatOf(state.compare),
      callsOf(state.calls),
    ]);
  return place(from) !== place(to);
}

/** Whether the server was stopped from this page: nothing can be asked for any more. */
export const isStopped = signal(false);

/** End the server. Rejects with an ApiError where that could not be asked for. */
export async function stopServer(): Promise<void> {
  await client().command("stop");
  isStopped.value = true;
}

/** The address of what is looked at now, to be copied. */
export function currentLink(): string {
  return `${location.href.split("#")[0]}#${formatFragment(token, viewState.value, isLive.value)}`;
}

/** Look at a process of the trace, and at its calls alone. What was selected in another one means nothing in it. */
export function showProcess(id: number): void {
  const calls = { ...viewState.peek().calls, call: null, isOfAll: false };
  update({ process: id, ...NOTHING_SELECTED, range: null, calls });
}

/** Look at the process of a call among those of all, which go on being looked at. */
export function showCallOf(id: number, call: number): void {
  update({ process: id, ...NOTHING_SELECTED, calls: { ...viewState.peek().calls, call } });
}

const NOTHING_SELECTED = { threads: null, selection: null, cursor: null, camera: null };
