import { describe, expect, test } from "vitest";
import { COLD, HEAT_TOP, type Rgb, UNCOUNTED } from "../../base/color.ts";
import { EMPTY_FILTER, MODES } from "../view-state.ts";
import { branchOutcomes } from "./branch-outcomes.ts";
import { colorEdges } from "./edge-colors.ts";
import { foldCounts, foldGraph } from "./folding.ts";
import { colorNodes, OUTCOME_COLORS, threadColor } from "./node-colors.ts";
import { type ColoringInput, FAINT, PLAIN } from "./paint.ts";
import { sampleGraph } from "./sample-graph.ts";

function input(change: Partial<ColoringInput> = {}): ColoringInput {
  const { functions, blocks, counts } = sampleGraph();
  const graph = foldGraph(functions, blocks, EMPTY_FILTER);
  return {
    graph,
    counts: foldCounts(graph, counts),
    edgeExecutions: counts.edgeExecutions,
    mode: "heat",
    text: "",
    recent: null,
    isCounted: true,
    highlights: [],
    ...change,
  };
}

const bytes = (color: Rgb) => color.map((part) => Math.round(255 * part));
const at = (colors: Uint8Array, i: number) => [...colors.subarray(4 * i, 4 * i + 3)];

describe("colours of nodes", () => {
  test("the hottest block has the ramp's top colour, in the picture and as its function", () => {
    const { blocks, functions } = colorNodes(input());
    expect(at(blocks, 1)).toEqual(bytes(HEAT_TOP));
    expect(at(functions, 0)).toEqual(bytes(HEAT_TOP));
    expect(at(blocks, 0)).not.toEqual(bytes(HEAT_TOP));
  });

  test("what the threads chosen did not execute is cold and faint in every mode", () => {
    const given = input();
    const executions = given.counts.blocks!.slice();
    executions[3] = 0;
    for (const mode of MODES) {
      const { blocks } = colorNodes({ ...given, mode, counts: { ...given.counts, blocks: executions } });
      expect(at(blocks, 3)).toEqual(bytes(COLD));
      expect(blocks[15]).toBe(FAINT);
    }
  });

  test("what was left out is told as not counted, and not as not executed", () => {
    const given = input();
    given.graph.blocks!.isRecorded.set([0, 0, 0], 5);
    const executions = Float64Array.from([1, 11, 10, 0, 6, 0, 0, 0]);
    const none = Float64Array.from([40, 24, 0, 0]);
    const counts = { ...given.counts, blocks: executions, instructions: none, entries: none };
    const { blocks, functions, legend } = colorNodes({ ...given, counts });
    expect(legend.swatches.map(({ label, count }) => [label, count])).toEqual([
      ["not executed", 1],
      ["left out, not counted", 3],
    ]);
    expect([at(blocks, 3), at(blocks, 5), at(functions, 2)]).toEqual([COLD, UNCOUNTED, UNCOUNTED].map(bytes));
  });

  test("where nothing was counted the legend has what ran, and no scale", () => {
    const given = input({ isCounted: false });
    const { legend } = colorNodes({ ...given, counts: { ...given.counts, blocks: new Float64Array(8).fill(1) } });
    expect(legend).toEqual({
      title: "Blocks that ran",
      swatches: [{ color: HEAT_TOP, label: "executed", count: 8 }],
      ramp: null,
    });
  });

  test("conditional branches are told apart by the edges that were taken", () => {
    const given = input({ mode: "conditionals" });
    const { blocks, legend } = colorNodes(given);
    expect(at(blocks, 1)).toEqual(bytes(OUTCOME_COLORS.both));
    expect(at(blocks, 5)).toEqual(bytes(OUTCOME_COLORS.taken));
    expect(blocks[4 * 0 + 3]).toBeLessThan(PLAIN);
    expect(legend.swatches.map((swatch) => swatch.count)).toEqual([1, 0, 1, 6]);
    const never = branchOutcomes(given.graph.blocks!, Float64Array.from([1, 1, 10, 10, 0, 6, 6, 6, 6, 6]));
    expect([never(1), never(5), never(0)]).toEqual(["notTaken", "taken", null]);
  });

  test("threads have colours of their own, what several share another", () => {
    const { blocks, legend } = colorNodes(input({ mode: "thread" }));
    expect(at(blocks, 0)).toEqual(bytes(threadColor(0)));
    expect(at(blocks, 7)).toEqual(bytes(threadColor(1)));
    expect(at(blocks, 4)).not.toEqual(at(blocks, 0));
    expect(legend.swatches.map(({ label, count }) => [label, count])).toEqual([
      ["thread 10", 4],
      ["thread 11", 3],
      ["shared by several", 1],
    ]);
  });

  test("structure counts blocks by image, and stubs are dim", () => {
    const { blocks, legend } = colorNodes(input({ mode: "structure" }));
    expect(legend.swatches.map(({ label, count }) => [label, count])).toEqual([
      ["program", 4],
      ["library.so", 3],
      ["stubs, dim", 1],
    ]);
    expect(blocks[4 * 4 + 3]).toBeLessThan(PLAIN);
    expect(at(blocks, 0)).not.toEqual(at(blocks, 5));
  });

  test("what does not match the text is faint", () => {
    const { blocks, functions } = colorNodes(input({ text: "PUTS" }));
    expect(functions[3]).toBe(FAINT);
    expect(functions[4 * 2 + 3]).toBe(PLAIN);
    expect([blocks[3], blocks[4 * 5 + 3]]).toEqual([FAINT, PLAIN]);
  });

  test("before a cursor the last block is the hottest", () => {
    const recent = [
      { block: 6, weight: 0.5 },
      { block: 7, weight: 1 },
    ];
    const { blocks } = colorNodes(input({ mode: "recency", recent }));
    expect(at(blocks, 7)).toEqual(bytes(HEAT_TOP));
    expect(blocks[4 * 6 + 3]).toBe(PLAIN);
    expect(blocks[3]).toBeLessThan(PLAIN);
  });
});

describe("colours of edges", () => {
  test("the busiest comes first, and what was not taken is not drawn", () => {
    const { graph, counts } = input();
    const executions = counts.edges!.slice();
    executions[7] = 0;
    const { ranking, colors } = colorEdges(graph.edges, executions, "heat", false, new Uint8Array(32).fill(255), true);
    expect([...ranking.subarray(0, 2)]).toEqual([2, 3]);
    expect(ranking).not.toContain(7);
    expect(ranking).not.toContain(0);
    expect(at(colors, 2)).toEqual(bytes(HEAT_TOP));
    expect(colors[4 * 2 + 3]).toBeGreaterThan(colors[4 * 4 + 3]);
  });
});

test("where nothing was counted no edge is as strong as the busiest of others", () => {
  const { graph } = input();
  const executions = new Float64Array(graph.edges.source.length).fill(1);
  const weights = [true, false].map((isCounted) => {
    const { colors } = colorEdges(graph.edges, executions, "heat", false, new Uint8Array(32).fill(255), isCounted);
    return [at(colors, 2), colors[4 * 2 + 3]];
  });
  expect(weights[0]).toEqual([bytes(HEAT_TOP), 255]);
  expect(weights[1][0]).not.toEqual(bytes(HEAT_TOP));
  expect(weights[1][1]).toBeLessThan(160);
});

test("what is in a set has the set's colour in every mode, and the legend names it", () => {
  for (const mode of MODES) {
    const set = { name: "mine", color: [1, 0, 0.5] as const, functions: [0], blocks: [] };
    const plain = colorNodes({ ...input(), mode, highlights: [] });
    const found = colorNodes({ ...input(), mode, highlights: [set] });
    expect([...found.functions.subarray(0, 3)]).toEqual([255, 0, 128]);
    expect([...found.functions.subarray(4)]).toEqual([...plain.functions.subarray(4)]);
    expect(found.legend.swatches.at(-1)).toMatchObject({ label: "set: mine", color: set.color });
  }
});
