// Bars of a chart of calls over time, one on top of the other: what is drawn, and which bins a stretch of time takes.
import type { CallChart } from "../../api/calls.ts";
import { CATEGORIES, toHex } from "../../base/color.ts";

const MOST_LETTERS = 40;

/** The calls of a series in one bin, which lie on top of `below` others. */
export interface Bar {
  bin: number;
  calls: number;
  below: number;
}

/** One series: its outline as an SVG path in bins (across) and calls (down from `highest`), and how many calls it has. */
export interface StackedSeries {
  name: string;
  /** What it is called next to the chart. */
  label: string;
  color: string;
  path: string;
  bars: Bar[];
  calls: number;
  /** Whether it is all that there was no series for. */
  isOthers: boolean;
}

export interface StackedBars {
  series: StackedSeries[];
  /** Calls of the highest bar, at least 1. */
  highest: number;
  /** By bin, calls of all series. */
  sums: number[];
}

/** The bars of a chart, its first series at the bottom. */
export function stackBars({ bins, names, others, counts }: Omit<CallChart, "from" | "to">): StackedBars {
  const sums = new Array<number>(bins).fill(0);
  counts.forEach((calls, at) => (sums[at % bins] += calls));
  const highest = sums.reduce((most, sum) => Math.max(most, sum), 1);
  const below = new Array<number>(bins).fill(0);
  const series = names.map((name, index) => {
    const bars: Bar[] = [];
    for (let bin = 0; bin < bins; bin++) {
      const calls = counts[index * bins + bin];
      if (calls > 0) {
        bars.push({ bin, calls, below: below[bin] });
        below[bin] += calls;
      }
    }
    const isOthers = others > 0 && index === names.length - 1;
    return {
      name,
      label: isOthers ? `${others} others` : name.slice(0, MOST_LETTERS),
      color: toHex(CATEGORIES[index % CATEGORIES.length]),
      path: bars.map((bar) => `M${bar.bin} ${highest - bar.below - bar.calls}h1v${bar.calls}h-1z`).join(""),
      bars,
      calls: bars.reduce((sum, { calls }) => sum + calls, 0),
      isOthers,
    };
  });
  return { series, highest, sums };
}

/** The time at which a bin begins. */
export function binStart({ from, to, bins }: Pick<CallChart, "from" | "to" | "bins">, bin: number): number {
  return from + ((to - from) * bin) / bins;
}

/** The bin that has a time; the nearest one for times outside. */
export function binAt({ from, to, bins }: Pick<CallChart, "from" | "to" | "bins">, time: number): number {
  const bin = Math.floor(((time - from) / (to - from)) * bins);
  return Math.min(Math.max(bin, 0), bins - 1);
}

/** The time from one bin up to the end of another, whichever comes first, in whole nanoseconds. */
export function stretchOf(chart: Pick<CallChart, "from" | "to" | "bins">, a: number, b: number): [number, number] {
  const [first, last] = [Math.min(a, b), Math.max(a, b)];
  const start = Math.floor(binStart(chart, first));
  // What is at the very end belongs to the last bin.
  const end = last === chart.bins - 1 ? Math.ceil(chart.to) + 1 : Math.ceil(binStart(chart, last + 1));
  return [start, Math.max(end, start + 1)];
}

/** The first and the last bin of a stretch of time. */
export function binsOf(
  chart: Pick<CallChart, "from" | "to" | "bins">,
  [from, to]: readonly [number, number],
): [number, number] {
  return [binAt(chart, from), binAt(chart, to - 1)];
}
