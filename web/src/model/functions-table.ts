// Rows of the table of functions: those that pass the filter, sorted.
import { computed, signal } from "@preact/signals";
import type { Functions } from "../api/graph.ts";
import { counts, functions } from "./session.ts";
import { filter } from "./view-state.ts";
import { FUNCTION_FLAG } from "../protocol/generated.ts";

export type FunctionOrder = "instructions" | "entries" | "blocks" | "name" | "discovered";

export const functionOrder = signal<FunctionOrder>("instructions");

/** Whether a function is in the pictures, as the filter has it. */
export function isShown(of: Functions, index: number, hidden: ReadonlySet<number>, hideStubs: boolean): boolean {
  return !(hideStubs && of.flags[index] & FUNCTION_FLAG.stub) && !hidden.has(of.image[index]);
}

/** Indices of the functions in the table, in its order. */
export const functionRows = computed<Uint32Array>(() => {
  const of = functions.value;
  if (!of) {
    return new Uint32Array(0);
  }
  const { text, hideStubs, hiddenImages } = filter.value;
  const hidden = new Set(hiddenImages);
  const wanted = text.toLowerCase();
  const rows: number[] = [];
  for (let i = 0; i < of.count; i++) {
    if (isShown(of, i, hidden, hideStubs) && (!wanted || of.names[i].toLowerCase().includes(wanted))) {
      rows.push(i);
    }
  }
  const executed = counts.value;
  const by: Record<FunctionOrder, (a: number, b: number) => number> = {
    instructions: (a, b) => (executed ? executed.functionInstructions[b] - executed.functionInstructions[a] : 0),
    entries: (a, b) => (executed ? executed.functionEntries[b] - executed.functionEntries[a] : 0),
    blocks: (a, b) => blocksOf(of, b) - blocksOf(of, a),
    name: (a, b) => (of.names[a] < of.names[b] ? -1 : of.names[a] > of.names[b] ? 1 : 0),
    discovered: (a, b) => a - b,
  };
  const compare = by[functionOrder.value];
  return Uint32Array.from(rows.sort((a, b) => compare(a, b) || a - b));
});

export function blocksOf(of: Functions, index: number): number {
  return of.firstBlock[index + 1] - of.firstBlock[index];
}
