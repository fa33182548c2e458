// The code of one function in A and in B: the pictures of its control flow, and rows of a listing with both beside each other.
import { computed, effect, signal } from "@preact/signals";
import { type ComparedFunction, fetchComparedFunction, type Union } from "../../api/compare.ts";
import type { CodeBlock, FunctionCode, Instruction } from "../../api/code.ts";
import { makeFlow } from "../flow/flow-boxes.ts";
import { type LaidOutFlow, layOutModel } from "../flow/flow-of-function.ts";
import { client } from "../session.ts";
import { compareFailure, pair, shownComparedFunction, union } from "./compare-session.ts";
import { nodeColor } from "./paint-compared.ts";

/** The code of the function that is looked at; null while it is loaded. */
export const comparedCode = signal<ComparedFunction | null>(null);

/** Load the code of what is looked at, until the function returned is called. */
export function followComparedFunction(): () => void {
  const stop = effect(() => {
    const [wanted, of, index] = [pair.value, union.value, shownComparedFunction.value];
    if (!wanted || !of || index < 0) {
      comparedCode.value = null;
      return undefined;
    }
    const asking = new AbortController();
    fetchComparedFunction(client(), wanted, index, asking.signal).then(
      (found) => (comparedCode.value = found),
      (error: unknown) => {
        if (!asking.signal.aborted) {
          compareFailure.value = error instanceof Error ? error.message : String(error);
        }
      },
    );
    return () => asking.abort();
  });
  return () => {
    stop();
    comparedCode.value = null;
  };
}

/** The picture of one side, laid out; null for none. What is returned ends it. */
export function followFlow(side: "a" | "b", show: (flow: LaidOutFlow | null) => void): () => void {
  let isOver = false;
  let number = 0;
  const stop = effect(() => {
    const [code, of] = [comparedCode.value?.[side] ?? null, union.value];
    const current = ++number;
    if (!code || !of) {
      show(null);
      return;
    }
    const model = makeFlow(code, null, of.compared.isCounted);
    layOutModel(model, (flow) => {
      if (!isOver && current === number) {
        show({ ...flow, colorOf: (box) => nodeColor(of, model.boxes[box].block.block) });
      }
    });
  });
  return () => {
    isOver = true;
    stop();
  };
}

/** A row of both listings: the instruction number `index` of a node, as A and as B has it; null where one has none. */
export interface ComparedRow {
  node: number;
  /** Of the first row of a node the two blocks. */
  isFirst: boolean;
  a: Instruction | null;
  b: Instruction | null;
  executions: { a: number; b: number };
}

/** Rows in the order of the nodes, which is that of their places. */
export function comparedRows(a: FunctionCode | null, b: FunctionCode | null): ComparedRow[] {
  const blocks = new Map<number, { a?: CodeBlock; b?: CodeBlock }>();
  for (const [side, code] of [
    ["a", a],
    ["b", b],
  ] as const) {
    for (const block of code?.blocks ?? []) {
      blocks.set(block.block, { ...blocks.get(block.block), [side]: block });
    }
  }
  const found: ComparedRow[] = [];
  for (const node of [...blocks.keys()].sort((x, y) => x - y)) {
    const { a: ofA, b: ofB } = blocks.get(node)!;
    const n = Math.max(ofA?.instructions.length ?? 0, ofB?.instructions.length ?? 0);
    for (let index = 0; index < n; index++) {
      found.push({
        node,
        isFirst: index === 0,
        a: ofA?.instructions[index] ?? null,
        b: ofB?.instructions[index] ?? null,
        executions: { a: ofA?.executions ?? 0, b: ofB?.executions ?? 0 },
      });
    }
  }
  return found;
}

export const listingRows = computed(() => {
  const code = comparedCode.value;
  return code ? comparedRows(code.a, code.b) : [];
});

/** What a node is called: its function, and how far behind the function's start. */
export function nameNode({ functions, blocks }: Union, node: number): string {
  const name = functions.names[blocks.function[node]];
  const away = blocks.distance?.[node] ?? 0;
  return away === 0 ? name : `${name}${away < 0 ? "-" : "+"}0x${Math.abs(away).toString(16)}`;
}
