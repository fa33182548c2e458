import { expect, test } from "vitest";
import { foldGraph } from "../../model/graph/folding.ts";
import { nodePlaces } from "../../model/graph/detail.ts";
import { sampleGraph } from "../../model/graph/sample-graph.ts";
import type { PlacedGraph } from "../../model/graph/scene.ts";
import type { LayoutResult } from "../../model/layout/layout.ts";
import { MovedNodes } from "../../model/layout/moved-nodes.ts";
import { EMPTY_FILTER } from "../../model/view-state.ts";
import { captionsOf, MOST_CAPTIONS } from "./captions.ts";
import { findMarkedEdges, type Neighbour } from "./marked-edges.ts";

function sample(): PlacedGraph {
  const { functions, blocks } = sampleGraph();
  const graph = foldGraph(functions, blocks, EMPTY_FILTER);
  const result: LayoutResult = {
    layout: "force",
    dimensions: 2,
    blocks: new Float32Array(24),
    functions: new Float32Array(12),
    radii: new Float32Array(4),
    cylinderRadius: 0,
  };
  return { graph, result, places: nodePlaces(graph, result), moved: new MovedNodes(), isFinal: true };
}

const placed = sample();
const NO_HEATS = { edges: { heat: new Uint8Array(0) }, links: { heat: new Uint8Array(0) }, leftOut: null };
const names = placed.graph.functions.names;

/** Captions of a selected node, sorted; functions are open where `open` has a 1. */
function told(open: number[], node: number, wholeFunction: number): string[] {
  const { neighbours } = findMarkedEdges(placed, Uint8Array.from(open), node, -1, wholeFunction, NO_HEATS);
  return captionsOf(
    placed.graph,
    neighbours,
    () => 1,
    (name) => name,
  )
    .map(({ text }) => text)
    .sort();
}

test("a function's captions are its callers and what it calls, without returns, open or not", () => {
  const expected = [`${names[1]} →`, `→ ${names[3]}`].sort();
  expect(told([0, 0, 0, 0], 8 + 2, 2)).toEqual(expected);
  expect(told([1, 1, 1, 1], 5, 2)).toEqual(expected);
});

test("a block's captions are the addresses of its own function's blocks, and the names of others", () => {
  // The loop's head: from the entry and the loop's end, to the loop's end and what is behind it.
  expect(told([1, 0, 0, 0], 1, -1)).toEqual(["0x1000 →", "0x1020 →", "→ 0x1020", "→ 0x1030"]);
  expect(told([1, 0, 0, 0], 3, -1)).toEqual(["0x1010 →", `→ ${names[1]}`].sort());
});

test("of many the busiest have one, and nothing selected has none", () => {
  const many = Array.from({ length: 40 }, (_, node): Neighbour => ({ node, drawn: 0, isOut: true, isOwn: false }));
  const shown = captionsOf(
    placed.graph,
    many.map((one, i) => ({ ...one, drawn: i % 4 })),
    (drawn) => (drawn === 2 ? 100 : 1),
    (name) => name,
  );
  expect(shown.length).toBe(MOST_CAPTIONS);
  expect(shown.slice(0, 10).every(({ drawn }) => drawn === 2)).toBe(true);
  expect(told([0, 0, 0, 0], -1, -1)).toEqual([]);
});
