import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../base/properties.test-support.ts";
import { LAYOUTS } from "../view-state.ts";
import { computeLayout } from "./compute-layout.ts";
import { median, nearestDistances } from "./distances.ts";
import type { LayoutInput, LayoutResult } from "./layout.ts";
import { makeAnyGraph, makeInput, makeProgram, withoutBlocks } from "./sample-graphs.ts";

const graphs = fc.tuple(fc.integer(), fc.nat(40)).map(([seed, nFunctions]) => makeAnyGraph(seed, nFunctions));

/** What holds of every layout of every graph. */
function check(input: LayoutInput, result: LayoutResult): void {
  expect(result.layout).toBe(input.layout);
  expect(result.dimensions).toBe(input.dimensions);
  expect(result.blocks.length).toBe(input.hasBlocks ? 3 * input.nBlocks : 0);
  expect(result.functions.length).toBe(3 * input.nFunctions);
  expect(result.radii.length).toBe(input.nFunctions);
  for (const array of [result.blocks, result.functions, result.radii]) {
    expect(array.every((value) => Number.isFinite(value))).toBe(true);
  }
  expect(result.radii.every((radius) => radius > 0)).toBe(true);
  for (const places of [result.blocks, result.functions]) {
    checkApart(places);
    if (input.dimensions === 2) {
      expect(places.every((value, i) => i % 3 < 2 || value === 0)).toBe(true);
    }
    if (result.cylinderRadius > 0) {
      for (let i = 0; i < places.length; i += 3) {
        expect(Math.hypot(places[i], places[i + 2]) / result.cylinderRadius).toBeCloseTo(1, 4);
      }
    }
  }
  expect(result.cylinderRadius > 0).toBe(input.layout === "cylinder" && input.dimensions === 3);
  checkRadii(input, result);
}

function checkApart(places: Float32Array): void {
  if (places.length <= 3) {
    return;
  }
  const nearest = nearestDistances(places);
  const least = nearest.reduce((a, b) => Math.min(a, b));
  expect(least).toBeGreaterThan(0.7);
  expect(least).toBeGreaterThan(0.2 * median(nearest));
}

function checkRadii(
  { nFunctions, firstBlock, hasBlocks }: LayoutInput,
  { blocks, functions, radii }: LayoutResult,
): void {
  let worst = 0;
  for (let f = 0; hasBlocks && f < nFunctions; f++) {
    for (let b = firstBlock[f]; b < firstBlock[f + 1]; b++) {
      const [x, y, z] = [0, 1, 2].map((axis) => blocks[3 * b + axis] - functions[3 * f + axis]);
      worst = Math.max(worst, Math.hypot(x, y, z) - radii[f]);
    }
  }
  expect(worst).toBeLessThan(0.01);
}

test("places are finite and apart, on the surface if there is one, and within their function", () => {
  fc.assert(
    fc.property(graphs, (input) => {
      check(input, computeLayout(input));
    }),
    runs(80),
  );
});

test("the same graph gets the same places, to the bit, whoever watches", () => {
  fc.assert(
    fc.property(graphs, (input) => {
      expect(computeLayout(structuredClone(input), () => undefined)).toEqual(computeLayout(input));
    }),
    runs(15),
  );
});

const ring = Array.from({ length: 100 }, (_, f) => [f, (f + 1) % 100] as const);
const SPECIAL: Record<string, LayoutInput> = {
  "no function": makeInput([]),
  "one block": makeInput([1]),
  "functions without blocks": makeInput([0, 0, 3, 0]),
  "a function of 1,500 blocks without edges": makeInput([1500, 1, 2]),
  "a function of 1,500 blocks in a row": makeInput([1500], {
    edges: Array.from({ length: 1499 }, (_, i) => [i, i + 1, 3] as const),
  }),
  "functions that all call each other": makeInput(new Array<number>(100).fill(3), { links: ring }),
  "functions without links": makeInput(new Array<number>(150).fill(2)),
  "a hub": makeInput(new Array<number>(150).fill(1), {
    links: Array.from({ length: 149 }, (_, f) => [0, f + 1] as const),
    caller: Array.from({ length: 150 }, (_, f) => (f > 0 ? 0 : -1)),
  }),
  "calls 300 deep": makeInput(new Array<number>(300).fill(1), {
    links: Array.from({ length: 299 }, (_, f) => [f, f + 1] as const),
    caller: Array.from({ length: 300 }, (_, f) => f - 1),
  }),
  "a program": makeProgram(800),
};

describe.each(LAYOUTS)("%s", (layout) => {
  test.each(Object.keys(SPECIAL))(
    "%s",
    (name) => {
      for (const dimensions of [2, 3] as const) {
        for (const input of [SPECIAL[name], withoutBlocks(SPECIAL[name])]) {
          check({ ...input, layout, dimensions }, computeLayout({ ...input, layout, dimensions }));
        }
      }
    },
    60_000,
  );

  test("neighbouring blocks are about one unit apart", () => {
    for (const dimensions of [2, 3] as const) {
      const { blocks } = computeLayout({ ...makeProgram(1500), layout, dimensions });
      expect(median(nearestDistances(blocks))).toBeGreaterThan(0.8);
      expect(median(nearestDistances(blocks))).toBeLessThan(1.6);
    }
  });
});
