import fc from "fast-check";
import { expect, test } from "vitest";
import type { CallDetails, TreeRow, TreeThread } from "./calls.ts";
import { treeOf } from "./file-call-tree.ts";
import { makeCall, nestedCalls, takeCalls } from "./taken-calls.test-support.ts";

type Words = Record<string, string>;
type Taken = ReturnType<typeof takeCalls>;

const threads = (taken: Taken, words: Words) =>
  (treeOf(taken, new URLSearchParams(words)) as { threads: TreeThread[] }).threads;

/** A level of the tree, page by page. */
function level(taken: Taken, words: Words): TreeRow[] {
  const rows: TreeRow[] = [];
  for (;;) {
    const page = treeOf(taken, new URLSearchParams({ ...words, offset: String(rows.length), count: "3" }));
    const { total, rows: more } = page as { total: number; rows: TreeRow[] };
    rows.push(...more);
    if (more.length === 0) {
      expect(rows).toHaveLength(total);
      return rows;
    }
  }
}

/** All rows of it with how deep they are, the outer ones first. */
function walk(taken: Taken, words: Words, rows: TreeRow[], depth: number): [TreeRow, number][] {
  return rows.flatMap((row) => {
    const within = level(taken, { ...words, parent: String(row.path ?? row.call) });
    expect(within).toHaveLength(row.within);
    return [[row, depth] as [TreeRow, number], ...walk(taken, words, within, depth + 1)];
  });
}

/** Those that are asked for, and all that are around one of them. */
function around(calls: readonly CallDetails[], name: string | null): CallDetails[] {
  const found = new Set<number>();
  for (const { call, name: own } of calls) {
    for (let at = name === null || own === name ? call : -1; at >= 0; at = calls[at].parent) {
      found.add(at);
    }
  }
  return calls.filter(({ call }) => found.has(call));
}

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

test("every call is in the tree once, at its depth, and levels add up", () => {
  fc.assert(
    fc.property(nestedCalls, fc.constantFrom(null, "a"), fc.constantFrom("call", "name"), (calls, name, by) => {
      const taken = takeCalls(calls);
      const words: Words = name === null ? { by } : { by, name };
      const wanted = around(calls, name);
      const found = threads(taken, words);
      expect(found.map(({ tid }) => tid)).toEqual([...new Set(wanted.map(({ tid }) => tid!))].sort());
      for (const thread of found) {
        const own = wanted.filter(({ tid }) => tid === thread.tid);
        const outer = level(taken, { ...words, thread: String(thread.tid) });
        expect(outer).toHaveLength(thread.within);
        expect(thread.total).toBe(sum(outer.map(({ total }) => total ?? 0)));
        const rows = walk(taken, words, outer, 0);
        expect(sum(rows.map(([row]) => row.calls))).toBe(thread.calls);
        expect(thread.calls).toBe(own.length);
        expect(sum(rows.map(([row]) => row.failed))).toBe(thread.failed);
        expect(sum(rows.map(([row]) => row.own))).toBe(sum(own.map((call) => call.own ?? 0)));
        rows.forEach(([row, depth]) => expect(calls[row.call].depth).toBe(depth));
        if (by === "call") {
          expect(rows.map(([row]) => row.call).sort((a, b) => a - b)).toEqual(own.map(({ call }) => call));
        }
      }
    }),
  );
});

test("levels are sorted, equal ones by time", () => {
  const durations = [3, null, 9, 3];
  const names = ["b", "a", "b", "c"];
  const taken = takeCalls(
    names.map((name, number) => makeCall(number, { name, duration: durations[number], own: durations[number] })),
  );
  const order = (words: Words) => level(taken, { thread: "7", ...words }).map(({ call }) => call);
  expect(order({})).toEqual([0, 1, 2, 3]);
  expect(order({ descending: "1" })).toEqual([3, 2, 1, 0]);
  expect(order({ sort: "total", descending: "1" })).toEqual([2, 0, 3, 1]);
  expect(order({ sort: "own" })).toEqual([1, 0, 3, 2]);
  expect(order({ sort: "name", descending: "1" })).toEqual([3, 0, 2, 1]);
  expect(order({ by: "name" })).toEqual([0, 1, 3]);
  expect(order({ by: "name", sort: "calls", descending: "1" })).toEqual([0, 1, 3]);
  expect(order({ by: "name", sort: "total" })).toEqual([1, 3, 0]);
  expect(order({ by: "name", sort: "name" })).toEqual([1, 0, 3]);
});

test("what there is not is refused", () => {
  const taken = takeCalls([makeCall(0, {})]);
  expect(level(taken, { thread: "9" })).toEqual([]);
  for (const words of [{ parent: "1" }, { parent: "-1" }, { parent: "1", by: "name" }]) {
    expect(() => level(taken, words)).toThrow("parent: there are 1");
  }
});
