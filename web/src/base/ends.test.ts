import { constants } from "node:os";
import { expect, test } from "vitest";
import { isBadEnd, lossName, processEnd, signalName } from "./ends.ts";

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

test("a loss that is not known keeps its name", () => {
  expect(lossName("broken_wires")).toBe("broken wires");
});
