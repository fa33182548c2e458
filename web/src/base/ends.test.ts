import { constants } from "node:os";
import { expect, test } from "vitest";
import { isBadEnd, isBadThreadEnd, lossName, processEnd, signalName, threadEnd } from "./ends.ts";

test("signals are called as the system calls them", () => {
  const others = ["SIGPOLL", "SIGIOT", "SIGUNUSED", "SIGRTMIN"];
  for (const [name, number] of Object.entries(constants.signals)) {
    if (!others.includes(name)) {
      expect(signalName(number)).toBe(name);
    }
  }
  expect(signalName(35)).toBe("SIGRTMIN+1");
  expect(signalName(99)).toBe("signal 99");
});

test("ends in words", () => {
  const went = { exit: { code: null }, went_on_unfollowed: false };
  expect(processEnd(went, "/usr/bin/bash")).toBe("went on as bash");
  expect(processEnd(went, null)).toBe("still ran");
  expect(processEnd({ ...went, went_on_unfollowed: true }, null)).toBe("went on unfollowed");
  expect(processEnd({ exit: { code: 3 }, went_on_unfollowed: false }, null)).toBe("exit 3");
  expect(processEnd({ exit: { signal: 11 }, went_on_unfollowed: false }, null)).toBe("killed by SIGSEGV");
  expect([went, { ...went, exit: { code: 0 } }, { ...went, exit: { code: 1 } }].map(isBadEnd)).toEqual([
    false,
    false,
    true,
  ]);
});

test("threads that a process takes with it were not killed from outside", () => {
  const processes = [{ code: 7 }, { code: 0 }, { signal: 11 }, { code: null }].map((exit) => ({
    exit,
    went_on_unfollowed: false,
  }));
  expect(processes.map((one) => threadEnd("killed", one))).toEqual([
    "with its process",
    "with its process",
    "with its process",
    "killed from outside",
  ]);
  expect(processes.map((one) => isBadThreadEnd("killed", one))).toEqual([false, false, false, true]);
  expect(processes.map((one) => threadEnd("exit", one))).toEqual(processes.map(() => "exited"));
  expect(isBadThreadEnd("lost", processes[0])).toBe(true);
});

test("a loss that is not known keeps its name", () => {
  expect(lossName("broken_wires")).toBe("broken wires");
});
