// Calls in time and in the order of execution, in the file that the page is in: bars in the lanes of threads, and the calls
// around a place, as src/clew/server/call_time_answers.py has them. Pure.
import type { CallDetails, NearCalls, PlacedCall, PlainLanes } from "./calls.ts";
import { choose, type TakenCalls } from "./file-call-choice.ts";

/** Calls that are deeper are not drawn: those around them are there. */
const MOST_DEEP = 4;
const MOST_BARS = 1 << 16;
const MOST_OPEN = 64;

type Bar = PlainLanes["bars"][number];

/** Bars of the calls that are asked for, by thread and depth; those that begin in one bin are one. */
export function lanesOf(taken: TakenCalls, words: URLSearchParams): PlainLanes {
  const lanes = taken.summary.source === "recorded" ? byLane(taken) : [];
  const [from, to] = [Number(words.get("from")), Number(words.get("to"))];
  const most = Math.floor(MOST_BARS / Math.max(taken.summary.threads.length * MOST_DEEP, 1));
  const bins = Math.max(Math.min(Number(words.get("bins") ?? 1000), most), 1);
  // The time that is asked for is that of the lanes; what began before may reach in.
  const asked = new URLSearchParams([...words].filter(([name]) => name !== "from" && name !== "to"));
  const chosen = new Set(choose(taken, asked));
  const names = new Map<string, number>();
  const bars = lanes.flatMap((calls) => barsOf(calls, chosen, { from, to, bins }, names));
  const deep = lanes.reduce((most, [first]) => Math.max(most, first.depth + 1), 0);
  return { deep, names: [...names.keys()], bars };
}

/** Calls of each thread and depth, by time. */
function byLane(taken: TakenCalls): CallDetails[][] {
  const lanes = new Map<string, CallDetails[]>();
  for (const call of taken.calls) {
    if (call.tid !== null && call.depth < MOST_DEEP) {
      const key = `${call.tid} ${call.depth}`;
      const lane = lanes.get(key) ?? [];
      lane.push(call);
      lanes.set(key, lane);
    }
  }
  return [...lanes.values()];
}

function barsOf(
  calls: readonly CallDetails[],
  chosen: ReadonlySet<CallDetails>,
  { from, to, bins }: { from: number; to: number; bins: number },
  names: Map<string, number>,
): Bar[] {
  const bars: Bar[] = [];
  let [last, longest] = [NaN, -1];
  for (const call of calls) {
    const [time, took] = [call.time, call.duration ?? 0];
    if (time >= to || time + took < from || !chosen.has(call)) {
      continue;
    }
    const bin = Math.trunc((time - from) * (bins / (to - from)));
    if (bin !== last) {
      const { tid, depth } = call;
      bars.push({ tid: tid!, depth, from: time, to: time, calls: 0, failed: 0, call: call.call, named: 0 });
      [last, longest] = [bin, -1];
    }
    const bar = bars[bars.length - 1];
    bar.to = Math.max(bar.to, time + took);
    bar.calls++;
    bar.failed += Number(call.error !== null);
    if (took >= longest) {
      longest = took;
      bar.call = call.call;
      bar.named = numberOf(call.name, names);
    }
  }
  return bars;
}

function numberOf(name: string, names: Map<string, number>): number {
  const found = names.get(name) ?? names.size;
  names.set(name, found);
  return found;
}

/** Recorded calls of a thread around a place in its order: `count` in front of it, and as many from there on. */
export function nearCallsOf(taken: TakenCalls, thread: number, words: URLSearchParams): NearCalls {
  const [position, count] = [Number(words.get("position") ?? 0), Number(words.get("count") ?? 20)];
  const isPlaced = (call: CallDetails): call is CallDetails & PlacedCall => call.position !== null;
  const own = taken.summary.source === "recorded" ? taken.calls.filter(({ tid }) => tid === thread) : [];
  const placed = own.filter(isPlaced).sort((a, b) => a.position - b.position || a.call - b.call);
  const found = placed.findIndex((call) => call.position >= position);
  const at = found < 0 ? placed.length : found;
  const first = Math.max(at - count, 0);
  const rows = placed.slice(first, at + count);
  const around: PlacedCall[] = [];
  for (let up = rows.at(0)?.parent ?? -1; up >= 0 && around.length < MOST_OPEN; up = taken.calls[up].parent) {
    const call = taken.calls[up];
    around.push({ ...call, position: call.position ?? -1 });
  }
  return { total: placed.length, first, rows, around };
}
