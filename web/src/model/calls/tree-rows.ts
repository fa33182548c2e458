// Rows of a tree that is read level by level, a page at a time: which node and which of its rows a row of the list is. Pure.
import type { TreeRow, TreeThread } from "../../api/calls.ts";

export const TREE_PAGE = 100;

/** A thread, a call or a path whose rows are listed: `total` of them, null until that is known. */
export interface TreeNode {
  /** The process that is asked for its rows, and by which words. */
  process: number;
  words: { thread: number } | { parent: number };
  depth: number;
  total: number | null;
  pages: Map<number, TreeRow[] | null>;
  /** Those of its rows that are open, by their place. */
  open: Map<number, TreeNode>;
}

/** What a row of the list shows; `row` is null while it is loaded. */
export type ListedRow =
  | { kind: "thread"; thread: TreeThread; node: TreeNode | null; depth: 0 }
  | { kind: "call"; parent: TreeNode; place: number; row: TreeRow | null; node: TreeNode | null; depth: number };

export function makeNode(process: number, words: TreeNode["words"], depth: number): TreeNode {
  return { process, words, depth, total: null, pages: new Map(), open: new Map() };
}

/** How many rows of the list are below a node: one while it is not known how many. */
export function countRows(node: TreeNode): number {
  let n = node.total ?? 1;
  for (const inner of node.open.values()) {
    n += countRows(inner);
  }
  return n;
}

/** The row at `index` below a node. */
export function rowIn(node: TreeNode, index: number): ListedRow {
  let passed = 0;
  // Places are in order, whenever they were opened.
  for (const [place, inner] of [...node.open].sort(([a], [b]) => a - b)) {
    const at = place + passed;
    if (index <= at) {
      break;
    }
    const inside = index - at - 1;
    const n = countRows(inner);
    if (inside < n) {
      return rowIn(inner, inside);
    }
    passed += n;
  }
  const place = index - passed;
  const row = node.pages.get(Math.floor(place / TREE_PAGE))?.[place % TREE_PAGE] ?? null;
  return { kind: "call", parent: node, place, row, node: node.open.get(place) ?? null, depth: node.depth };
}

export interface Tree {
  threads: { thread: TreeThread; node: TreeNode | null }[];
}

export function countTree({ threads }: Tree): number {
  return threads.reduce((n, { node }) => n + 1 + (node ? countRows(node) : 0), 0);
}

/** The row of the list at `index`. */
export function rowOfTree({ threads }: Tree, index: number): ListedRow | null {
  let left = index;
  for (const { thread, node } of threads) {
    if (left === 0) {
      return { kind: "thread", thread, node, depth: 0 };
    }
    left--;
    const n = node ? countRows(node) : 0;
    if (node && left < n) {
      return rowIn(node, left);
    }
    left -= n;
  }
  return null;
}

/** The index in the list of what a row is below; -1 for threads. */
export function aboveOf(tree: Tree, index: number): number {
  const row = rowOfTree(tree, index);
  for (let above = index - 1; row && row.depth > 0 && above >= 0; above--) {
    const other = rowOfTree(tree, above);
    if (other && other.depth < row.depth) {
      return above;
    }
  }
  return -1;
}
