import fc from "fast-check";
import { expect, test } from "vitest";
import { makeRandom } from "./sample-graphs.ts";
import { SpaceTree } from "./space-tree.ts";

const SOFTENING = 0.05;

/** The push on every body, by every other one. */
function repelSlowly(places: Float64Array, charges: Float64Array): Float64Array {
  const push = new Float64Array(places.length);
  for (let i = 0; i < charges.length; i++) {
    for (let j = 0; j < charges.length; j++) {
      const x = places[3 * i] - places[3 * j];
      const y = places[3 * i + 1] - places[3 * j + 1];
      const z = places[3 * i + 2] - places[3 * j + 2];
      const factor = i === j ? 0 : charges[j] / (x * x + y * y + z * z + SOFTENING);
      push[3 * i] += x * factor;
      push[3 * i + 1] += y * factor;
      push[3 * i + 2] += z * factor;
    }
  }
  return push;
}

function repel(places: Float64Array, charges: Float64Array, dimensions: 2 | 3, theta: number): Float64Array {
  const tree = new SpaceTree(charges.length, dimensions);
  const push = new Float64Array(places.length);
  tree.build(places, charges);
  tree.repel(places, charges, push, { factor: 1, theta, softening: SOFTENING });
  return push;
}

const spots = fc.array(fc.tuple(fc.integer({ min: -3, max: 3 }), fc.integer({ min: -3, max: 3 }), fc.nat(2)), {
  minLength: 1,
  maxLength: 60,
});

test("with a tree that is always opened the push is that of all pairs, also where bodies share a spot", () => {
  fc.assert(
    fc.property(spots, fc.constantFrom(2 as const, 3 as const), (found, dimensions) => {
      const places = Float64Array.from(found.flatMap(([x, y, z]) => [x, y, dimensions === 3 ? z : 0]));
      const charges = Float64Array.from(found, (_, i) => 1 + (i % 3));
      const expected = repelSlowly(places, charges);
      repel(places, charges, dimensions, 1e-6).forEach((push, i) => {
        expect(push).toBeCloseTo(expected[i], 6);
      });
    }),
  );
}, 60_000);

test("far groups as one body push about as their bodies do", () => {
  const random = makeRandom(7);
  const n = 700;
  const places = Float64Array.from({ length: 3 * n }, () => 100 * random());
  const charges = new Float64Array(n).fill(1);
  const expected = repelSlowly(places, charges);
  let miss = 0;
  let whole = 0;
  repel(places, charges, 3, 1.1).forEach((push, i) => {
    miss += (push - expected[i]) ** 2;
    whole += expected[i] ** 2;
  });
  expect(Math.sqrt(miss / whole)).toBeLessThan(0.1);
}, 60_000);
