import { expect, test } from "vitest";
import type { CallDetails, CallPage, CallPlaces, CallSummary, EntityPage } from "./calls.ts";
import type { TakenCalls } from "./file-call-choice.ts";
import { answerFromCalls, type PlainChart } from "./file-calls.ts";
import { makeCall } from "./taken-calls.test-support.ts";

const of = (entity: number) => ({ entity, role: "read", argument: 0, bytes: 1 });

const CALLS = [
  makeCall(0, { name: "open", duration: 5, references: [of(4)], arguments: [{ text: "/etc/Passwd" }] }),
  makeCall(1, { parent: 0, references: [of(4), of(4)], error: "ENOENT" }),
  makeCall(2, { tid: 8, duration: 9, references: Array.from({ length: 12 }, () => of(5)) }),
  makeCall(3, { name: "malloc", kind: "library", filter: "Memory", tid: null, block: -1 }),
];

function entity(number: number, name: string, own: boolean): TakenCalls["entities"]["rows"][number] {
  const counts = { calls: 1, all_calls: 1, bytes: 0, from: 0, to: 1 };
  return { entity: number, kind: "file", name, process: null, tid: null, parent: null, details: [], own, ...counts };
}

const TAKEN: TakenCalls = {
  summary: {
    ...{ source: "recorded", reason: null, total: 4, omitted: 0, untimed: 0, from: 0, to: 30 },
    ...{ calls: 4, names: [], names_omitted: 0, filters: [], processes: [], threads: [] },
  },
  places: { total: 0, calls: 0, rows: [] },
  calls: CALLS,
  entities: { source: "recorded", rows: [entity(4, "/etc/passwd", true), entity(5, "/tmp/x", false)] },
  makers: [
    [1, null],
    [2, 8],
  ],
  touches: [
    { process: 0, entity: 4, kind: "file", name: "/etc/passwd", calls: 2, roles: [], bytes_read: 0, bytes_written: 0 },
  ],
};

const ask = <T>(path: string, words: Record<string, string> = {}) =>
  answerFromCalls(TAKEN, path, new URLSearchParams(words)) as T;

const numbers = (words: Record<string, string>) => ask<CallPage>("calls", words).rows.map((row) => row.call);

test("calls are chosen by what they have, and sorted", () => {
  expect(numbers({})).toEqual([0, 1, 2, 3]);
  expect(numbers({ text: "passwd" })).toEqual([0]);
  expect(numbers({ name: "read" })).toEqual([1, 2]);
  expect(numbers({ failed: "1" })).toEqual([1]);
  expect(numbers({ kind: "library" })).toEqual([3]);
  expect(numbers({ filter: "Memory" })).toEqual([3]);
  expect(numbers({ filter: "File", failed: "1" })).toEqual([1]);
  expect(numbers({ filter: "Network" })).toEqual([]);
  expect(numbers({ from: "10", to: "30" })).toEqual([1, 2]);
  expect(numbers({ entity: "4" })).toEqual([0, 1]);
  // Of a process all that it called, of a thread what that one did.
  expect(numbers({ entity: "1" })).toEqual([0, 1, 2, 3]);
  expect(numbers({ entity: "2" })).toEqual([2]);
  expect(numbers({ sort: "duration", descending: "1" })).toEqual([2, 0, 1, 3]);
  expect(numbers({ sort: "name" })).toEqual([3, 0, 1, 2]);
  expect(numbers({ descending: "1" })).toEqual([3, 2, 1, 0]);
});

test("a page is that of a call, or begins where it is told to", () => {
  expect(ask("calls", { call: "3", count: "2" })).toMatchObject({ at: 3, offset: 2, total: 4 });
  expect(ask("calls", { call: "0", count: "2", offset: "2" })).toMatchObject({ at: 0, offset: 2 });
  expect(ask("calls", { call: "0", name: "read" })).toMatchObject({ at: null, offset: 0 });
});

test("names, threads and places are counted", () => {
  const { calls, names, threads } = ask<CallSummary>("calls/summary", {});
  expect(calls).toBe(4);
  expect(names.map(({ name, calls: n, failed }) => [name, n, failed])).toEqual([
    ["read", 2, 1],
    ["malloc", 1, 0],
    ["open", 1, 0],
  ]);
  expect(threads).toEqual([
    { tid: 7, calls: 2 },
    { tid: 8, calls: 1 },
  ]);
  const places = ask<CallPlaces>("calls/places", { name: "read" });
  expect(places).toMatchObject({ total: 2, calls: 2 });
  expect(places.rows.map(({ block }) => block)).toEqual([1, 2]);
});

test("a chart has each call in one bin, and what is too much as others", () => {
  const chart = ask<PlainChart>("calls/chart", { bins: "3", series: "2" });
  expect(chart).toMatchObject({ from: 0, to: 30, bins: 3, names: ["read", "others"], others: 2 });
  expect(chart.counts).toEqual([0, 1, 1, 1, 0, 1]);
  expect(ask<PlainChart>("calls/chart", { by: "kind", from: "5", to: "25" })).toMatchObject({
    bins: 20,
    names: ["system_call"],
  });
});

test("entities and single calls are told, and those that there are not refused", () => {
  expect(ask<EntityPage>("entities", { own: "1" })).toMatchObject({ total: 1, kinds: { file: 1 } });
  expect(ask<EntityPage>("entities", { text: "TMP" }).rows.map((row) => row.entity)).toEqual([5]);
  expect(ask("entities/4")).toMatchObject({ name: "/etc/passwd", touches: [{ calls: 2 }] });
  expect(ask<CallDetails>("calls/2").references).toHaveLength(12);
  expect(ask("calls/1")).toMatchObject({ around: [{ call: 0 }], within: [], n_within: 0 });
  expect(ask("calls/0")).toMatchObject({ around: [], within: [{ call: 1 }], n_within: 1 });
  expect(ask("entities/4")).toMatchObject({ life_total: 1, life: [{ call: 0, role: "read", more: 1 }] });
  expect(ask("touches", { limit: "1" })).toMatchObject({ total: 1 });
  expect(() => ask("calls/9")).toThrow("there are 4");
  expect(() => ask("entities/9")).toThrow("no entity 9");
});
