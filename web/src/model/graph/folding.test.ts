import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EDGE_KIND } from "../../protocol/generated.ts";
import { EMPTY_FILTER } from "../view-state.ts";
import { reduceEdges, reduceExecutions } from "./edge-reduction.ts";
import { blocksOfDrawn, foldCounts, foldGraph, type DrawnGraph, layoutInput, nameOfDrawn } from "./folding.ts";
import { findLoops } from "./loops.ts";
import { sampleGraph } from "./sample-graph.ts";

function drawn(change: Partial<typeof EMPTY_FILTER>) {
  const { functions, blocks, counts } = sampleGraph();
  const graph = foldGraph(functions, blocks, { ...EMPTY_FILTER, ...change });
  return { graph, counts: foldCounts(graph, counts), functions };
}

/** Edges as "from>to kind executions", of blocks of the process. */
function edgeWords(graph: DrawnGraph, executions: Float64Array): string[] {
  const kinds = Object.entries(EDGE_KIND);
  return Array.from(graph.edges.source, (source, i) => {
    const [from, to] = [source, graph.edges.target[i]].map((block) => (block < 0 ? "-" : graph.blockOf[block]));
    const kind = kinds.find(([, value]) => value === graph.edges.label[i])?.[0];
    return `${from}>${to} ${kind} ${executions[i]}`;
  });
}

describe("folding", () => {
  test("nothing left out is the process as it is", () => {
    const { graph, counts, functions } = drawn({});
    expect(graph.isWhole).toBe(true);
    expect([...graph.blockOf]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(graph.firstBlock).toBe(functions.firstBlock);
    expect([...counts.blocks!]).toEqual([1, 11, 10, 6, 6, 6, 6, 6]);
  });

  test("without stubs callers lead to the function itself", () => {
    const { graph, counts } = drawn({ hideStubs: true });
    expect([...graph.functionOf]).toEqual([0, 2, 3]);
    expect([...graph.caller]).toEqual([-1, 0, 1]);
    expect(edgeWords(graph, counts.edges!)).toContain("3>5 call 6");
    expect(edgeWords(graph, counts.edges!).some((words) => words.includes("4"))).toBe(false);
    expect([...graph.links.source].map((source, i) => [source, graph.links.target[i], counts.links[i]])).toEqual([
      [0, 1, 6],
      [1, 2, 6],
    ]);
  });

  test("a hidden image goes with its edges", () => {
    const { graph, counts } = drawn({ hiddenImages: [1] });
    expect([...graph.functionOf]).toEqual([0, 1]);
    expect(graph.nBlocks).toBe(5);
    expect(counts.edges!.length).toBe(5);
    expect([...graph.drawnBlock.subarray(5)]).toEqual([-1, -1, -1]);
  });

  test("a folded image is one node where its first function was", () => {
    const { graph, counts } = drawn({ foldedImages: [1] });
    expect([...graph.functionOf]).toEqual([0, 1, 2]);
    expect([...graph.isFolded]).toEqual([0, 0, 2]);
    expect([...graph.drawnBlock]).toEqual([0, 1, 2, 3, 4, 5, 5, 5]);
    expect([...graph.size]).toEqual([4, 1, 3]);
    expect(counts.instructions[2]).toBe(72);
    expect(counts.owner![5]).toBe(1);
    expect(counts.blockInstructions![5]).toBe(72);
    expect(blocksOfDrawn(graph, 5)).toBe(3);
    expect(nameOfDrawn(graph, 2)).toBe(graph.functions.images[1].name);
    expect(nameOfDrawn(graph, 0)).toBe(graph.functions.names[0]);
  });

  test("a folded function is one node, entered and left as before", () => {
    const { graph, counts } = drawn({ foldedFunctions: [0] });
    expect([...graph.drawnBlock]).toEqual([0, 0, 0, 0, 1, 2, 3, 4]);
    expect(counts.blocks![0]).toBe(11);
    expect(edgeWords(graph, counts.edges!)).toContain("0>4 call 6");
  });

  test("a folded loop is one node that stands for its blocks", () => {
    const { graph, counts } = drawn({ foldLoops: true });
    expect([...graph.blockOf]).toEqual([0, 1, 3, 4, 5, 6, 7]);
    expect(graph.drawnBlock[2]).toBe(graph.drawnBlock[1]);
    expect(counts.blocks![graph.drawnBlock[1]]).toBe(11);
    expect(blocksOfDrawn(graph, graph.drawnBlock[1])).toBe(2);
    expect(blocksOfDrawn(graph, 0)).toBe(1);
    expect(edgeWords(graph, counts.edges!)).toContain("1>3 taken 1");
  });

  test("whatever is left out, layouts get a graph whose parts fit together", () => {
    fc.assert(
      fc.property(
        fc.record({
          hideStubs: fc.boolean(),
          foldLoops: fc.boolean(),
          hiddenImages: fc.subarray([0, 1]),
          foldedImages: fc.subarray([0, 1]),
          foldedFunctions: fc.subarray([0, 1, 2, 3]),
        }),
        fc.boolean(),
        (folding, hasBlocks) => {
          const { functions, blocks } = sampleGraph();
          const graph = foldGraph(functions, hasBlocks ? blocks : null, { ...EMPTY_FILTER, ...folding });
          const input = layoutInput(graph, "force", 3);
          expect(input.firstBlock.length).toBe(input.nFunctions + 1);
          expect(input.firstBlock[input.nFunctions]).toBe(input.nBlocks);
          input.caller.forEach((by, i) => expect(by).toBeLessThan(Math.max(i, 1)));
          for (const end of [...input.linkSource, ...input.linkTarget]) {
            expect(end).toBeLessThan(input.nFunctions);
          }
          for (const end of [...input.edgeSource, ...input.edgeTarget]) {
            expect(end).toBeLessThan(input.nBlocks);
          }
          graph.blockOf.forEach((block, i) => {
            expect(graph.functionOfBlock[i]).toBe(
              graph.drawnFunction[functions.firstBlock.findLastIndex((n) => n <= block)],
            );
          });
        },
      ),
    );
  });
});

const graphs = fc.integer({ min: 1, max: 9 }).chain((n) =>
  fc.record({
    n: fc.constant(n),
    edges: fc.array(fc.tuple(fc.nat(n - 1), fc.nat(n - 1), fc.nat(50)), { maxLength: 25 }),
    nodeOf: fc.array(fc.nat(3), { minLength: n, maxLength: n }),
  }),
);

describe("edges", () => {
  test("of nodes folded into one no execution is lost, but for those inside; a loop of a node that is no other's stays", () => {
    fc.assert(
      fc.property(graphs, ({ n, edges, nodeOf }) => {
        const [source, target] = [edges.map((edge) => edge[0]), edges.map((edge) => edge[1])];
        const label = edges.map(() => 0);
        const reduced = reduceEdges(source, target, label, Int32Array.from(nodeOf), new Uint8Array(n));
        const sums = reduceExecutions(
          reduced,
          Float64Array.from(edges, (edge) => edge[2]),
        );
        const isAlone = (node: number) => nodeOf.filter((one) => one === nodeOf[node]).length === 1;
        const across = edges.filter(([a, b]) => nodeOf[a] !== nodeOf[b] || isAlone(a));
        expect(sums.reduce((a, b) => a + b, 0)).toBe(across.reduce((sum, edge) => sum + edge[2], 0));
        const pairs = new Set(across.map(([a, b]) => `${nodeOf[a]} ${nodeOf[b]}`));
        expect(reduced.source.length).toBe(pairs.size);
      }),
    );
  });

  test("loops are nodes that reach each other", () => {
    fc.assert(
      fc.property(graphs, ({ n, edges }) => {
        const reach = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => i === j));
        for (let step = 0; step < n; step++) {
          for (const [a, b] of edges) {
            reach.forEach((from) => (from[b] ||= from[a]));
          }
        }
        const found = findLoops(
          n,
          edges.map((edge) => edge[0]),
          edges.map((edge) => edge[1]),
          () => true,
        );
        for (let i = 0; i < n; i++) {
          const together = reach.map((from, j) => from[i] && reach[i][j]);
          expect(found[i]).toBe(together.indexOf(true));
        }
      }),
    );
  });
});
