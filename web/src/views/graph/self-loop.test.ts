import { expect, test } from "vitest";
import { loopPath } from "./edge-path.ts";
import { selfLoop } from "./self-loop.ts";

test("a loop begins inside of its node and reaches out of it", () => {
  for (const diameter of [3, 10, 50, 120]) {
    const { radius, away } = selfLoop(diameter);
    expect(away - radius).toBeLessThan(diameter / 2);
    expect(away + radius).toBeGreaterThan(diameter / 2 + 3);
  }
});

test("as a path it is a closed circle, and nothing behind the eye", () => {
  const found = loopPath([100, 100, 5], 20);
  const [start, ...rest] = found!.path.split(/[MA]/).slice(1);
  expect(rest.length).toBe(2);
  expect(rest[1].endsWith(start)).toBe(true);
  const ends = rest.map((arc) => arc.split(" ").slice(-2).map(Number));
  expect(Math.hypot(ends[0][0] - ends[1][0], ends[0][1] - ends[1][1])).toBeCloseTo(20, 1);
  expect(loopPath([100, 100, -1], 20)).toBeNull();
});
