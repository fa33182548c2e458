import { expect, test } from "vitest";
import type { Eye } from "../../base/projection.ts";
import { edgeStrength, sampleEdges } from "./edge-strength.ts";

const FRAME = { width: 1000, height: 800 };
const EYE: Eye = { yaw: 0, pitch: 0, distance: 10, target: [0, 0, 0] };

/** `count` edges that are `length` long, around the middle, `away` units of space to the right of it. */
function strengthOf(count: number, length: number, away = 0): number {
  const positions = new Float32Array(6 * count);
  for (let i = 0; i < count; i++) {
    const y = (4 * i) / count - 2;
    positions.set([away - length / 2, y, 0, away + length / 2, y, 0], 6 * i);
  }
  return edgeStrength(sampleEdges(Uint32Array.from({ length: 2 * count }, (_, i) => i)), positions, EYE, FRAME);
}

test("edges are the fainter the more and the longer they are, and few are as strong as any", () => {
  const few = strengthOf(10, 1);
  expect(strengthOf(0, 1)).toBe(few);
  expect(strengthOf(20_000, 0.1)).toBeLessThan(few);
  expect(strengthOf(20_000, 1)).toBeLessThan(strengthOf(20_000, 0.1));
  expect(strengthOf(80_000, 1)).toBeLessThan(strengthOf(20_000, 1));
  expect(strengthOf(200_000, 5)).toBeGreaterThan(0.1);
});

test("what is outside of the frame covers nothing", () => {
  expect(strengthOf(20_000, 1, 50)).toBe(strengthOf(10, 1));
  expect(strengthOf(20_000, 1, 4.5)).toBeGreaterThan(strengthOf(20_000, 1));
});

test("a list stands for itself while it is short, and is evenly thinned when it is long", () => {
  const ends = Uint32Array.of(4, 5, 6, 7);
  expect(sampleEdges(ends)).toEqual({ ends, count: 2 });
  const many = sampleEdges(Uint32Array.from({ length: 200_000 }, (_, i) => i));
  expect(many.count).toBe(100_000);
  expect(many.ends.length).toBeLessThan(2_000);
  expect(many.ends.at(-2)!).toBeGreaterThan(190_000);
  expect([...many.ends].every((end, i) => i % 2 === 0 || end === many.ends[i - 1] + 1)).toBe(true);
});
