import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { overlap, placeLabels } from "./label-placement.ts";

const FRAME = { width: 900, height: 600 };
const wishes = fc.array(
  fc.record({
    x: fc.double({ min: -50, max: 950, noNaN: true }),
    y: fc.double({ min: -50, max: 650, noNaN: true }),
    width: fc.integer({ min: 20, max: 240 }),
    height: fc.integer({ min: 12, max: 40 }),
    gap: fc.integer({ min: 2, max: 14 }),
    further: fc.integer({ min: 0, max: 80 }),
  }),
  { maxLength: 80 },
);

describe("labels", () => {
  test("none covers another, none is cut off, none lies on what is taken", () => {
    const taken = [{ left: 0, top: 0, width: 900, height: 44 }];
    fc.assert(
      fc.property(wishes, fc.integer({ min: 0, max: 60 }), (wanted, most) => {
        const places = placeLabels(
          wanted.map((wish, id) => ({ ...wish, id })),
          FRAME,
          most,
          taken,
        );
        expect(places.length).toBeLessThanOrEqual(most);
        places.forEach((a, i) => {
          expect(a.left).toBeGreaterThanOrEqual(0);
          expect(a.top).toBeGreaterThanOrEqual(0);
          expect(a.left + a.width).toBeLessThanOrEqual(FRAME.width);
          expect(a.top + a.height).toBeLessThanOrEqual(FRAME.height);
          expect(overlap(a, taken[0])).toBe(false);
          for (const b of places.slice(0, i)) {
            expect(overlap(a, b)).toBe(false);
          }
        });
      }),
    );
  });

  test("the first wish is granted, and those far apart all are", () => {
    const wanted = [0, 1, 2].map((id) => ({ id, x: 200 * id + 100, y: 300, width: 80, height: 18, gap: 6 }));
    expect(placeLabels(wanted, FRAME, 9).map((one) => one.id)).toEqual([0, 1, 2]);
    const same = [7, 8].map((id) => ({ id, x: 450, y: 300, width: 80, height: 18, gap: 6 }));
    expect(placeLabels(same, FRAME, 1).map((one) => one.id)).toEqual([7]);
  });
});
