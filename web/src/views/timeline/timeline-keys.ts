// What the timeline's keys do, and those of its buttons that do the same.
import { bookmarks, toggleBookmark } from "../../model/bookmarks.ts";
import { registerKeys } from "../../model/keys.ts";
import {
  currentPosition,
  currentThread,
  goTo,
  goToEnd,
  replayState,
  seek,
  step,
  togglePlay,
} from "../../model/replay.ts";
import { processId } from "../../model/session.ts";
import { settings, updateSettings } from "../../model/settings.ts";
import { span, timeOf } from "../../model/timeline.ts";
import { range, update } from "../../model/view-state.ts";

/** Make the keys known; what is returned takes them back. */
export function registerTimelineKeys(): () => void {
  const bound = (end: 0 | 1) => {
    const thread = currentThread.peek();
    const time = thread && timeOf(thread.tid, currentPosition.peek());
    if (time == null) {
      return;
    }
    const before = range.peek() ?? span.peek();
    const ends: [number, number] = end === 0 ? [time, before[1]] : [before[0], time];
    if (Math.round(ends[0]) < Math.round(ends[1])) {
      update({ range: [Math.round(ends[0]), Math.round(ends[1])] });
    }
  };
  return registerKeys("Timeline", [
    { key: " ", what: "Play or pause", run: togglePlay },
    { key: ",", what: "A block back", run: () => step(-1) },
    { key: ".", what: "A block on", run: () => step(1) },
    { key: "<", what: "To the call before", run: () => seek({ what: "call", back: true }, "call before") },
    { key: ">", what: "To the next call", run: () => seek({ what: "call", back: false }, "call behind") },
    {
      key: "{",
      what: "To the API call before",
      run: () => seek({ what: "api", back: true }, "API call before"),
    },
    {
      key: "}",
      what: "To the next API call",
      run: () => seek({ what: "api", back: false }, "API call behind"),
    },
    { key: "[", what: "The range begins at the cursor", run: () => bound(0) },
    { key: "]", what: "The range ends at the cursor", run: () => bound(1) },
    { key: "b", what: "Set a bookmark at the cursor, or remove it", run: bookmarkCursor },
    { key: "Home", what: "Cursor to the start", run: () => goTo(0) },
    { key: "End", what: "Cursor to the end", run: goToEnd },
    { key: "l", what: "Show or hide the timeline's lanes", run: toggleLanes },
  ]);
}

export function toggleLanes(): void {
  updateSettings({ showsLanes: !settings.peek().showsLanes });
}

/** Mark where the cursor is, or unmark it. */
export function bookmarkCursor(): void {
  const thread = currentThread.peek();
  if (thread) {
    const position = currentPosition.peek();
    const time = timeOf(thread.tid, position) ?? replayState.peek()?.time ?? thread.started;
    toggleBookmark({ process: processId.peek(), thread: thread.tid, position, time });
  }
}

/** Whether the cursor is at a bookmark. */
export function isBookmarked(): boolean {
  const [tid, position, process] = [currentThread.value?.tid, currentPosition.value, processId.value];
  return bookmarks.value.some((mark) => mark.thread === tid && mark.position === position && mark.process === process);
}
