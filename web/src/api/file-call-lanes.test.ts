import fc from "fast-check";
import { expect, test } from "vitest";
import type { CallDetails } from "./calls.ts";
import { lanesOf, nearCallsOf } from "./file-call-lanes.ts";
import { makeCall, nestedCalls, takeCalls } from "./taken-calls.test-support.ts";

const words = (of: Record<string, string | number>) =>
  new URLSearchParams(Object.entries(of).map(([name, value]) => [name, String(value)]));

const endOf = ({ time, duration }: CallDetails) => time + (duration ?? 0);

test("every call that reaches into the time is in one bar of its thread and depth", () => {
  const spans = fc.tuple(fc.nat(300), fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 50 }));
  fc.assert(
    fc.property(nestedCalls, spans, fc.boolean(), (calls, [from, length, bins], isFailed) => {
      const to = from + length;
      const wanted = words({ from, to, bins, ...(isFailed ? { failed: 1 } : {}) });
      const { deep, names, bars } = lanesOf(takeCalls(calls), wanted);
      const drawn = calls.filter(({ depth }) => depth < 4);
      expect(deep).toBe(drawn.reduce((most, { depth }) => Math.max(most, depth + 1), 0));
      const chosen = drawn.filter(
        (call) => call.time < to && endOf(call) >= from && (!isFailed || call.error !== null),
      );
      expect(bars.reduce((sum, bar) => sum + bar.calls, 0)).toBe(chosen.length);
      for (const bar of bars) {
        const inside = chosen.filter(
          (call) => call.tid === bar.tid && call.depth === bar.depth && call.time >= bar.from && endOf(call) <= bar.to,
        );
        expect(inside).toHaveLength(bar.calls);
        expect(bar.failed).toBe(inside.filter(({ error }) => error !== null).length);
        const longest = Math.max(...inside.map(({ duration }) => duration ?? 0));
        expect(calls[bar.call].duration ?? 0).toBe(longest);
        expect(names[bar.named]).toBe(calls[bar.call].name);
      }
    }),
  );
});

test("system calls that were not recorded have no bars", () => {
  const taken = takeCalls([makeCall(0, {})]);
  const noted = { ...taken, summary: { ...taken.summary, source: "system_calls" as const } };
  expect(lanesOf(noted, words({ from: 0, to: 9, bins: 3 }))).toEqual({ deep: 0, names: [], bars: [] });
  expect(nearCallsOf(noted, 7, words({}))).toMatchObject({ total: 0, rows: [] });
});

test("calls around a place, in the order of execution", () => {
  const places = [5, 20, null, 12, 20, 30];
  const taken = takeCalls(
    places.map((position, number) =>
      makeCall(number, { position, tid: number === 5 ? 8 : 7, ...(number === 3 ? { parent: 0, depth: 1 } : {}) }),
    ),
  );
  const near = (position: number, count: number) => {
    const found = nearCallsOf(taken, 7, words({ position, count }));
    return { ...found, rows: found.rows.map(({ call }) => call), around: found.around.map(({ call }) => call) };
  };
  expect(near(0, 9)).toEqual({ total: 4, first: 0, rows: [0, 3, 1, 4], around: [] });
  expect(near(13, 1)).toEqual({ total: 4, first: 1, rows: [3, 1], around: [0] });
  expect(near(99, 1)).toEqual({ total: 4, first: 3, rows: [4], around: [] });
});
