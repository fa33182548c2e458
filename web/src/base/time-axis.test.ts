import fc from "fast-check";
import { expect, test } from "vitest";
import { axisTimes, formatAxisTime, moveInside, niceStep, zoomSpan } from "./time-axis.ts";

const spans = fc
  .tuple(fc.integer({ min: 0, max: 1e12 }), fc.integer({ min: 1000, max: 1e12 }))
  .map(([from, width]) => [from, from + width] as const);

test("marks are inside, evenly apart, and not too many", () => {
  fc.assert(
    fc.property(spans, fc.integer({ min: 1, max: 40 }), ([from, to], most) => {
      const times = axisTimes(from, to, most);
      expect(times.length).toBeLessThanOrEqual(most + 1);
      expect(times.every((time) => time >= from && time <= to)).toBe(true);
      const step = niceStep((to - from) / most);
      times.slice(1).forEach((time, i) => expect(time - times[i]).toBeCloseTo(step, 3));
    }),
  );
});

test("two marks of an axis never say the same", () => {
  fc.assert(
    fc.property(spans, fc.integer({ min: 2, max: 20 }), ([from, to], most) => {
      const step = niceStep((to - from) / most);
      const texts = axisTimes(from, to, most).map((time) => formatAxisTime(time, step));
      expect(new Set(texts).size).toBe(texts.length);
    }),
  );
});

test("units are those that are read best", () => {
  expect(formatAxisTime(1.5e9, 5e8)).toBe("1.5 s");
  expect(formatAxisTime(20e6, 5e6)).toBe("20 ms");
  expect(formatAxisTime(1_234_500, 500)).toBe("1,234.5 µs");
  expect(formatAxisTime(70, 10)).toBe("70 ns");
});

test("zooming keeps the time under the pointer, as far as the whole allows, and back again is where it was", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.05, max: 0.95, noNaN: true }),
      fc.double({ min: 1.1, max: 8, noNaN: true }),
      (at, by) => {
        const whole = [0, 1e9] as const;
        const center = at * 1e9;
        const close = zoomSpan(whole, center, by, whole);
        expect(close[0]).toBeGreaterThanOrEqual(0);
        expect(close[1]).toBeLessThanOrEqual(1e9 + 1e-3);
        expect((center - close[0]) / (close[1] - close[0])).toBeCloseTo(at, 6);
        const back = zoomSpan(close, center, 1 / by, whole);
        expect(back[0]).toBeCloseTo(0, 2);
        expect(back[1]).toBeCloseTo(1e9, 2);
      },
    ),
  );
});

test("a span is moved inside, not cut", () => {
  expect(moveInside([-5, 5], [0, 100])).toEqual([0, 10]);
  expect(moveInside([95, 115], [0, 100])).toEqual([80, 100]);
  expect(moveInside([0, 300], [0, 100])).toEqual([0, 100]);
});
