// What two processes are compared in: classes, colours, rows, pairs, lines beside each other.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CodeBlock, FunctionCode } from "../../api/code.ts";
import type { Compared, Union } from "../../api/compare.ts";
import type { ProcessSummary, TraceName } from "../../api/traces.ts";
import { toHex } from "../../base/color.ts";
import { foldCounts, foldGraph } from "../graph/folding.ts";
import { paintNodes } from "../graph/node-colors.ts";
import { sampleGraph } from "../graph/sample-graph.ts";
import { EMPTY_FILTER } from "../view-state.ts";
import {
  CLASS_COLORS,
  CLASS_SIGNS,
  CLASS_WORDS,
  CLASSES,
  classOf,
  colorOf,
  countsWords,
  entriesWords,
  ratioWords,
} from "./classes.ts";
import { comparedRows, nameNode } from "./compared-code.ts";
import { classOfFunction, compareRows } from "./function-rows.ts";
import { paintCompared, unionCounts } from "./paint-compared.ts";
import { chooseProcess, chooseTrace } from "./pairs.ts";

/** The sample graph as that of both: block 3 only A ran, `flush` only B, `puts@plt` both as often, and `puts` B twice as often. */
function sampleUnion(): Union {
  const { functions, blocks } = sampleGraph();
  const compared: Compared = {
    isCounted: true,
    isComparable: new Uint8Array(8).fill(1),
    block: { a: Int32Array.from([0, 1, 2, 3, 4, 5, 6, -1]), b: Int32Array.from([0, 1, 2, -1, 3, 4, 5, 6]) },
    executions: { a: Float64Array.from([1, 10, 9, 1, 6, 3, 3, 0]), b: Float64Array.from([1, 5, 4, 0, 6, 6, 6, 2]) },
    edges: { a: new Float64Array(10).fill(1), b: new Float64Array(10).fill(2) },
    links: { a: Float64Array.from([6, 6, 0]), b: Float64Array.from([6, 6, 2]) },
    function: { a: Int32Array.from([0, 1, 2, -1]), b: Int32Array.from([0, 1, 2, 3]) },
    entries: { a: Float64Array.from([1, 6, 3, 0]), b: Float64Array.from([1, 6, 6, 2]) },
    instructions: { a: Float64Array.from([40, 6, 12, 0]), b: Float64Array.from([20, 6, 24, 4]) },
    blocks: { a: Uint32Array.from([4, 1, 2, 0]), b: Uint32Array.from([3, 1, 2, 1]) },
    only: { a: Uint32Array.from([1, 0, 0, 0]), b: Uint32Array.from([0, 0, 0, 1]) },
    difference: Float64Array.from([20, 0, 12, 4]),
    differing: Uint32Array.from([3, 0, 2, 1]),
    notComparable: new Uint32Array(4),
  };
  // Block 3 is told of the other process, in which all lies elsewhere.
  const distance = Float64Array.from([0, 16, 32, 48, 0, 0, 16, 0]);
  return { functions, blocks: { ...blocks, distance, address: blocks.address.with(3, 0x7777n) }, compared };
}

const counts = fc.nat(10 ** 9);

describe("classes", () => {
  test("A for B is B for A", () => {
    const mirrored = { onlyA: "onlyB", onlyB: "onlyA", lessInB: "moreInB", moreInB: "lessInB" } as const;
    fc.assert(
      fc.property(counts, counts, fc.boolean(), (a, b, isComparable) => {
        const kind = classOf(a, b, isComparable);
        expect(classOf(b, a, isComparable)).toBe((mirrored as Record<string, string>)[kind] ?? kind);
      }),
    );
  });

  test("what is the same has the colour of the same, and nothing else has it", () => {
    fc.assert(
      fc.property(counts, counts, (a, b) => {
        expect(toHex(colorOf(a, b, true)) === toHex(CLASS_COLORS.same)).toBe(a === b && a > 0);
      }),
    );
  });

  test("each has words, a sign, and a colour of its own", () => {
    for (const names of [CLASS_WORDS, CLASS_SIGNS]) {
      expect(new Set(CLASSES.map((kind) => names[kind])).size).toBe(CLASSES.length);
    }
    expect(new Set(CLASSES.map((kind) => toHex(CLASS_COLORS[kind]))).size).toBe(CLASSES.length);
  });

  test("a ratio is one only of what is the same", () => {
    fc.assert(
      fc.property(counts, counts, (a, b) => {
        expect(ratioWords(a, b) === "×1").toBe(a === b && a > 0);
      }),
    );
    expect([ratioWords(10, 25), ratioWords(3, 0), ratioWords(0, 3), ratioWords(4, 3)]).toEqual([
      "×2.5",
      "only A",
      "only B",
      "×0.75",
    ]);
    expect([ratioWords(1e6, 1e6 + 1), ratioWords(1e6 + 1, 1e6), ratioWords(0, 0)]).toEqual(["×1.00+", "×1.00−", ""]);
    expect([entriesWords(10, 2500), entriesWords(3, 0), entriesWords(0, 0)]).toEqual(["A ×10, B ×2.5k", "A ×3", ""]);
    expect(countsWords(10, 25, true)).toBe("A 10, B 25, ×2.5");
    expect(countsWords(10, 0, false)).toBe("A 10, B 0, not comparable");
  });
});

describe("the table of functions", () => {
  test("tells what each is", () => {
    const of = sampleUnion();
    expect([0, 1, 2, 3].map((index) => classOfFunction(of, index))).toEqual(["lessInB", "same", "moreInB", "onlyB"]);
  });

  test("shows those that are asked for, sorted", () => {
    const of = sampleUnion();
    const rows = (...asked: [Parameters<typeof compareRows>[1], string, Parameters<typeof compareRows>[3]]) => [
      ...compareRows(of, ...asked),
    ];
    expect(rows("all", "", "difference")).toEqual([0, 2, 3, 1]);
    expect(rows("only-a", "", "difference")).toEqual([0]);
    expect(rows("only-b", "", "difference")).toEqual([3]);
    expect(rows("changed", "", "name")).toEqual([3, 0, 2]);
    expect(rows("all", "PUTS", "name")).toEqual([2, 1]);
    expect(rows("all", "", "a")).toEqual([0, 2, 1, 3]);
    expect(rows("all", "", "b")).toEqual([2, 0, 1, 3]);
    expect(rows("all", "", "ratio")).toEqual([3, 0, 2, 1]);
  });
});

test("the graph has the colours of classes, and the legend counts them", () => {
  const of = sampleUnion();
  const graph = foldGraph(of.functions, of.blocks, EMPTY_FILTER);
  const drawn = foldCounts(graph, unionCounts(of));
  const painter = paintCompared(of, graph, true);
  const { blocks, functions, legend } = paintNodes(painter, { graph, counts: drawn, text: "", highlights: [] });
  const colorAt = (colors: Uint8Array, i: number) =>
    toHex([0, 1, 2].map((part) => colors[4 * i + part] / 255) as never);
  expect(colorAt(blocks, 0)).toBe(toHex(CLASS_COLORS.same));
  expect(colorAt(blocks, 3)).toBe(toHex(CLASS_COLORS.onlyA));
  expect(colorAt(blocks, 7)).toBe(toHex(CLASS_COLORS.onlyB));
  expect(colorAt(functions, 1)).toBe(toHex(CLASS_COLORS.same));
  expect(colorAt(functions, 3)).toBe(toHex(CLASS_COLORS.onlyB));
  expect(legend.swatches.map(({ label, count }) => [label[0], count])).toEqual([
    ["A", 1],
    ["B", 1],
    ["<", 2],
    ["=", 2],
    [">", 2],
  ]);
});

describe("what is compared with what", () => {
  const traces = [3, 5].map((index) => ({ index }) as TraceName);
  const made = (process_id: number, executable: string, words: string, instructions: number) =>
    ({ process_id, executable, command: words.split(" "), threads: [{ instructions }] }) as ProcessSummary;

  test("the trace that is asked for, else another one, if there is", () => {
    expect([3, 5, 9, -1].map((asked) => chooseTrace(traces, 3, asked))).toEqual([3, 5, 5, 5]);
    expect(chooseTrace(traces, 5, -1)).toBe(3);
    expect(chooseTrace([traces[0]], 3, -1)).toBe(-1);
  });

  test("the process that executed the same, else the like of it", () => {
    const a = made(0, "/bin/x", "x 1", 5);
    const others = [made(4, "/bin/y", "y", 90), made(5, "/bin/x", "x 2", 1), made(6, "/bin/x", "x 1", 1)];
    expect(chooseProcess(others, a, -1, false)).toBe(6);
    expect(chooseProcess(others.slice(0, 2), a, -1, false)).toBe(5);
    expect(chooseProcess([others[0], made(7, "/opt/x", "z", 1)], a, -1, false)).toBe(7);
    expect(chooseProcess([made(8, "/bin/z", "z", 3), others[0]], a, -1, false)).toBe(4);
    expect(chooseProcess(others, a, 4, false)).toBe(4);
    expect(chooseProcess([a, others[0]], a, -1, true)).toBe(4);
    expect(chooseProcess([a, others[0]], a, 0, true)).toBe(0);
    expect(chooseProcess([a], a, -1, true)).toBe(0);
    expect(chooseProcess([], a, -1, false)).toBe(-1);
  });
});

test("lines of one node are beside each other, whatever either has more of", () => {
  const block = (number: number, texts: string[]): CodeBlock =>
    ({
      block: number,
      executions: texts.length,
      instructions: texts.map((text) => ({ address: "0x1", bytes: "90", text })),
    }) as CodeBlock;
  const code = (...blocks: CodeBlock[]) => ({ blocks }) as FunctionCode;
  const rows = comparedRows(code(block(2, ["c"]), block(0, ["a", "b"])), code(block(1, ["x"]), block(0, ["a"])));
  expect(rows.map(({ node, isFirst, a, b }) => [node, isFirst, a?.text ?? null, b?.text ?? null])).toEqual([
    [0, true, "a", "a"],
    [0, false, "b", null],
    [1, true, null, "x"],
    [2, true, "c", null],
  ]);
  expect(rows[0].executions).toEqual({ a: 2, b: 1 });
  expect(comparedRows(null, null)).toEqual([]);
});

test("a node is called by its function", () => {
  const of = sampleUnion();
  expect([nameNode(of, 0), nameNode(of, 3)]).toEqual(["main", "main+0x30"]);
});
