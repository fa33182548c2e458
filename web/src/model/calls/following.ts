// What is loaded of a process, or of all, whenever what is wanted of it changes.
import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Where } from "../../api/calls.ts";
import { type ApiClient, ApiError, type Parameters } from "../../api/client.ts";
import { client, failure, isFile, processId } from "../session.ts";
import { viewState } from "../view-state.ts";

const DELAY_MS = 90;

/** Why nothing is told of calls, where the page is a file that has none of the process; null if there is no reason. */
export const noCalls = signal<string | null>(null);

const trace = computed(() => viewState.value.trace);

/** Changes only when another process is looked at. */
export const where = computed<Where<number> | null>(() => {
  const process = processId.value;
  return process < 0 ? null : { trace: trace.value, process };
});

type Ask<Place, T> = (of: ApiClient, place: Place, words: Parameters, signal: AbortSignal) => Promise<T>;

/** Ask the process that is looked at for what is wanted, as `follow` does. */
export function followWhere<T>(
  wanted: () => Parameters | null,
  ask: Ask<Where<number>, T>,
  found: Signal<T | null>,
): () => void {
  return follow(where, wanted, ask, found);
}

/** Ask for what is wanted whenever that changes; null asks for nothing. Of a place that was left nothing stays. */
export function follow<Place extends Where, T>(
  at: ReadonlySignal<Place | null>,
  wanted: () => Parameters | null,
  ask: Ask<Place, T>,
  found: Signal<T | null>,
): () => void {
  let timer = 0;
  let running: AbortController | null = null;
  let before: Place | null = null;
  const key = computed(() => JSON.stringify([at.value, wanted()]));
  const stop = effect(() => {
    const [place, words] = JSON.parse(key.value) as [Place | null, Parameters | null];
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
export function onChange(read: () => unknown, work: () => void): () => void {
  const key: ReadonlySignal<string> = computed(() => JSON.stringify(read()));
  let last = key.peek();
  return effect(() => {
    if (key.value !== last) {
      last = key.value;
      work();
    }
  });
}
