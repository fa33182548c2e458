// The timeline of the threads that are looked at: loaded as a whole, and again for the part of time that is in view.
import { computed, effect, signal } from "@preact/signals";
import { fetchTimeline, type Timeline, type TimelineThread } from "../api/timeline.ts";
import { moveInside } from "../base/time-axis.ts";
import { TICK_KIND } from "../protocol/generated.ts";
import { openBookmarks } from "./bookmarks.ts";
import { reachOver, timeAt } from "./replay-steps.ts";
import { chosenThreads, client, failure, processId, summary } from "./session.ts";
import { viewState } from "./view-state.ts";

const DELAY_MS = 90;
const MOST_BINS = 4096;

/** All of time, and what is in view of it; the same at first. */
export const wholeTimeline = signal<Timeline | null>(null);
export const shownTimeline = signal<Timeline | null>(null);
/** The part of time in view, ns since the recording began; null for all. */
export const visibleSpan = signal<readonly [number, number] | null>(null);
/** How many bins the lanes have room for. */
export const binsWanted = signal(1000);
/** So many times as many bins as there is room for are drawn, and not asked for again. */
const MOST_TOO_MANY = 4;

export const wholeSpan = computed<readonly [number, number]>(() => {
  const whole = wholeTimeline.value;
  return whole ? [whole.first, whole.last] : [0, 1];
});

export const span = computed(() => visibleSpan.value ?? wholeSpan.value);

export function showSpan(wanted: readonly [number, number] | null): void {
  const whole = wholeSpan.peek();
  const moved = wanted && moveInside(wanted, whole);
  visibleSpan.value = moved && moved[1] - moved[0] < (whole[1] - whole[0]) * 0.9999 ? moved : null;
}

export function threadOf(timeline: Timeline | null, tid: number): TimelineThread | null {
  return timeline?.threads.find((thread) => thread.tid === tid) ?? null;
}

/** When a thread was at a position, as near as marks tell; null where the thread is not known. */
export function timeOf(tid: number, position: number): number | null {
  const near = threadOf(shownTimeline.value, tid);
  if (near && reachOver(near.marks, position)) {
    return timeAt(near.marks, position);
  }
  const thread = threadOf(wholeTimeline.value, tid);
  return thread ? timeAt(thread.marks, position) : null;
}

/** Whether a thread had a signal or fault behind a position (`by` 1) or in front of it (-1); where it is not known, yes. */
export function mayHaveSignal(thread: TimelineThread, binWidth: number, position: number, by: 1 | -1): boolean {
  const { marks, ticks } = thread;
  const n = marks.position.length;
  // The time of a position lies between its marks.
  const after = marks.position.findIndex((one) => one > position);
  const [low, high] =
    n === 0
      ? [-Infinity, Infinity]
      : after < 0
        ? [marks.time[n - 1], Infinity]
        : [after > 0 ? marks.time[after - 1] : -Infinity, marks.time[after]];
  return ticks.some(
    ({ kind, time, count }) =>
      (kind === TICK_KIND.signal || kind === TICK_KIND.fault) &&
      // Of a bin the first one's time is told.
      (by < 0 ? time <= high : time + (count > 1 ? binWidth : 0) >= low),
  );
}

/** Load what is wanted as long as the panel is there; what is returned ends that. */
export function watchTimeline(): () => void {
  let timer = 0;
  let running: AbortController | null = null;
  /** With how many bins the whole was asked for. */
  let wholeBins = 0;
  const load = (isWhole: boolean) => {
    running?.abort();
    const current = (running = new AbortController());
    const [trace, id] = [viewState.peek().trace, processId.peek()];
    const wanted = {
      span: visibleSpan.peek()?.map(Math.round) as [number, number] | undefined,
      bins: Math.min(binsWanted.peek(), MOST_BINS),
      threads: chosenThreads.peek(),
    };
    wholeBins = isWhole ? wanted.bins : wholeBins;
    fetchTimeline(client(), trace, id, { ...wanted, span: isWhole ? null : (wanted.span ?? null) }, current.signal)
      .then((found) => {
        if (running === current) {
          shownTimeline.value = found;
          if (isWhole) {
            wholeTimeline.value = found;
          }
        }
      })
      .catch((error: unknown) => {
        if (!current.signal.aborted) {
          failure.value = error instanceof Error ? error.message : String(error);
        }
      });
  };
  let before: { id: number; known: unknown } | null = null;
  const stopWhole = effect(() => {
    const id = processId.value;
    const known = summary.value;
    chosenThreads.value;
    if (before?.id !== id || before.known !== known) {
      before = { id, known };
      wholeTimeline.value = null;
      shownTimeline.value = null;
      visibleSpan.value = null;
    }
    if (id >= 0 && known) {
      openBookmarks(known.name, known.start_ns);
      load(true);
    }
  });
  const stopPart = effect(() => {
    const whole = wholeTimeline.value;
    const wanted = Math.min(binsWanted.value, MOST_BINS);
    clearTimeout(timer);
    if (whole && !visibleSpan.value && wanted <= wholeBins && wholeBins <= MOST_TOO_MANY * wanted) {
      // All of time was loaded already.
      running?.abort();
      shownTimeline.value = whole;
    } else if (whole) {
      timer = window.setTimeout(() => load(false), DELAY_MS);
    }
  });
  return () => {
    stopWhole();
    stopPart();
    clearTimeout(timer);
    running?.abort();
  };
}
