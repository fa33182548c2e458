// Rows of the table of functions of two processes: those that pass the filter, sorted. Pure.
import type { Union } from "../../api/compare.ts";
import type { CompareShown } from "../view-state.ts";
import { classOf, type CompareClass } from "./classes.ts";

export const COMPARE_ORDERS = ["name", "a", "b", "ratio", "difference"] as const;
export type CompareOrder = (typeof COMPARE_ORDERS)[number];

/** What a function is: only in one if no code of it ran in the other; else by its instructions. */
export function classOfFunction({ compared }: Union, index: number): CompareClass {
  const { blocks, instructions, differing, notComparable } = compared;
  const isUnknown = notComparable[index] > 0 && notComparable[index] === blocks.a[index] + blocks.b[index];
  const of = classOf(blocks.a[index], blocks.b[index], !isUnknown);
  if (of !== "same" && of !== "lessInB" && of !== "moreInB") {
    return of;
  }
  if (differing[index] === 0) {
    return "same";
  }
  // Of equal sums parts may differ all the same.
  return instructions.b[index] >= instructions.a[index] ? "moreInB" : "lessInB";
}

/** Whether the table shows a function. */
export function isShownFunction(union: Union, index: number, shown: CompareShown): boolean {
  const { only, differing } = union.compared;
  switch (shown) {
    case "all":
      return true;
    case "only-a":
      return only.a[index] > 0;
    case "only-b":
      return only.b[index] > 0;
    case "changed":
      return differing[index] > 0;
  }
}

/** Functions with their names holding `text` that are shown, sorted. Those of the greatest difference first, if not told else. */
export function compareRows(union: Union, shown: CompareShown, text: string, order: CompareOrder): Uint32Array {
  const { functions, compared } = union;
  const wanted = text.toLowerCase();
  const rows: number[] = [];
  for (let i = 0; i < functions.count; i++) {
    if (isShownFunction(union, i, shown) && (!wanted || functions.names[i].toLowerCase().includes(wanted))) {
      rows.push(i);
    }
  }
  const { a, b } = compared.instructions;
  const apart = (i: number) =>
    a[i] === b[i] ? 0 : a[i] === 0 || b[i] === 0 ? Infinity : Math.abs(Math.log(b[i] / a[i]));
  const less = (x: number, y: number) => (x === y ? 0 : x > y ? -1 : 1);
  const by: Record<CompareOrder, (i: number, j: number) => number> = {
    name: (i, j) => (functions.names[i] < functions.names[j] ? -1 : functions.names[i] > functions.names[j] ? 1 : 0),
    a: (i, j) => less(a[i], a[j]),
    b: (i, j) => less(b[i], b[j]),
    ratio: (i, j) => less(apart(i), apart(j)),
    difference: (i, j) => less(compared.difference[i], compared.difference[j]),
  };
  return Uint32Array.from(rows.sort((i, j) => by[order](i, j) || i - j));
}
