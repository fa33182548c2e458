// Replay: the state of a thread at the cursor, steps, searches, and playing. The cursor itself is in the page's state.
import { computed, effect, signal } from "@preact/signals";
import { fetchFrames, fetchReplay, fetchSeek, type ReplayState, type Seek } from "../api/timeline.ts";
import { recentBlocks, weighRecent } from "./recent.ts";
import { FRAME_RATE, type Frame, nextFrames, orderFrames, pace, positionAt, stepFrom } from "./replay-steps.ts";
import { chosenThreads, client, failure, isFile, processId } from "./session.ts";
import { threadOf, shownTimeline, wholeTimeline } from "./timeline.ts";
import { cursor, update, viewState } from "./view-state.ts";

/** Frames that are asked for at once: half a second. */
const AT_ONCE = FRAME_RATE / 2;

/** What the server told of the cursor's place last; while playing that is where it began. */
export const replayState = signal<ReplayState | null>(null);
export const isPlaying = signal(false);
export const direction = signal<1 | -1>(1);
/** Blocks a second. */
export const speed = signal(1000);
/** What a search did not find, in words; null if nothing. */
export const notFound = signal<string | null>(null);

/** The thread that keys and buttons are about: the cursor's, or the ordered one that did the most. */
export const currentThread = computed(() => {
  const timeline = wholeTimeline.value;
  const ordered = timeline?.threads.filter((thread) => thread.isOrdered && thread.length > 0) ?? [];
  const tid = cursor.value?.thread;
  return (
    ordered.find((thread) => thread.tid === tid) ??
    ordered.reduce<(typeof ordered)[number] | null>(
      (best, thread) => (!best || thread.length > best.length ? thread : best),
      null,
    )
  );
});

/** The cursor's place on `currentThread`: at its start without a cursor. */
export const currentPosition = computed(() => {
  const thread = currentThread.value;
  const at = cursor.value;
  return thread && at?.thread === thread.tid ? Math.min(at.position, thread.length) : 0;
});

/** The block that comes next at the cursor, -1 if it is not known. */
export const currentBlock = computed(() => {
  const state = replayState.value;
  const at = cursor.value;
  return state && at && state.thread === at.thread && state.position === at.position ? state.block : -1;
});

export function goTo(position: number): void {
  const thread = currentThread.peek();
  if (thread) {
    pause();
    notFound.value = null;
    const inside = Math.min(Math.max(Math.round(position), 0), thread.length);
    update({ cursor: { thread: thread.tid, position: inside } });
  }
}

/** Put the cursor on a thread at a time. */
export function goToTime(tid: number, time: number): void {
  const near = threadOf(shownTimeline.peek(), tid) ?? threadOf(wholeTimeline.peek(), tid);
  if (near?.isOrdered && near.length > 0) {
    pause();
    notFound.value = null;
    update({ cursor: { thread: tid, position: positionAt(near.marks, time) } });
  }
}

/** One block forth or back. */
export function step(by: 1 | -1): void {
  if (isFile.peek()) {
    // There only some places are known: a step leads to the next of them.
    seek({ step: by }, by > 0 ? "place behind" : "place before");
    return;
  }
  const state = replayState.peek();
  const position = currentPosition.peek();
  goTo(stepFrom(position, by, currentThread.peek()?.length ?? 0, state?.position === position ? state.gap : null));
}

export function goToEnd(): void {
  goTo(currentThread.peek()?.length ?? 0);
}

/** Look for something from the cursor on, and go there. `name` is what it is called if it is not there. */
export function seek(wanted: Seek, name: string): void {
  const thread = currentThread.peek();
  if (!thread) {
    return;
  }
  pause();
  const at = { thread: thread.tid, position: currentPosition.peek() };
  const id = processId.peek();
  fetchSeek(client(), viewState.peek().trace, id, at, wanted).then(
    ({ found, ...state }) => {
      if (processId.peek() !== id) {
        return;
      }
      notFound.value = found ? null : `no ${name}`;
      if (found) {
        replayState.value = state;
        update({ cursor: { thread: state.thread, position: state.position } });
      }
    },
    (error: unknown) => {
      failure.value = error instanceof Error ? error.message : String(error);
    },
  );
}

/** Keep what is known of the cursor's place up to date; what is returned ends that. */
export function watchCursor(): () => void {
  let running: AbortController | null = null;
  const stop = effect(() => {
    const at = cursor.value;
    const id = processId.value;
    if (at && chosenThreads.value?.includes(at.thread) === false) {
      // Its thread is not looked at any more.
      pause();
      update({ cursor: null });
      return;
    }
    if (isPlaying.value) {
      return;
    }
    running?.abort();
    if (!at || id < 0) {
      replayState.value = null;
      recentBlocks.value = null;
      return;
    }
    const known = replayState.peek();
    if (known?.thread === at.thread && known.position === at.position) {
      recentBlocks.value = weighRecent(known.recent);
      return;
    }
    const current = (running = new AbortController());
    fetchReplay(client(), viewState.peek().trace, id, at, current.signal).then(
      (state) => {
        if (running === current && !current.signal.aborted) {
          replayState.value = state;
          recentBlocks.value = weighRecent(state.recent);
          if (state.position !== at.position) {
            update({ cursor: { thread: at.thread, position: state.position } });
          }
        }
      },
      (error: unknown) => {
        if (!current.signal.aborted) {
          replayState.value = null;
          recentBlocks.value = null;
          failure.value = error instanceof Error ? error.message : String(error);
        }
      },
    );
  });
  return () => {
    stop();
    running?.abort();
    pause();
  };
}

let playing = 0;

export function togglePlay(): void {
  if (isPlaying.peek()) {
    pause();
  } else {
    play();
  }
}

export function pause(): void {
  cancelAnimationFrame(playing);
  isPlaying.value = false;
}

/** Play from the cursor on; from the other end if it is at the end already. */
export function play(): void {
  const thread = currentThread.peek();
  if (!thread) {
    return;
  }
  let position = currentPosition.peek();
  if (direction.peek() > 0 ? position >= thread.length : position <= 0) {
    position = direction.peek() > 0 ? 0 : thread.length;
  }
  isPlaying.value = true;
  notFound.value = null;
  const where = { trace: viewState.peek().trace, process: processId.peek(), thread: thread.tid };
  const isSame = () => isPlaying.peek() && viewState.peek().trace === where.trace && processId.peek() === where.process;
  let queue: Frame[] = [];
  let asked = position;
  let [way, stride] = [direction.peek(), 0];
  let isAsking = false;
  let shownAt = performance.now();
  const ask = () => {
    const wanted = nextFrames(asked, way, stride, AT_ONCE, thread.length);
    if (!wanted) {
      return;
    }
    isAsking = true;
    const [askedWay, askedStride] = [way, stride];
    fetchFrames(client(), where.trace, where.process, where.thread, wanted).then(
      (found) => {
        isAsking = false;
        if (askedWay !== way || askedStride !== stride) {
          return;
        }
        const frames = orderFrames(found, asked, way);
        asked = frames.at(-1)?.position ?? (way > 0 ? thread.length : 0);
        queue.push(...frames);
      },
      (error: unknown) => {
        isAsking = false;
        pause();
        failure.value = error instanceof Error ? error.message : String(error);
      },
    );
  };
  const show = (now: number) => {
    const at = cursor.peek();
    if (!isSame() || (at !== null && at.thread !== where.thread)) {
      pause();
      return;
    }
    const { stride: wantedStride, rate } = pace(speed.peek());
    if (wantedStride !== stride || direction.peek() !== way) {
      // What was fetched goes another pace, or the other way.
      [stride, way] = [wantedStride, direction.peek()];
      queue = [];
      asked = position;
    }
    if (now - shownAt >= 1000 / rate - 4) {
      const frame = queue.shift();
      if (frame) {
        shownAt = now;
        position = frame.position;
        recentBlocks.value = weighRecent(frame.recent);
        update({ cursor: { thread: where.thread, position } });
      }
    }
    if (!isAsking && queue.length < AT_ONCE / 2) {
      if (queue.length === 0 && !nextFrames(asked, way, stride, AT_ONCE, thread.length)) {
        pause();
        return;
      }
      ask();
    }
    playing = requestAnimationFrame(show);
  };
  playing = requestAnimationFrame(show);
}
