import { expect, test } from "vitest";
import type { TimelineThread } from "../api/timeline.ts";
import { TICK_KIND } from "../protocol/generated.ts";
import { mayHaveSignal } from "./timeline.ts";

function thread(ticks: TimelineThread["ticks"], time: number[] = [0, 100, 200, 300]): TimelineThread {
  const marks = { time: Float64Array.from(time), position: Float64Array.from(time, (one) => one / 10) };
  const rest = { density: new Float32Array(), newCode: new Uint32Array(), gaps: [] };
  return { tid: 7, name: "t", started: 0, ended: 300, isOrdered: true, length: 30, ticks, marks, ...rest };
}

const tick = (kind: number, time: number, count = 1) => ({ kind, time, value: 10, count });

test("a signal is ahead or behind, or neither", () => {
  const of = thread([tick(TICK_KIND.signal, 150), tick(TICK_KIND.system_call, 280)]);
  const at = (position: number) => [mayHaveSignal(of, 10, position, -1), mayHaveSignal(of, 10, position, 1)];
  expect(at(2)).toEqual([false, true]);
  // Between the same marks nobody knows.
  expect(at(12)).toEqual([true, true]);
  expect(at(25)).toEqual([true, false]);
  expect(at(30)).toEqual([true, false]);
  const none = thread([tick(TICK_KIND.system_call, 50)]);
  expect([mayHaveSignal(none, 10, 1, -1), mayHaveSignal(none, 10, 1, 1)]).toEqual([false, false]);
});

test("of several in a bin the last may be at its end, and without marks nothing is known", () => {
  const several = thread([tick(TICK_KIND.fault, 190, 3)]);
  expect(mayHaveSignal(several, 20, 25, 1)).toBe(true);
  expect(mayHaveSignal(several, 5, 25, 1)).toBe(false);
  expect(mayHaveSignal(thread([tick(TICK_KIND.fault, 190)], []), 5, 25, 1)).toBe(true);
});
