import { expect, test } from "vitest";
import type { CodeBlock, CodeEdge, FunctionCode } from "../../api/code.ts";
import { describeEdge, makeFlow } from "./flow-boxes.ts";

function makeCode(n: number, edges: [number, number, string][]): FunctionCode {
  const block = (index: number): CodeBlock => ({
    block: index,
    function: 0,
    address: `0x${index}`,
    size_bytes: 4,
    exit: null,
    code_version: 0,
    is_recorded: true,
    executions: 1,
    taken: null,
    not_taken: null,
    instructions: [],
  });
  const edge = ([source, target, kind]: [number, number, string]): CodeEdge => ({
    source,
    target,
    function: 0,
    name: "f",
    kind,
    executions: 1,
  });
  return {
    function: 0,
    name: "f",
    image: null,
    address: "0x0",
    n_blocks: n,
    entry_block: 0,
    blocks: Array.from({ length: n }, (_, index) => block(index)),
    edges: edges.map(edge),
    ways_out: [],
  };
}

test("of a box that jumps to many it is told how many, of others nothing", () => {
  const { edges, fans } = makeFlow(
    makeCode(6, [
      [0, 1, "taken"],
      [0, 2, "not_taken"],
      [1, 2, "indirect_jump"],
      [1, 3, "indirect_jump"],
      [1, 4, "indirect_jump"],
      [1, 4, "jump"],
      [1, 5, "indirect_jump"],
      [2, 3, "indirect_jump"],
      [2, 4, "indirect_jump"],
    ]),
    null,
    true,
  );
  expect(fans.map(({ edge, targets }) => [edges[edge].source, targets])).toEqual([[1, 4]]);
});

test("heads of boxes have numbers only where it was counted", () => {
  const code = makeCode(2, [[0, 1, "taken"]]);
  code.blocks[1].is_recorded = false;
  const words = [true, false].map((isCounted) => {
    const { boxes, edges } = makeFlow(code, null, isCounted);
    return [...boxes.map(({ head }) => head), describeEdge(edges[0], isCounted)];
  });
  expect(words).toEqual([
    ["0x0  ×1", "0x1  not counted", "taken ×1 (100.0 %)"],
    ["0x0", "0x1  not counted", "taken"],
  ]);
});
