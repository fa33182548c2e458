import { expect, test } from "vitest";
import { foldGraph } from "../graph/folding.ts";
import { emptyResult, type LayoutResult } from "../layout/layout.ts";
import { layoutInput } from "../graph/folding.ts";
import { basePlaces } from "../graph/scene.ts";
import { MovedNodes } from "../layout/moved-nodes.ts";
import { computeLayout } from "../layout/compute-layout.ts";
import { EMPTY_FILTER } from "../view-state.ts";
import { LiveGraph } from "./live-graph.ts";
import { buildStructure } from "./live-picture.ts";
import { LivePlaces, numberByRow } from "./live-places.ts";
import { type MadeUpRow, makeFrame } from "./made-up-frames.ts";

function makeRows(n: number): MadeUpRow[] {
  return Array.from({ length: n }, (_, i) => ({
    function: Math.floor(Math.sqrt(i)),
    address: i,
    executions: 1,
    isGone: false,
  }));
}

/** Places by row of all blocks and functions. */
function byRow(result: LayoutResult, structure: ReturnType<typeof buildStructure>) {
  const found = new Map<string, number[]>();
  structure.blockRows.forEach((row, i) => found.set(`b${row}`, [...result.blocks.subarray(3 * i, 3 * i + 3)]));
  structure.functionRows.forEach((row, i) => found.set(`f${row}`, [...result.functions.subarray(3 * i, 3 * i + 3)]));
  return found;
}

for (const layout of ["cylinder", "force", "circle", "blocks"] as const) {
  for (const dimensions of [2, 3] as const) {
    test(`${layout} in ${dimensions}: what has a place keeps it, and what is new has one near by`, () => {
      const graph = new LiveGraph();
      const rows = makeRows(40);
      graph.apply(makeFrame(rows, [...rows.keys()], -1, 1));
      const places = new LivePlaces();
      let structure = buildStructure(graph);
      let drawn = foldGraph(structure.functions, structure.blocks, EMPTY_FILTER);
      let result = computeLayout(layoutInput(drawn, layout, dimensions));
      places.adopt(result, drawn, structure);
      expect(places.laidOut).toBe(40);
      for (let sequence = 1; sequence < 6; sequence++) {
        const before = byRow(result, structure);
        const first = rows.length;
        rows.push(...makeRows(first + 12).slice(first));
        const told = Array.from({ length: 12 }, (_, i) => first + i);
        graph.apply(makeFrame(rows, told, sequence, sequence + 1));
        structure = buildStructure(graph);
        drawn = foldGraph(structure.functions, structure.blocks, EMPTY_FILTER);
        result = places.grow(drawn, structure, result);
        const now = byRow(result, structure);
        before.forEach((place, key) => expect(now.get(key)).toEqual(place));
        expect(now.size).toBeGreaterThan(before.size);
        expect([...result.blocks, ...result.functions, ...result.radii].every(Number.isFinite)).toBe(true);
        if (dimensions === 2 && result.cylinderRadius === 0) {
          expect(result.blocks.every((value, i) => i % 3 !== 2 || value === 0)).toBe(true);
        }
      }
      // Places are few for so many rows, however often it grew.
      expect(places.bytes).toBeLessThan(64 * 2 * (rows.length + structure.functions.count));
    });
  }
}

test("a graph of which nothing was laid out has places all the same", () => {
  const graph = new LiveGraph();
  const rows = makeRows(5);
  graph.apply(makeFrame(rows, [...rows.keys()], -1, 1));
  const structure = buildStructure(graph);
  const drawn = foldGraph(structure.functions, structure.blocks, EMPTY_FILTER);
  const empty = emptyResult(layoutInput(drawn, "force", 3));
  expect([...new LivePlaces().grow(drawn, structure, empty).blocks].every(Number.isFinite)).toBe(true);
});

test("what the reader moved stays where it was put, whatever number it has when the picture grows", () => {
  const graph = new LiveGraph();
  const rows = Array.from({ length: 6 }, (_, i) => ({ function: 5, address: 5000 + i, executions: 1, isGone: false }));
  graph.apply(makeFrame(rows, [...rows.keys()], -1, 1));
  const places = new LivePlaces();
  const moved = new MovedNodes();
  const read = (at: number) => {
    const structure = buildStructure(graph);
    const drawn = foldGraph(structure.functions, structure.blocks, EMPTY_FILTER);
    if (at === 1) {
      places.adopt(computeLayout(layoutInput(drawn, "force", 2)), drawn, structure);
    }
    const result = places.grow(drawn, structure, emptyResult(layoutInput(drawn, "force", 2)));
    moved.renumber(numberByRow(drawn, structure, drawn.nBlocks));
    const positions = Float32Array.from([...result.blocks, ...result.functions]);
    moved.write(moved.nodes(), basePlaces(result), positions);
    const placeOf = (node: number) => [...positions.subarray(3 * node, 3 * node + 3)];
    return {
      block: (row: number) => structure.blockOfRow[row],
      placeOf,
      function: drawn.nBlocks + structure.functionOfRow[5],
    };
  };
  const first = read(1);
  const before = [first.block(2), first.function];
  moved.move(before, [3, 4, 0]);
  const put = before.map((node) => first.placeOf(node)).map(([x, y, z]) => [x + 3, y + 4, z]);
  // Code in front of it, of a function that nobody knew.
  const more = Array.from({ length: 4 }, (_, i) => ({ function: 1, address: i, executions: 1, isGone: false }));
  rows.push(...more);
  graph.apply(makeFrame(rows, [6, 7, 8, 9], 1, 2));
  const now = read(2);
  const after = [now.block(2), now.function];
  expect(after[0]).not.toBe(before[0]);
  expect(after.map((node) => now.placeOf(node))).toEqual(put.map((place) => place.map((x) => Math.fround(x))));
  expect(moved.nodes().sort((a, b) => a - b)).toEqual([...after].sort((a, b) => a - b));
  expect(moved.state.value).toEqual({ moved: 2, steps: 1 });
  // The step is taken back at the nodes of now.
  expect(moved.undo().sort((a, b) => a - b)).toEqual([...after].sort((a, b) => a - b));
  expect(read(3).placeOf(after[0])).not.toEqual(put[0]);
});
