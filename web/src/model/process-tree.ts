// Processes and threads as rows of a tree: a program that a process went on as is under the first one of its pid, a child
// under the program that made it, threads under their process where it has several.
import type { ProcessSummary, ThreadSummary } from "../api/traces.ts";

export const ORDERS = ["id", "start", "instructions", "activity"] as const;
export type ProcessOrder = (typeof ORDERS)[number];

export interface TreeRow {
  /** Unique and lasting: of a process its id, of a thread that and more. */
  key: string;
  /** From 1 on. */
  level: number;
  process: ProcessSummary;
  /** null for the process itself. */
  thread: ThreadSummary | null;
  /** The program that its process went on as; null if none is known. */
  follower: string | null;
  /** Whether it is a program that a process went on as. */
  isLater: boolean;
  hasChildren: boolean;
  /** Row of the one it is under; -1 at the top. */
  parent: number;
  started: number;
  ended: number;
  instructions: number;
  lostRecords: number;
}

interface Node {
  process: ProcessSummary;
  children: Node[];
  follower: string | null;
  isLater: boolean;
}

/** Instructions of all threads of a process. */
export function instructionsOf(process: ProcessSummary): number {
  return process.threads.reduce((sum, thread) => sum + thread.instructions, 0);
}

/** Instructions in a second of its life. */
export function activityOf(one: { started: number; ended: number; instructions: number }): number {
  return (one.instructions * 1e9) / Math.max(one.ended - one.started, 1);
}

function buildTree(processes: readonly ProcessSummary[]): Node[] {
  const roots: Node[] = [];
  // The first program of each pid, and the latest; a pid that ended may be given again.
  const first = new Map<number, Node>();
  const latest = new Map<number, Node>();
  for (const process of processes.toSorted((a, b) => a.started - b.started || a.process_id - b.process_id)) {
    const earlier = latest.get(process.pid);
    const isLater =
      earlier !== undefined && earlier.process.exit.signal === undefined && earlier.process.exit.code == null;
    const node: Node = { process, children: [], follower: null, isLater };
    if (isLater) {
      earlier.follower = process.executable;
      first.get(process.pid)!.children.push(node);
    } else {
      (latest.get(process.parent_pid)?.children ?? roots).push(node);
      first.set(process.pid, node);
    }
    latest.set(process.pid, node);
  }
  return roots;
}

export interface TreeOptions {
  order: ProcessOrder;
  isDescending: boolean;
  /** Without levels: every process and thread in one order. */
  isFlat: boolean;
  /** Keys of rows whose children are not shown. */
  closed: ReadonlySet<string>;
}

/** The rows of the tree from top to bottom. */
export function treeRows(processes: readonly ProcessSummary[], options: TreeOptions): TreeRow[] {
  const roots = buildTree(processes);
  const recorded = new Map(processes.map((process) => [process.pid, process.parent_pid]));
  const rows: TreeRow[] = [];
  const sign = options.isDescending ? -1 : 1;
  const valueOf = (row: Omit<TreeRow, "level" | "parent">): number =>
    ({
      id: row.thread?.tid ?? row.process.pid,
      start: row.started,
      instructions: row.instructions,
      activity: activityOf(row),
    })[options.order];
  type Item = Omit<TreeRow, "level" | "parent"> & { inside: () => Item[] };
  const compare = (a: Item, b: Item) => sign * (valueOf(a) - valueOf(b)) || a.started - b.started;
  // A child of vfork runs in its parent until it executes a program, which has a row of its own.
  const ownThreads = ({ pid, threads }: ProcessSummary) =>
    threads.filter((one) => one.end !== "detached" || one.tid === pid || recorded.get(one.tid) !== pid);
  const toItem = (node: Node): Item => ({
    ...rowOf(node),
    hasChildren: node.children.length > 0 || ownThreads(node.process).length > 1,
    inside: () => [...threadItems(node), ...node.children.map(toItem)],
  });
  const add = (items: Item[], level: number, parent: number) => {
    for (const { inside, ...item } of items.sort(compare)) {
      const row = rows.length;
      rows.push({ ...item, level, parent });
      if (item.hasChildren && !options.closed.has(item.key)) {
        add(inside(), level + 1, row);
      }
    }
  };
  if (options.isFlat) {
    const all: Item[] = [];
    const collect = (items: Item[]) => {
      for (const item of items) {
        all.push({ ...item, hasChildren: false });
        collect(item.inside());
      }
    };
    collect(roots.map(toItem));
    add(all, 1, -1);
  } else {
    add(roots.map(toItem), 1, -1);
  }
  return rows;

  function threadItems(node: Node): Item[] {
    const { process } = node;
    const threads = ownThreads(process);
    return threads.length < 2
      ? []
      : threads.map((thread) => ({
          key: `${process.process_id}.${thread.tid}.${thread.start_ns}`,
          process,
          thread,
          follower: null,
          isLater: false,
          hasChildren: false,
          started: thread.started,
          ended: thread.ended,
          instructions: thread.instructions,
          lostRecords: thread.lost_records,
          inside: () => [],
        }));
  }
}

function rowOf(node: Node): Omit<TreeRow, "level" | "parent"> {
  const { process } = node;
  return {
    key: String(process.process_id),
    process,
    thread: null,
    follower: node.follower,
    isLater: node.isLater,
    hasChildren: node.children.length > 0 || process.threads.length > 1,
    started: process.started,
    ended: process.ended,
    instructions: instructionsOf(process),
    lostRecords: process.threads.reduce((sum, thread) => sum + thread.lost_records, 0),
  };
}
