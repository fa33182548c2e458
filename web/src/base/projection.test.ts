import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  axesOf,
  type Eye,
  fitEye,
  mixEyes,
  orbitEye,
  panEye,
  projectionMatrix,
  projectPoint,
  zoomEye,
} from "./projection.ts";

const FRAME = { width: 1200, height: 700 };
const PADDING = { top: 50, right: 30, bottom: 40, left: 20 };

const coordinate = fc.double({ min: -500, max: 500, noNaN: true });
const eyes: fc.Arbitrary<Eye> = fc.record({
  yaw: fc.double({ min: -3, max: 3, noNaN: true }),
  pitch: fc.double({ min: -1.5, max: 1.5, noNaN: true }),
  distance: fc.double({ min: 1, max: 1000, noNaN: true }),
  target: fc.tuple(coordinate, coordinate, coordinate),
});
const clouds = fc
  .array(fc.tuple(coordinate, coordinate, coordinate), { minLength: 2, maxLength: 60 })
  .map((points) => new Float32Array(points.flat()));

function project(eye: Eye, points: Float32Array, i: number): number[] {
  const found = [0, 0, 0];
  projectPoint(projectionMatrix(eye, FRAME, 1000), FRAME, points, i, found);
  return found;
}

describe("projection", () => {
  test("the target is in the middle, as deep as the distance", () => {
    fc.assert(
      fc.property(eyes, (eye) => {
        const [x, y, depth] = project(eye, new Float32Array(eye.target), 0);
        expect(Math.abs(x - 600)).toBeLessThan(0.5);
        expect(Math.abs(y - 350)).toBeLessThan(0.5);
        expect(Math.abs(depth - eye.distance) / eye.distance).toBeLessThan(1e-2);
      }),
    );
  });

  test("axes are at right angles and of length 1", () => {
    fc.assert(
      fc.property(eyes, ({ yaw, pitch }) => {
        const { right, up, back } = axesOf(yaw, pitch);
        const dot = (a: readonly number[], b: readonly number[]) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        for (const [a, b, value] of [
          [right, right, 1],
          [up, up, 1],
          [back, back, 1],
          [right, up, 0],
          [right, back, 0],
          [up, back, 0],
        ] as const) {
          expect(dot(a, b)).toBeCloseTo(value, 9);
        }
      }),
    );
  });

  test("fit has every point in the free rectangle", () => {
    fc.assert(
      fc.property(clouds, eyes, (points, { yaw, pitch }) => {
        const eye = fitEye(points, yaw, pitch, FRAME, PADDING);
        for (let i = 0; i < points.length / 3; i++) {
          const [x, y, depth] = project(eye, points, i);
          expect(depth).toBeGreaterThan(0);
          expect(x).toBeGreaterThan(19);
          expect(x).toBeLessThan(1171);
          expect(y).toBeGreaterThan(49);
          expect(y).toBeLessThan(661);
        }
      }),
    );
  });

  test("fit is as near as it can be: a flat picture touches opposite sides", () => {
    fc.assert(
      fc.property(clouds, (points) => {
        const flat = points.map((value, i) => (i % 3 === 2 ? 0 : value));
        const isWide = [0, 1].some((axis) => {
          const along = flat.filter((_, i) => i % 3 === axis);
          return Math.max(...along) - Math.min(...along) > 2;
        });
        fc.pre(isWide);
        const eye = fitEye(flat, 0, 0, FRAME, PADDING);
        const found = Array.from({ length: flat.length / 3 }, (_, i) => project(eye, flat, i));
        const [xs, ys] = [found.map((at) => at[0]), found.map((at) => at[1])];
        const sides = Math.min(...xs) - 20 + (1170 - Math.max(...xs));
        const ends = Math.min(...ys) - 50 + (660 - Math.max(...ys));
        expect(Math.min(sides, ends)).toBeLessThan(1);
      }),
    );
  });

  test("fit of points as near to each other as numbers of 32 bits can tell", () => {
    for (const apart of [0, 1e-4, 1e-3, 1e-2, 0.1, 1]) {
      const points = new Float32Array([500, -500, 500, 500 - apart, -500 + apart, 500]);
      const eye = fitEye(points, 0.4, 0.3, FRAME, PADDING);
      for (const i of [0, 1]) {
        const [x, y, depth] = project(eye, points, i);
        expect(depth).toBeGreaterThan(0);
        expect([x > 19, x < 1171, y > 49, y < 661]).toEqual([true, true, true, true]);
      }
    }
  });

  test("what is under the pointer stays there while zooming, and goes with it while panning", () => {
    fc.assert(
      fc.property(eyes, fc.double({ min: 0.3, max: 3, noNaN: true }), (eye, factor) => {
        const { right } = axesOf(eye.yaw, eye.pitch);
        const point = new Float32Array(eye.target.map((value, i) => value + 0.2 * eye.distance * right[i]));
        const [x, y] = project(eye, point, 0);
        const [x2, y2] = project(zoomEye(eye, FRAME, factor, x, y), point, 0);
        expect(Math.hypot(x2 - x, y2 - y)).toBeLessThan(1);
        const [x3, y3] = project(panEye(eye, FRAME, 40, -25), point, 0);
        expect(Math.hypot(x3 - x - 40, y3 - y + 25)).toBeLessThan(1);
      }),
    );
  });

  test("an orbit stops before it tips over, and a mix begins and ends where it should", () => {
    const eye: Eye = { yaw: 0, pitch: 0, distance: 10, target: [1, 2, 3] };
    expect(orbitEye(eye, 0, 9).pitch).toBeLessThan(Math.PI / 2);
    const other: Eye = { yaw: 6, pitch: 1, distance: 40, target: [0, 0, 0] };
    expect(mixEyes(eye, other, 0).distance).toBeCloseTo(10);
    expect(mixEyes(eye, other, 1).distance).toBeCloseTo(40);
    // The short way round.
    expect(Math.abs(mixEyes(eye, other, 0.5).yaw)).toBeLessThan(0.2);
  });
});
