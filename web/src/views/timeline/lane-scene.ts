// What lanes of threads are drawn of, and where in the picture things are.
import type { CallLanes } from "../../api/calls.ts";
import type { Timeline } from "../../api/timeline.ts";

export const GUTTER = 168;
export const AXIS_HEIGHT = 18;
/** Lanes share the room, within bounds: few are drawn higher. */
const LEAST_LANE_HEIGHT = 24;
const MOST_LANE_HEIGHT = 72;
/** Bars of calls: high enough for their names where there is room. */
const LEAST_BAR_HEIGHT = 6;
const MOST_BAR_HEIGHT = 13;
export const NEW_CODE_HEIGHT = 26;

/** The height of one of `n` lanes in a box of `height` px, with bars of calls `deep` below one another. */
export function laneHeight(n: number, height: number, deep: number): number {
  const room = (height - AXIS_HEIGHT - NEW_CODE_HEIGHT) / Math.max(n, 1);
  const least = LEAST_LANE_HEIGHT + deep * LEAST_BAR_HEIGHT;
  const most = Math.max(MOST_LANE_HEIGHT, LEAST_LANE_HEIGHT + deep * MOST_BAR_HEIGHT);
  return Math.floor(Math.min(Math.max(room, least), most));
}

/** How high one bar of calls is in a lane of `height` px. */
export function barHeight(height: number, deep: number): number {
  const room = (height - LEAST_LANE_HEIGHT) / Math.max(deep, 1);
  return Math.floor(Math.min(Math.max(room, LEAST_BAR_HEIGHT), MOST_BAR_HEIGHT));
}

/** At which depth of calls a place in a lane is, `y` px below its top; -1 for none. */
export function depthAt(y: number, height: number, deep: number): number {
  const depth = Math.floor((y - barsTop(height, deep)) / barHeight(height, deep));
  return depth >= 0 && depth < deep ? depth : -1;
}

/** Where the bars of calls begin in a lane. */
export function barsTop(height: number, deep: number): number {
  return height - 1 - deep * barHeight(height, deep);
}

export interface Colors {
  text: string;
  quiet: string;
  line: string;
  ground: string;
  panel: string;
  raised: string;
  accent: string;
  warning: string;
  picked: string;
}

/** What is drawn: `scroll` px of the lanes are above, `range` and `cursor` in ns, `lane` the cursor's. */
export interface Scene {
  width: number;
  height: number;
  laneHeight: number;
  scroll: number;
  span: readonly [number, number];
  timeline: Timeline;
  /** Whether code was recorded, and not only events of probes. */
  hasCode: boolean;
  range: readonly [number, number] | null;
  cursor: { lane: number; time: number } | null;
  /** Recorded calls; null where there are none. */
  calls: CallLanes | null;
  /** The call that is chosen or made at the cursor; null for none. */
  markedCall: number | null;
  bookmarks: { lane: number; time: number }[];
}

/** Where a time is, px. */
export function xOf({ span, width }: Pick<Scene, "span" | "width">, time: number): number {
  return GUTTER + ((time - span[0]) / (span[1] - span[0])) * (width - GUTTER);
}

export function timeAtX({ span, width }: Pick<Scene, "span" | "width">, x: number): number {
  return span[0] + ((x - GUTTER) / (width - GUTTER)) * (span[1] - span[0]);
}
