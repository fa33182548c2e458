import { expect, test } from "vitest";
import { Fingers } from "./fingers.ts";

test("one finger pinches nothing", () => {
  const fingers = new Fingers();
  fingers.put(1, { x: 0, y: 0 });
  expect(fingers.move(1, { x: 30, y: 4 })).toBeNull();
  expect(fingers.placeOf(1)).toEqual({ x: 30, y: 4 });
});

test("of two fingers the middle moves the picture, and their distance enlarges it", () => {
  const fingers = new Fingers();
  fingers.put(1, { x: 100, y: 50 });
  fingers.put(2, { x: 200, y: 50 });
  expect(fingers.move(2, { x: 300, y: 50 })).toEqual({ x: 200, y: 50, dx: 50, dy: 0, factor: 2 });
  expect(fingers.move(1, { x: 300, y: 50 })?.factor).toBe(1 / 200);
});

test("a finger that is lifted has no part in it", () => {
  const fingers = new Fingers();
  fingers.put(1, { x: 0, y: 0 });
  fingers.put(2, { x: 9, y: 0 });
  expect(fingers.lift(1)).toBe(true);
  expect(fingers.lift(1)).toBe(false);
  expect(fingers.move(2, { x: 20, y: 0 })).toBeNull();
  expect(fingers.count).toBe(1);
});
