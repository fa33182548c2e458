import fc from "fast-check";
import { expect, test } from "vitest";
import type { ProgramStatus, StoppedThread } from "../../api/live-control.ts";
import {
  describeBudget,
  findBlockAt,
  findMeant,
  findMode,
  parseBudget,
  stateOf,
  whyFiltersStay,
  whyModeStays,
  writeBudget,
} from "./program-state.ts";

const STATUS: ProgramStatus = {
  ...{ pid: 1, mode: "counts", budget: null, is_paused: false, include: [], exclude: [], executable: "/e" },
  ...{ is_held: false, breakpoints: [], stopped: [], elsewhere: [], n_stopped: 0, n_elsewhere: 0 },
};

function stopped(tid: number, reason: StoppedThread["reason"] = "asked"): StoppedThread {
  return { tid, reason, address: "0x1", symbol: "", registers: {} };
}

test("a program is stopped once none of its threads runs", () => {
  expect(stateOf(undefined)).toBe("unknown");
  expect(stateOf(null)).toBe("gone");
  expect(stateOf({ ...STATUS, is_paused: true, is_held: true })).toBe("waiting");
  expect(stateOf(STATUS)).toBe("running");
  const waits = { tid: 1, system_call: "read" };
  expect(stateOf({ ...STATUS, is_held: true, elsewhere: [waits] })).toBe("held");
  expect(stateOf({ ...STATUS, is_held: true, elsewhere: [waits, { tid: 2, system_call: null }] })).toBe("coming");
});

test("the chosen thread is meant as long as it is stopped, else the first", () => {
  const status = { ...STATUS, is_held: true, stopped: [stopped(5, "breakpoint"), stopped(3)] };
  expect(findMeant(status, 3)?.tid).toBe(3);
  expect(findMeant(status, 4)?.tid).toBe(5);
  expect(findMeant(status, null)?.tid).toBe(5);
  expect(findMeant({ ...STATUS, is_held: true }, 3)).toBeNull();
});

test("the block at an address is the innermost, of its newest code", () => {
  const block = fc.record({ start: fc.nat(60), size: fc.integer({ min: 1, max: 12 }), version: fc.nat(3) });
  fc.assert(
    fc.property(fc.array(block, { maxLength: 30 }), fc.nat(70), (blocks, at) => {
      const found = findBlockAt(
        {
          address: BigUint64Array.from(blocks, ({ start }) => BigInt(start)),
          sizeBytes: blocks.map(({ size }) => size),
          codeVersion: blocks.map(({ version }) => version),
        },
        BigInt(at),
      );
      const [best] = blocks
        .filter(({ start, size }) => start <= at && at < start + size)
        .sort((a, b) => b.start - a.start || b.version - a.version);
      if (best === undefined) {
        expect(found).toBe(-1);
      } else {
        expect([blocks[found].start, blocks[found].version]).toEqual([best.start, best.version]);
      }
    }),
  );
});

test("budgets are megabytes, all, or nothing that is one", () => {
  expect(["all", " ALL ", "0", "2.5", "1e3"].map(parseBudget)).toEqual([-1, -1, 0, 2_500_000, 1_000_000_000]);
  expect(["", " ", "-1", "much", "1e12", "Infinity", "NaN"].map(parseBudget)).toEqual(Array(7).fill(null));
  expect([null, 0, 2_500_000].map(describeBudget)).toEqual([
    "all of the order",
    "no order, only counts",
    "2.5 MB/s of order",
  ]);
});

test("a budget is written as it can be read again", () => {
  fc.assert(
    fc.property(fc.option(fc.nat(2_000_000_000)), (budget) => {
      expect(parseBudget(writeBudget(budget))).toBe(budget ?? -1);
    }),
  );
});

test("auto is full with a budget; what can't be changed has a reason", () => {
  const told = (["coverage", "counts", "region", "full"] as const).map((mode) => ({ ...STATUS, mode }));
  expect(told.map(findMode)).toEqual(["coverage", "counts", "region", "full"]);
  expect([0, 5].map((budget) => findMode({ ...STATUS, mode: "full", budget }))).toEqual(["auto", "auto"]);
  expect(findMode({ ...STATUS, mode: "counts", budget: 5 })).toBe("counts");
  expect(told.map((one) => whyModeStays(one) !== "")).toEqual([true, false, true, false]);
  expect(told.map((one) => whyFiltersStay(one) !== "")).toEqual([false, false, true, false]);
});
