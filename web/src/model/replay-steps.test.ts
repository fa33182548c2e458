import fc from "fast-check";
import { expect, test } from "vitest";
import {
  FASTEST,
  FRAME_RATE,
  interpolate,
  nextFrames,
  orderFrames,
  pace,
  positionAt,
  shareOf,
  speedAt,
  stepFrom,
  timeAt,
} from "./replay-steps.ts";

/** What the server does of frames, of a path without gaps. */
function serve(wanted: { start: number; stride: number; frames: number }, length: number) {
  const position: number[] = [];
  for (let i = 0; i < wanted.frames; i++) {
    const at = Math.min(wanted.start + i * wanted.stride, length);
    if (at !== position.at(-1)) {
      position.push(at);
    }
  }
  return {
    position: Float64Array.from(position),
    block: new Uint32Array(position.length).map((_, i) => i),
    blockEnd: Uint32Array.from(position, (_, i) => i + 1),
  };
}

test("steps forth and back restore the position, and a gap is one step", () => {
  fc.assert(
    fc.property(fc.nat(1000), fc.nat(50), (start, n) => {
      let at = start;
      for (let i = 0; i < n; i++) {
        at = stepFrom(at, 1, 5000, null);
      }
      expect(at).toBe(start + n);
      for (let i = 0; i < n; i++) {
        at = stepFrom(at, -1, 5000, null);
      }
      expect(at).toBe(start);
    }),
  );
  expect(stepFrom(10, 1, 100, { start: 10, end: 40 })).toBe(40);
  expect(stepFrom(0, -1, 100, null)).toBe(0);
  expect(stepFrom(100, 1, 100, null)).toBe(100);
});

test("playing comes to the end by strides, whichever way, and never goes back on its way", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5000 }),
      fc.integer({ min: 1, max: 700 }),
      fc.constantFrom(1 as const, -1 as const),
      (length, stride, direction) => {
        let at = direction > 0 ? 0 : length;
        let shown = 0;
        for (let wanted = nextFrames(at, direction, stride, 16, length); wanted;) {
          expect(wanted.start).toBeGreaterThanOrEqual(0);
          const frames = orderFrames(serve(wanted, length), at, direction);
          expect(frames.length).toBeGreaterThan(0);
          // Thousands of them: what is wrong is collected, and looked at together.
          const wrong = [];
          for (const frame of frames) {
            const forward = (frame.position - at) * direction;
            if (!(forward > 0 && forward <= stride)) {
              wrong.push([at, frame.position]);
            }
            at = frame.position;
            shown++;
          }
          expect(wrong).toEqual([]);
          wanted = nextFrames(at, direction, stride, 16, length);
        }
        expect(at).toBe(direction > 0 ? length : 0);
        expect(shown).toBe(Math.ceil(length / stride));
      },
    ),
  );
});

test("a frame has its own blocks", () => {
  const frames = orderFrames(
    { position: Float64Array.of(3, 5), block: Uint32Array.of(7, 8, 9), blockEnd: Uint32Array.of(1, 3) },
    6,
    -1,
  );
  expect(frames.map((frame) => [frame.position, [...frame.recent]])).toEqual([
    [5, [8, 9]],
    [3, [7]],
  ]);
});

test("speed is kept, at no more than so many frames a second", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: FASTEST }), (speed) => {
      const { stride, rate } = pace(speed);
      expect(rate).toBeLessThanOrEqual(FRAME_RATE);
      expect((stride * rate) / speed).toBeGreaterThan(0.6);
      expect((stride * rate) / speed).toBeLessThanOrEqual(1.0001);
      expect(Math.abs(speedAt(shareOf(speed)) - speed)).toBeLessThanOrEqual(1);
    }),
  );
});

test("positions and times lead to each other where both rise", () => {
  const marks = { time: Float64Array.of(100, 200, 200, 400), position: Float64Array.of(0, 10, 50, 1000) };
  expect(timeAt(marks, 5)).toBe(150);
  expect(positionAt(marks, 150)).toBe(5);
  expect(positionAt(marks, 300)).toBe(525);
  expect(timeAt(marks, 30)).toBe(200);
  expect(interpolate(marks.time, marks.position, 1)).toBe(0);
  expect(interpolate(marks.time, marks.position, 999)).toBe(1000);
  fc.assert(
    fc.property(fc.integer({ min: 51, max: 999 }), (position) => {
      expect(positionAt(marks, timeAt(marks, position))).toBe(position);
    }),
  );
});
