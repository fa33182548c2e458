import fc from "fast-check";
import { expect, test } from "vitest";
import type { ProcessSummary, ThreadSummary } from "../api/traces.ts";
import { ORDERS, type TreeOptions, treeRows } from "./process-tree.ts";

function thread(tid: number, instructions = 1, started = 0): ThreadSummary {
  return {
    tid,
    parent_tid: 0,
    name: "t",
    instructions,
    block_executions: 1,
    tags: 0,
    stored_bytes: 0,
    end: "exit",
    lost_records: 0,
    started,
    ended: started + 10,
    start_ns: String(started),
    end_ns: String(started + 10),
  };
}

function process(id: number, pid: number, parent: number, change: Partial<ProcessSummary> = {}): ProcessSummary {
  return {
    process_id: id,
    pid,
    parent_pid: parent,
    executable: `/bin/p${id}`,
    command: [],
    exit: { code: 0 },
    went_on_unfollowed: false,
    api_calls: 0,
    threads: [thread(pid)],
    images: [],
    started: id,
    ended: id + 10,
    start_ns: "0",
    end_ns: "0",
    ...change,
  };
}

const OPTIONS: TreeOptions = { order: "start", isDescending: false, isFlat: false, closed: new Set() };
const went = { exit: { code: null } };

test("programs of one pid are under its first, children under the program that ran", () => {
  const rows = treeRows([process(0, 7, 1, went), process(1, 7, 1, went), process(2, 8, 7), process(3, 7, 1)], OPTIONS);
  expect(rows.map((row) => [row.key, row.level, row.follower])).toEqual([
    ["0", 1, "/bin/p1"],
    ["1", 2, "/bin/p3"],
    ["2", 3, null],
    ["3", 2, null],
  ]);
});

test("a pid that is given again is another process", () => {
  const rows = treeRows([process(0, 7, 1), process(1, 7, 1)], OPTIONS);
  expect(rows.map((row) => [row.level, row.isLater, row.follower])).toEqual([
    [1, false, null],
    [1, false, null],
  ]);
});

test("threads are shown where there are several, and hidden with their process", () => {
  const several = [process(0, 7, 1, { threads: [thread(7, 5), thread(9, 8)] }), process(1, 12, 1)];
  expect(treeRows(several, OPTIONS).map((row) => row.thread?.tid ?? null)).toEqual([null, 7, 9, null]);
  expect(treeRows(several, { ...OPTIONS, closed: new Set(["0"]) }).length).toBe(2);
  const rows = treeRows(several, { ...OPTIONS, order: "instructions", isDescending: true });
  expect(rows.map((row) => row.instructions)).toEqual([13, 8, 5, 1]);
});

test("a child of vfork is the program that it became, and no thread beside it", () => {
  const child = { ...thread(8), end: "detached" as const };
  const parent = process(0, 7, 1, { threads: [thread(7, 5), child] });
  const shape = (all: ProcessSummary[]) => treeRows(all, OPTIONS).map((row) => [row.key, row.level]);
  expect(shape([parent, process(1, 8, 7)])).toEqual([
    ["0", 1],
    ["1", 2],
  ]);
  // Nothing is known of what it became, or it is another one's: it is shown.
  expect(shape([parent]).length).toBe(3);
  expect(shape([parent, process(1, 8, 3)]).length).toBe(4);
});

const made = fc
  .array(
    fc.record({
      pid: fc.integer({ min: 1, max: 6 }),
      parent: fc.integer({ min: 1, max: 6 }),
      code: fc.option(fc.nat(3)),
      threads: fc.array(fc.nat(100), { minLength: 1, maxLength: 3 }),
    }),
    { maxLength: 12 },
  )
  .map((all) =>
    all.map(({ pid, parent, code, threads }, id) =>
      process(id, pid, parent, { exit: { code }, threads: threads.map((n, i) => thread(100 * id + i, n, i)) }),
    ),
  );

test("every process is there once, under one that is there, in its order", () => {
  fc.assert(
    fc.property(made, fc.constantFrom(...ORDERS), fc.boolean(), fc.boolean(), (all, order, isDescending, isFlat) => {
      const rows = treeRows(all, { order, isDescending, isFlat, closed: new Set() });
      const processes = rows.filter((row) => !row.thread).map((row) => row.process.process_id);
      expect(processes.toSorted((a, b) => a - b)).toEqual(all.map((one) => one.process_id));
      expect(new Set(rows.map((row) => row.key)).size).toBe(rows.length);
      rows.forEach((row, index) => {
        expect(row.parent).toBeLessThan(index);
        expect(row.level).toBe(row.parent < 0 ? 1 : rows[row.parent].level + 1);
        const next = rows.slice(index + 1).find((other) => other.parent === row.parent);
        if (next && order === "instructions") {
          expect((isDescending ? -1 : 1) * (next.instructions - row.instructions)).toBeGreaterThanOrEqual(0);
        }
      });
    }),
  );
});
