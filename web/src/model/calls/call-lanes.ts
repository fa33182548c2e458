// The bars of recorded calls in the lanes of the timeline, for the part of time in view: of all of them, and in the view of
// calls of those that are chosen there.
import { signal } from "@preact/signals";
import { type CallLanes, fetchCallLanes } from "../../api/calls.ts";
import { chosenThreads, isLive } from "../session.ts";
import { binsWanted, wholeTimeline, span } from "../timeline.ts";
import { viewState } from "../view-state.ts";
import { charted } from "./calls.ts";
import { followWhere } from "./following.ts";

const MOST_BINS = 4096;

/** null while they are not known. */
export const callLanes = signal<CallLanes | null>(null);

/** Keep them up to date; what is returned ends that. */
export function watchCallLanes(): () => void {
  const wanted = () => {
    if (!wholeTimeline.value || isLive.value) {
      return null;
    }
    const [from, to] = span.value;
    const bins = Math.min(Math.max(Math.round(binsWanted.value), 1), MOST_BINS);
    const threads = chosenThreads.value?.join(",") ?? null;
    const words = viewState.value.view === "calls" ? charted.value : {};
    return { ...words, threads, from: Math.floor(from), to: Math.ceil(to) + 1, bins };
  };
  return followWhere(wanted, fetchCallLanes, callLanes);
}

/** The bar at a time in a thread's lane, at a depth, or as near as `near` ns; -1 if there is none. */
export function barAt(lanes: CallLanes, tid: number, depth: number, time: number, near: number): number {
  let [best, distance] = [-1, near];
  for (let bar = 0; bar < lanes.tid.length; bar++) {
    if (lanes.tid[bar] === tid && lanes.depth[bar] === depth) {
      const away = Math.max(lanes.from[bar] - time, time - lanes.to[bar], 0);
      if (away <= distance) {
        [best, distance] = [bar, away];
      }
    }
  }
  return best;
}
