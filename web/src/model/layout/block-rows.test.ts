import fc from "fast-check";
import { expect, test } from "vitest";
import { EDGE_KIND } from "../../protocol/generated.ts";
import { makeStrips, rankBlocks } from "./block-rows.ts";
import { makeAnyGraph, makeInput } from "./sample-graphs.ts";

const graphs = fc.tuple(fc.integer(), fc.nat(40)).map(([seed, nFunctions]) => makeAnyGraph(seed, nFunctions));

test("blocks lie in their strip, each in a place of its own", () => {
  fc.assert(
    fc.property(graphs, (input) => {
      const { width, height, x, y } = makeStrips(input);
      for (let f = 0; input.hasBlocks && f < input.nFunctions; f++) {
        const places = new Set<string>();
        let nOutside = 0;
        for (let b = input.firstBlock[f]; b < input.firstBlock[f + 1]; b++) {
          const isInside = Math.abs(x[b]) <= width[f] / 2 - 0.5 && y[b] >= 0.5 && y[b] <= height[f] - 0.5;
          nOutside += Number(!isInside);
          places.add(`${x[b]} ${y[b]}`);
        }
        expect(nOutside).toBe(0);
        expect(places.size).toBe(input.firstBlock[f + 1] - input.firstBlock[f]);
      }
    }),
  );
}, 60_000);

test("edges lead down where there is no loop", () => {
  const forward = fc.array(fc.tuple(fc.nat(19), fc.nat(19)), { maxLength: 60 });
  fc.assert(
    fc.property(forward, (pairs) => {
      const edges = pairs
        .filter(([a, b]) => a !== b)
        .map(([a, b]) => [Math.min(a, b), Math.max(a, b), EDGE_KIND.jump] as const);
      const { rank } = rankBlocks(makeInput([20], { edges }));
      edges.forEach(([from, to]) => {
        expect(rank[to]).toBeGreaterThan(rank[from]);
      });
      // As high as they can be: right below one of those that lead there.
      rank.forEach((row, block) => {
        const above = edges.filter(([, to]) => to === block).map(([from]) => rank[from]);
        expect(row).toBe(Math.max(-1, ...above) + 1);
      });
    }),
  );
}, 60_000);

test("a loop's way back is left out, and a call of the function itself is no loop", () => {
  const edges = [
    [0, 1, EDGE_KIND.fall_through],
    [1, 2, EDGE_KIND.not_taken],
    [2, 1, EDGE_KIND.jump],
    [1, 3, EDGE_KIND.taken],
    [3, 0, EDGE_KIND.call],
  ] as const;
  expect([...rankBlocks(makeInput([4], { edges })).rank]).toEqual([0, 1, 2, 2]);
}, 60_000);

test("a long function goes on beside itself", () => {
  const edges = Array.from({ length: 999 }, (_, i) => [i, i + 1, EDGE_KIND.jump] as const);
  const { width, height } = makeStrips(makeInput([1000], { edges }));
  expect(width[0]).toBeGreaterThan(5);
  expect(height[0]).toBeLessThan(100);
}, 60_000);
