// Bars of a chart of calls over time, one on top of the other: what is drawn, and which bins a stretch of time takes.
import type { CallChart } from "../../api/calls.ts";

/** One series: its outline as an SVG path in bins (across) and calls (down from `highest`), and how many calls it has. */
export interface StackedSeries {
  name: string;
  path: string;
  calls: number;
}

export interface StackedBars {
  series: StackedSeries[];
  /** Calls of the highest bar, at least 1. */
  highest: number;
  /** By bin, calls of all series. */
  sums: number[];
}

/** The bars of a chart, its first series at the bottom. */
export function stackBars({ bins, names, counts }: CallChart): StackedBars {
  const sums = new Array<number>(bins).fill(0);
  counts.forEach((calls, at) => (sums[at % bins] += calls));
  const highest = sums.reduce((most, sum) => Math.max(most, sum), 1);
  const below = new Array<number>(bins).fill(0);
  const series = names.map((name, index) => {
    let [path, total] = ["", 0];
    for (let bin = 0; bin < bins; bin++) {
      const calls = counts[index * bins + bin];
      if (calls > 0) {
        below[bin] += calls;
        total += calls;
        path += `M${bin} ${highest - below[bin]}h1v${calls}h-1z`;
      }
    }
    return { name, path, calls: total };
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
