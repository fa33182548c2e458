// The tree of calls: threads, what they called, and what that did within, read as far as it is open and in sight.
import { computed, effect, signal } from "@preact/signals";
import { fetchTreeRows, fetchTreeThreads, type Where } from "../../api/calls.ts";
import type { Parameters } from "../../api/client.ts";
import { client, failure } from "../session.ts";
import { calls } from "../view-state.ts";
import { chosen } from "./calls.ts";
import { callsPlace } from "./call-processes.ts";
import { type ListedRow, makeNode, rowOfTree, type Tree, TREE_PAGE, type TreeNode } from "./tree-rows.ts";

/** null until its threads are known. */
export const callTree = signal<Tree | null>(null);
/** Changes whenever rows have come, or were opened. */
export const treeChanged = signal(0);

let ask: ((process: number, words: Parameters) => ReturnType<typeof fetchTreeRows>) | null = null;

/** Load the tree of the calls that are chosen, until the function returned is called. */
export function watchCallTree(): () => void {
  let running: AbortController | null = null;
  const key = computed(() => {
    const { treeBy: by, treeSort: sort, isTreeDescending: descending } = calls.value;
    return JSON.stringify([callsPlace.value, { ...chosen.value, by, sort, descending }]);
  });
  const stop = effect(() => {
    const [place, words] = JSON.parse(key.value) as [Where | null, Parameters];
    running?.abort();
    ask = null;
    callTree.value = null;
    if (!place) {
      return;
    }
    const current = (running = new AbortController());
    const { trace } = place;
    ask = (process, more) => fetchTreeRows(client(), { trace, process }, { ...words, ...more }, current.signal);
    fetchTreeThreads(client(), place, words, current.signal).then(
      ({ threads }) => {
        if (!current.signal.aborted) {
          // Of one thread it is what it called that is looked at.
          const isOne = threads.length === 1;
          callTree.value = {
            threads: threads.map((thread) => ({
              thread,
              node: isOne ? makeNode(thread.process, { thread: thread.tid }, 1) : null,
            })),
          };
        }
      },
      (error: unknown) => !current.signal.aborted && fail(error),
    );
  });
  return () => {
    stop();
    running?.abort();
    ask = null;
    callTree.value = null;
  };
}

/** A row of the list; what is not known of it is asked for. */
export function listedRow(index: number): ListedRow | null {
  const tree = callTree.peek();
  const found = tree && rowOfTree(tree, index);
  if (found?.kind === "call" && !found.row) {
    load(found.parent, Math.floor(found.place / TREE_PAGE));
  }
  return found;
}

/** Open what is in a row, or close it. */
export function toggleRow(row: ListedRow): void {
  if (row.kind === "thread") {
    const entry = callTree.peek()?.threads.find(({ thread }) => thread === row.thread);
    if (entry) {
      entry.node = entry.node ? null : makeNode(row.thread.process, { thread: row.thread.tid }, 1);
    }
  } else if (row.node) {
    row.parent.open.delete(row.place);
  } else if (row.row && row.row.within > 0) {
    const words = { parent: row.row.path ?? row.row.call };
    row.parent.open.set(row.place, makeNode(row.parent.process, words, row.depth + 1));
  }
  treeChanged.value++;
}

function load(node: TreeNode, page: number): void {
  if (!ask || node.pages.has(page)) {
    return;
  }
  node.pages.set(page, null);
  const asked = ask;
  asked(node.process, { ...node.words, offset: page * TREE_PAGE, count: TREE_PAGE }).then(
    ({ total, rows }) => {
      if (asked === ask) {
        node.total = total;
        node.pages.set(page, rows);
        treeChanged.value++;
      }
    },
    (error: unknown) => {
      if (asked === ask) {
        fail(error);
      }
    },
  );
}

function fail(error: unknown): void {
  if (!(error instanceof DOMException && error.name === "AbortError")) {
    failure.value = error instanceof Error ? error.message : String(error);
  }
}
