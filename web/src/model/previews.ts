// What each thread of a process executed, by function: for the small pictures of threads, and for shares by thread.
// Loaded on demand; the current process' functions are there already.
import { computed, effect, signal } from "@preact/signals";
import { type Functions, fetchFunctions, fetchThreadFunctions, type ThreadFunctions } from "../api/graph.ts";
import { client, functions, processId } from "./session.ts";
import { viewState } from "./view-state.ts";

export interface Preview {
  functions: Functions;
  byThread: ThreadFunctions;
}

const MOST_KEPT = 48;

/** By process_id; `null` while it is loaded, an Error where that failed. Of one trace at a time. */
export const previews = signal<ReadonlyMap<number, Preview | Error | null>>(new Map());

/** That of the process that is looked at, if it was asked for. */
export const currentPreview = computed(() => {
  const found = previews.value.get(processId.value);
  return found && !(found instanceof Error) ? found : null;
});

let ofTrace = -1;

/** Load what the threads of a process executed, unless it is there. */
export function loadPreview(process: number): void {
  const trace = viewState.peek().trace;
  if (trace !== ofTrace) {
    ofTrace = trace;
    previews.value = new Map();
  }
  if (previews.peek().has(process)) {
    return;
  }
  keep(process, null);
  void (async () => {
    const known = functions.peek();
    const [of, byThread] = await Promise.all([
      known?.processId === process ? known : fetchFunctions(client(), trace, process),
      fetchThreadFunctions(client(), trace, process),
    ]);
    return { functions: of, byThread };
  })()
    .catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))))
    .then((found) => {
      if (ofTrace === trace) {
        keep(process, found);
      }
    });
}

/** Load it for the process that is looked at, whenever that changes, if it has several threads. */
export function keepPreviews(): void {
  effect(() => {
    const of = functions.value;
    if (of && of.processId === processId.value && of.threads.length > 1) {
      loadPreview(of.processId);
    }
  });
}

function keep(process: number, found: Preview | Error | null): void {
  const kept = new Map(previews.peek());
  kept.delete(process);
  kept.set(process, found);
  for (const old of [...kept.keys()].slice(0, Math.max(kept.size - MOST_KEPT, 0))) {
    kept.delete(old);
  }
  previews.value = kept;
}

/** Instructions by function of one thread, or of all. */
export function instructionsByFunction({ functions: of, byThread }: Preview, tid: number | null): Float64Array {
  const total = new Float64Array(of.count);
  const wanted = tid === null ? -1 : of.threads.indexOf(tid);
  for (let row = 0; row < byThread.thread.length; row++) {
    if (tid === null || byThread.thread[row] === wanted) {
      total[byThread.function[row]] += byThread.instructions[row];
    }
  }
  return total;
}
