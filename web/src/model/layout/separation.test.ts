import fc from "fast-check";
import { expect, test } from "vitest";
import { separate } from "./separation.ts";

const bodies = fc.record({
  dimensions: fc.constantFrom(2 as const, 3 as const),
  bodies: fc.array(
    fc.record({
      place: fc.tuple(
        fc.integer({ min: -9, max: 9 }),
        fc.integer({ min: -9, max: 9 }),
        fc.integer({ min: -9, max: 9 }),
      ),
      radius: fc.oneof(
        fc.constant(0.5),
        fc.integer({ min: 1, max: 400 }).map((n) => n / 10),
      ),
    }),
    { maxLength: 60 },
  ),
});

test("bodies end up apart, whatever their sizes, and however many lie on one spot", () => {
  fc.assert(
    fc.property(bodies, ({ dimensions, bodies: all }) => {
      const places = Float64Array.from(all.flatMap(({ place: [x, y, z] }) => [x, y, dimensions === 3 ? z : 0]));
      const radii = Float64Array.from(all, ({ radius }) => radius);
      separate(places, radii, dimensions);
      let worst = Infinity;
      for (let i = 0; i < radii.length; i++) {
        expect(dimensions === 3 || places[3 * i + 2] === 0).toBe(true);
        for (let j = 0; j < i; j++) {
          const [x, y, z] = [0, 1, 2].map((axis) => places[3 * i + axis] - places[3 * j + axis]);
          worst = Math.min(worst, Math.hypot(x, y, z) / (radii[i] + radii[j]));
        }
      }
      expect(worst).toBeGreaterThan(0.97);
    }),
  );
}, 60_000);

test("who is apart stays in place", () => {
  const places = Float64Array.from([0, 0, 0, 10, 0, 0, 0, 20, 0]);
  separate(places, Float64Array.from([4, 5, 9]), 2);
  expect([...places]).toEqual([0, 0, 0, 10, 0, 0, 0, 20, 0]);
}, 60_000);
