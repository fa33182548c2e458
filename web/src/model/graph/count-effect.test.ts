import fc from "fast-check";
import { expect, test } from "vitest";
import { heatByte } from "../../base/color.ts";
import { edgeWidening, nodeGrowth, nodeHeats } from "./count-effect.ts";
import { foldCounts, foldGraph } from "./folding.ts";
import { nodesOfGroup } from "./node-groups.ts";
import { sampleGraph } from "./sample-graph.ts";
import { EMPTY_FILTER } from "../view-state.ts";

const effect = fc.double({ min: 0, max: 2, noNaN: true });

test("width grows with the logarithm of the count: as much from 10 to 100 as from 100 to 1000", () => {
  const widthOf = (count: number) => edgeWidening((heatByte(count, 10_000) - 1) / 254, 1);
  const [a, b, c] = [widthOf(10), widthOf(100), widthOf(1000)];
  expect(b - a).toBeCloseTo(c - b, 1);
  expect(b).toBeGreaterThan(a);
  expect(widthOf(10_000)).toBe(3 * widthOf(1));
});

test("without an effect of counts all are alike, and with one more is never less", () => {
  fc.assert(
    fc.property(
      effect,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (by, a, b) => {
        const [less, more] = [Math.min(a, b), Math.max(a, b)];
        expect(edgeWidening(more, by)).toBeGreaterThanOrEqual(edgeWidening(less, by));
        expect(nodeGrowth(more, by)).toBeGreaterThanOrEqual(nodeGrowth(less, by));
        expect(nodeGrowth(less, by)).toBeGreaterThan(0);
        expect([edgeWidening(a, 0), nodeGrowth(a, 0)]).toEqual([1, 1]);
      },
    ),
  );
});

test("the hottest node is the hottest, and a function is as hot as its hottest block", () => {
  const { functions, blocks, counts } = sampleGraph();
  const graph = foldGraph(functions, blocks, EMPTY_FILTER);
  const heats = nodeHeats(graph, foldCounts(graph, counts), 8);
  expect(heats.length).toBe(12);
  expect(heats[1]).toBe(255);
  expect(heats[8]).toBe(255);
  expect(heats[0]).toBe(1);
  expect(heats[10]).toBe(heats[5]);
});

test("a function goes with its blocks, a block alone unless it is all of its function", () => {
  const { functions, blocks } = sampleGraph();
  const graph = foldGraph(functions, blocks, EMPTY_FILTER);
  const placed = { graph, places: { nBlocks: 8 } };
  expect(nodesOfGroup(placed, 1, false)).toEqual([1]);
  expect(nodesOfGroup(placed, 1, true)).toEqual([0, 1, 2, 3, 8]);
  expect(nodesOfGroup(placed, 8, false)).toEqual([0, 1, 2, 3, 8]);
  expect(nodesOfGroup(placed, 4, false)).toEqual([4, 9]);
  expect(nodesOfGroup({ graph, places: { nBlocks: 0 } }, 2, false)).toEqual([2]);
});
