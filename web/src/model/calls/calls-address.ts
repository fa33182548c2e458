// What of the view of calls is in the address, as words of its fragment. What is as at first is left out.
import { CALL_FILTERS } from "../../api/calls.ts";
import {
  CALL_PARTS,
  CALL_SORTS,
  type Calls,
  CHART_GROUPS,
  INITIAL_CALLS,
  TREE_GROUPS,
  TREE_SORTS,
} from "../view-state.ts";

const KINDS = ["system_call", "library", "probe"];

/** Pairs of a word and what it says. An address that names a process is of its calls, unless it says otherwise. */
export function formatCalls(calls: Calls, hasProcess: boolean): [string, string][] {
  const words: [string, string | null][] = [
    ["calls-of", calls.isOfAll === !hasProcess ? null : calls.isOfAll ? "all" : "process"],
    ["calls", calls.part === INITIAL_CALLS.part ? null : calls.part],
    ["calls-by", calls.by === INITIAL_CALLS.by ? null : calls.by],
    ["calls-sort", calls.sort === INITIAL_CALLS.sort ? null : calls.sort],
    ["calls-down", calls.isDescending ? "1" : null],
    ["calls-text", calls.text || null],
    ["calls-name", calls.name],
    ["calls-kind", calls.kind],
    ["calls-filter", calls.filter],
    ["tree-by", calls.treeBy === INITIAL_CALLS.treeBy ? null : calls.treeBy],
    ["tree-sort", calls.treeSort === INITIAL_CALLS.treeSort ? null : calls.treeSort],
    ["tree-down", calls.isTreeDescending ? "1" : null],
    ["calls-failed", calls.isFailed ? "1" : null],
    ["entity", calls.entity === null ? null : String(calls.entity)],
    ["call", calls.call === null ? null : String(calls.call)],
  ];
  return words.filter((word): word is [string, string] => word[1] !== null);
}

/** What makes no sense is as at first. */
export function parseCalls(words: URLSearchParams): Calls {
  const oneOf = <T extends string>(known: readonly T[], name: string, otherwise: T): T =>
    known.find((one) => one === words.get(name)) ?? otherwise;
  const index = (name: string) => {
    const text = words.get(name);
    return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
  };
  return {
    isOfAll: words.get("calls-of") === "all" || (words.get("calls-of") !== "process" && !words.has("process")),
    part: oneOf(CALL_PARTS, "calls", INITIAL_CALLS.part),
    by: oneOf(CHART_GROUPS, "calls-by", INITIAL_CALLS.by),
    sort: oneOf(CALL_SORTS, "calls-sort", INITIAL_CALLS.sort),
    isDescending: words.get("calls-down") === "1",
    text: words.get("calls-text") ?? "",
    name: words.get("calls-name"),
    kind: KINDS.find((kind) => kind === words.get("calls-kind")) ?? null,
    filter: CALL_FILTERS.find((filter) => filter === words.get("calls-filter")) ?? null,
    treeBy: oneOf(TREE_GROUPS, "tree-by", INITIAL_CALLS.treeBy),
    treeSort: oneOf(TREE_SORTS, "tree-sort", INITIAL_CALLS.treeSort),
    isTreeDescending: words.get("tree-down") === "1",
    isFailed: words.get("calls-failed") === "1",
    entity: index("entity"),
    call: index("call"),
  };
}
