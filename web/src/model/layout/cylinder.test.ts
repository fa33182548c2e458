import fc from "fast-check";
import { expect, test } from "vitest";
import { orderByCalls } from "./call-order.ts";
import { layOutCylinder } from "./cylinder.ts";
import type { LayoutInput, LayoutResult } from "./layout.ts";
import { makeAnyGraph, makeProgram, withoutBlocks } from "./sample-graphs.ts";

const graphs = fc.tuple(fc.integer(), fc.nat(40)).map(([seed, nFunctions]) => makeAnyGraph(seed, nFunctions));

/** By function how high its highest block is. Functions without any are left out: -Infinity. */
function findTops({ nFunctions, firstBlock }: LayoutInput, { blocks }: LayoutResult): number[] {
  return Array.from({ length: nFunctions }, (_, f) => {
    let top = -Infinity;
    for (let b = firstBlock[f]; b < firstBlock[f + 1]; b++) {
      top = Math.max(top, blocks[3 * b + 1]);
    }
    return top;
  });
}

function checkCalls(input: LayoutInput, tops: readonly number[]): void {
  const { component } = orderByCalls(input.nFunctions, input.linkSource, input.linkTarget);
  let worst = 0;
  input.linkSource.forEach((caller, i) => {
    const callee = input.linkTarget[i];
    if (component[caller] !== component[callee] && Number.isFinite(tops[caller]) && Number.isFinite(tops[callee])) {
      worst = Math.max(worst, tops[callee] - tops[caller]);
    }
  });
  expect(worst).toBeLessThan(1e-3);
  // Those that call each other lie in the order in which they were discovered.
  const last = new Map<number, number>();
  component.forEach((one, f) => {
    if (Number.isFinite(tops[f])) {
      expect(tops[f]).toBeLessThanOrEqual((last.get(one) ?? Infinity) + 1e-3);
      last.set(one, tops[f]);
    }
  });
}

test("a callee is never above its caller", () => {
  fc.assert(
    fc.property(graphs, (graph) => {
      const input = { ...graph, layout: "cylinder" as const };
      const result = layOutCylinder(input);
      const tops = input.hasBlocks
        ? findTops(input, result)
        : Array.from(result.radii, (radius, f) => result.functions[3 * f + 1] + radius);
      checkCalls(input, tops);
    }),
  );
}, 60_000);

test("of a program too, with blocks and without", () => {
  const program = makeProgram(20_000);
  checkCalls(program, findTops(program, layOutCylinder(program)));
  const { functions, radii } = layOutCylinder(withoutBlocks(program));
  checkCalls(
    program,
    Array.from(radii, (radius, f) => functions[3 * f + 1] + radius),
  );
}, 60_000);

test("deeper calls lie further around, and the unrolled surface has the same places", () => {
  const program = makeProgram(5_000);
  const round = layOutCylinder(program);
  const flat = layOutCylinder({ ...program, dimensions: 2 });
  const right = new Map<number, number>();
  const left = new Map<number, number>();
  for (let f = 0; f < program.nFunctions; f++) {
    const x = flat.functions[3 * f];
    const depth = program.depth[f];
    left.set(depth, Math.min(left.get(depth) ?? Infinity, x));
    right.set(depth, Math.max(right.get(depth) ?? -Infinity, x));
    const angle = Math.atan2(round.functions[3 * f], round.functions[3 * f + 2]);
    expect(angle * round.cylinderRadius).toBeCloseTo(x, 1);
    expect(round.functions[3 * f + 1]).toBe(flat.functions[3 * f + 1]);
  }
  // Depths may share a sector, but one three deeper begins behind where the other begins.
  for (const [depth, x] of left) {
    expect(x).toBeLessThanOrEqual(right.get(depth + 3) ?? Infinity);
  }
}, 60_000);

test("the cylinder is neither a plate nor a needle", () => {
  for (const blocks of [1_000, 10_000, 100_000]) {
    const { blocks: places, cylinderRadius } = layOutCylinder(makeProgram(blocks));
    let [least, most] = [Infinity, -Infinity];
    for (let i = 1; i < places.length; i += 3) {
      least = Math.min(least, places[i]);
      most = Math.max(most, places[i]);
    }
    expect((most - least) / (2 * cylinderRadius)).toBeGreaterThan(1.2);
    expect((most - least) / (2 * cylinderRadius)).toBeLessThan(2.8);
  }
}, 60_000);
