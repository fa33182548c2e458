// Tables of the code that is selected: blocks, edges and functions.
import type { Blocks, Counts, Functions } from "../../api/graph.ts";
import type { Column } from "../../base/csv.ts";
import { EDGE_KIND, EXIT_KIND } from "../../protocol/generated.ts";
import { isShown } from "../functions-table.ts";
import { functionOfBlock, selectedBlock, selectedFunction } from "../selected.ts";
import { blocks, chosenThreads, counts, functions, processId } from "../session.ts";
import { type Filter, filter } from "../view-state.ts";
import { type TableKind, tableFile } from "./table-file.ts";

export const TABLES = ["blocks", "edges", "functions"] as const;
export type TableName = (typeof TABLES)[number];

/** What is selected, the functions that the table of them has, or all. */
export type TableScope = "selected" | "listed" | "all";

/** The table as a file. Rejects with an Error that says why it can't be had. */
export function makeTable(of: TableName, scope: TableScope, kind: TableKind): Promise<Blob> {
  const { text, hideStubs, hiddenImages } = filter.peek();
  const block = selectedBlock.peek();
  const chosen = scope !== "selected" ? {} : block >= 0 ? { block } : { function: selectedFunction.peek() };
  const listed =
    scope !== "listed"
      ? {}
      : { text: text || null, hide_stubs: hideStubs, hide_images: hiddenImages.join(",") || null };
  const words = { threads: chosenThreads.peek()?.join(","), ...chosen, ...listed };
  return tableFile(of, kind, words, processId.peek(), () => columnsHere(of, scope));
}

function columnsHere(of: TableName, scope: TableScope): Column[] {
  const loaded = { functions: functions.peek(), blocks: blocks.peek(), counts: counts.peek() };
  if (!loaded.functions || !loaded.counts) {
    throw new Error("the trace is still being opened");
  }
  const chosen = chooseFunctions(loaded.functions, scope, filter.peek(), selectedFunction.peek());
  if (of === "functions") {
    return functionColumns(loaded.functions, loaded.counts, chosen);
  }
  if (!loaded.blocks) {
    throw new Error("this process has more blocks than are in this file");
  }
  const { firstBlock } = loaded.functions;
  const block = scope === "selected" ? selectedBlock.peek() : -1;
  const rows = block >= 0 ? [block] : [];
  for (const index of block >= 0 ? [] : chosen) {
    for (let one = firstBlock[index]; one < firstBlock[index + 1]; one++) {
      rows.push(one);
    }
  }
  return of === "blocks"
    ? blockColumns(loaded.functions, loaded.blocks, loaded.counts, rows)
    : edgeColumns(loaded.blocks, loaded.counts, rows);
}

/** Indices of the functions that a scope has, rising. */
export function chooseFunctions(of: Functions, scope: TableScope, by: Filter, selected: number): number[] {
  if (scope === "selected") {
    return selected >= 0 ? [selected] : [];
  }
  const found: number[] = [];
  const hidden = new Set(by.hiddenImages);
  const text = by.text.toLowerCase();
  for (let index = 0; index < of.count; index++) {
    const isListed = isShown(of, index, hidden, by.hideStubs) && of.names[index].toLowerCase().includes(text);
    if (scope === "all" || isListed) {
      found.push(index);
    }
  }
  return found;
}

const pathOf = (of: Functions, index: number) => of.images[of.image[index]]?.path ?? null;

export function functionColumns(of: Functions, executed: Counts, rows: readonly number[]): Column[] {
  const column = (name: string, value: (row: number) => string | number | bigint | null): Column => ({
    name,
    values: rows.map(value),
  });
  return [
    column("function", (row) => row),
    column("name", (row) => of.names[row]),
    column("image", (row) => pathOf(of, row)),
    column("address", (row) => of.address[row]),
    column("n_blocks", (row) => of.firstBlock[row + 1] - of.firstBlock[row]),
    column("discovered_ns", (row) => of.discovered[row]),
    column("entries", (row) => executed.functionEntries[row]),
    column("instructions", (row) => executed.functionInstructions[row]),
  ];
}

export function blockColumns(of: Functions, all: Blocks, executed: Counts, rows: readonly number[]): Column[] {
  const column = (name: string, value: (row: number) => string | number | bigint | null): Column => ({
    name,
    values: rows.map(value),
  });
  const ofBlock = rows.map((row) => functionOfBlock(of.firstBlock, row));
  return [
    column("block", (row) => row),
    column("block_id", (row) => all.blockId[row]),
    column("address", (row) => all.address[row]),
    { name: "function", values: ofBlock.map((index) => of.names[index]) },
    { name: "image", values: ofBlock.map((index) => pathOf(of, index)) },
    column("size_bytes", (row) => all.sizeBytes[row]),
    column("n_instructions", (row) => all.nInstructions[row]),
    column("exit", (row) => wordOf(EXIT_KIND, all.exitKind[row])),
    column("code_version", (row) => all.codeVersion[row]),
    column("first_ns", (row) => all.first[row]),
    column("executions", (row) => executed.blockExecutions?.[row] ?? null),
  ];
}

/** Edges that lead to or away from one of `wanted`; all edges where that is all blocks. */
export function edgeColumns(all: Blocks, executed: Counts, wanted: readonly number[]): Column[] {
  const isWanted = new Uint8Array(all.count);
  for (const block of wanted) {
    isWanted[block] = 1;
  }
  const rows = Array.from(all.edgeIndex.keys()).filter(
    (edge) =>
      wanted.length === all.count || isWanted[all.edgeSource[edge]] === 1 || isWanted[all.edgeTarget[edge]] === 1,
  );
  const column = (name: string, value: (row: number) => string | number | bigint | null): Column => ({
    name,
    values: rows.map(value),
  });
  const ofBlock = (block: number, values: Float64Array | BigUint64Array) => (block >= 0 ? values[block] : null);
  return [
    column("edge", (row) => all.edgeIndex[row]),
    column("source_block_id", (row) => ofBlock(all.edgeSource[row], all.blockId)),
    column("source_address", (row) => ofBlock(all.edgeSource[row], all.address)),
    column("target_block_id", (row) => ofBlock(all.edgeTarget[row], all.blockId)),
    column("target_address", (row) => ofBlock(all.edgeTarget[row], all.address)),
    column("kind", (row) => wordOf(EDGE_KIND, all.edgeKind[row])),
    column("callee_block_id", (row) => ofBlock(all.edgeCallee[row], all.blockId)),
    column("executions", (row) => executed.edgeExecutions?.[all.edgeIndex[row]] ?? null),
  ];
}

function wordOf(words: Record<string, number>, number: number): string | null {
  return Object.keys(words).find((word) => words[word] === number) ?? null;
}
