// The recorded calls around the cursor, in the order of execution of its thread: what is made there, and what is open.
import { computed, effect, signal } from "@preact/signals";
import { fetchNearCalls, type NearCalls, type PlacedCall } from "../../api/calls.ts";
import { replayState } from "../replay.ts";
import { client } from "../session.ts";
import { cursor } from "../view-state.ts";
import { callLanes } from "./call-lanes.ts";
import { where } from "./following.ts";
import { firstFrom, hasRoom, openAround } from "./placed-calls.ts";

/** So many calls are asked for in front of the cursor and behind it, and so many are there before more are asked for. */
const AROUND = 60;
const LEAST_AROUND = 15;
const DELAY_MS = 60;

/** Calls of a thread, as they were asked for last; null where none are recorded, or the cursor is on no thread. */
export const nearCalls = signal<(NearCalls & { thread: number }) | null>(null);

/** Whether the process has recorded calls. */
export const isRecorded = computed(() => (callLanes.value?.deep ?? 0) > 0);

/** Which of the near calls is the first at the cursor or behind it; -1 where that is not known. */
export const nearRow = computed(() => {
  const [near, at] = [nearCalls.value, cursor.value];
  return near && at && near.thread === at.thread ? firstFrom(near.rows, at.position) : -1;
});

/** The call that the block makes that comes next at the cursor; null if it makes none. */
export const madeHere = computed<PlacedCall | null>(() => {
  const row = nearCalls.value?.rows[nearRow.value];
  return row && row.position === cursor.value?.position ? row : null;
});

/** Calls that have not returned at the cursor, the outermost first: those around it whose blocks are in the call stack. */
export const openCalls = computed<PlacedCall[]>(() => {
  const [near, at, state] = [nearCalls.value, cursor.value, replayState.value];
  if (!near || !at || nearRow.value < 0 || state?.thread !== at.thread || state.position !== at.position) {
    return [];
  }
  return openAround(near, nearRow.value - 1, state.calls?.map(({ block }) => block) ?? [], state.time);
});

/** The call that is made at the cursor, else the innermost that is open there; null for none. */
export const hereCall = computed(() => madeHere.value?.call ?? openCalls.value.at(-1)?.call ?? null);

/** Keep what is near the cursor up to date; what is returned ends that. */
export function watchNearCalls(): () => void {
  let timer = 0;
  let running: AbortController | null = null;
  const stop = effect(() => {
    const [place, at] = [where.value, cursor.value];
    clearTimeout(timer);
    if (!place || !at || !isRecorded.value) {
      running?.abort();
      nearCalls.value = null;
      return;
    }
    const near = nearCalls.peek();
    if (near?.thread === at.thread && hasRoom(near, at.position, LEAST_AROUND)) {
      return;
    }
    timer = window.setTimeout(() => {
      running?.abort();
      const current = (running = new AbortController());
      const wanted = { position: at.position, count: AROUND };
      fetchNearCalls(client(), place, at.thread, wanted, current.signal).then(
        (found) => {
          if (!current.signal.aborted) {
            nearCalls.value = { ...found, thread: at.thread };
          }
        },
        () => undefined,
      );
    }, DELAY_MS);
  });
  const stopLeft = effect(() => {
    where.value;
    nearCalls.value = null;
  });
  return () => {
    stop();
    stopLeft();
    clearTimeout(timer);
    running?.abort();
    nearCalls.value = null;
  };
}
