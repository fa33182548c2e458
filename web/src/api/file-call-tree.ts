// The tree of calls in the file that the page is in, one level at a time: src/clew/server/call_tree_answers.py does it the
// same way, but that paths have other numbers. Pure.
import type { CallDetails, TreeRow, TreeThread } from "./calls.ts";
import { ApiError } from "./client.ts";
import { choose, compare, type TakenCalls } from "./file-call-choice.ts";

/** Calls that have the same around them. */
interface Path {
  number: number;
  parent: number;
  /** Its first call. */
  first: CallDetails;
  calls: number;
  failed: number;
  total: number;
  own: number;
  injected: Set<string>;
  within: number[];
}

/** What is in the tree: calls that are asked for, and those around them. */
interface Kept {
  key: string;
  isKept: (call: number) => boolean;
  /** In the order of time: those that are within none, and by the call around them the others. */
  outermost: CallDetails[];
  within: Map<number, CallDetails[]>;
  /** Made when they are asked for. */
  paths: Path[] | null;
}

interface Level {
  total: number;
  offset: number;
  rows: TreeRow[];
}

/** Words that do not say which calls are asked for. */
const OF_A_LEVEL = ["by", "sort", "descending", "offset", "count", "parent", "thread"];

/** What was kept last of the calls of a process: the levels of one tree are asked for one after the other. */
const keptLast = new WeakMap<TakenCalls, Kept>();

/** Threads; with a word `thread` or `parent` what is in that. Throws an ApiError for what there is not. */
export function treeOf(taken: TakenCalls, words: URLSearchParams): Level | { threads: TreeThread[] } {
  const kept = keepFor(taken, words);
  const isByName = words.get("by") === "name";
  if (!words.has("parent") && !words.has("thread")) {
    return { threads: threadsOf(taken, kept, isByName) };
  }
  const offset = Number(words.get("offset") ?? 0);
  const end = offset + Number(words.get("count") ?? 100);
  const [sort, isDescending] = [words.get("sort") ?? "order", words.has("descending")];
  if (isByName) {
    const found = sortPaths(findPaths(pathsOf(taken, kept), words), sort, isDescending);
    return { total: found.length, offset, rows: found.slice(offset, end).map(tellPath) };
  }
  const found = sortCalls(findCalls(taken, kept, words), sort, isDescending);
  return { total: found.length, offset, rows: found.slice(offset, end).map((call) => tellCall(kept, call)) };
}

function keepFor(taken: TakenCalls, words: URLSearchParams): Kept {
  const key = [...words]
    .filter(([name]) => !OF_A_LEVEL.includes(name))
    .map((word) => word.join("="))
    .join("&");
  const known = keptLast.get(taken);
  if (known?.key === key) {
    return known;
  }
  const numbers = new Set<number>();
  for (const { call } of choose(taken, words)) {
    for (let at = call; at >= 0 && !numbers.has(at); at = taken.calls[at].parent) {
      numbers.add(at);
    }
  }
  const outermost: CallDetails[] = [];
  const within = new Map<number, CallDetails[]>();
  for (const call of taken.calls.filter((one) => numbers.has(one.call))) {
    const beside = call.parent < 0 ? outermost : (within.get(call.parent) ?? []);
    beside.push(call);
    if (call.parent >= 0) {
      within.set(call.parent, beside);
    }
  }
  const found = { key, isKept: (call: number) => numbers.has(call), outermost, within, paths: null };
  keptLast.set(taken, found);
  return found;
}

const hasFailed = ({ error }: CallDetails) => Number(error !== null);
const tookOf = ({ duration }: CallDetails) => duration ?? 0;
const ownOf = ({ own }: CallDetails) => own ?? 0;

function threadsOf(taken: TakenCalls, kept: Kept, isByName: boolean): TreeThread[] {
  const paths = isByName ? pathsOf(taken, kept) : [];
  // As the summary of all calls has them.
  return taken.summary.threads.flatMap(({ tid }) => {
    const own = taken.calls.filter((call) => call.tid === tid && kept.isKept(call.call));
    const outermost = kept.outermost.filter((call) => call.tid === tid);
    const within = isByName ? paths.filter(({ parent, first }) => parent < 0 && first.tid === tid) : outermost;
    const thread = {
      process: own.at(0)?.process ?? 0,
      tid,
      calls: own.length,
      failed: own.reduce((sum, call) => sum + hasFailed(call), 0),
      total: outermost.reduce((sum, call) => sum + tookOf(call), 0),
      within: within.length,
    };
    return own.length > 0 ? [thread] : [];
  });
}

function findThread(words: URLSearchParams): (call: CallDetails) => boolean {
  const tid = Number(words.get("thread"));
  return (call) => call.tid === tid;
}

function findCalls(taken: TakenCalls, kept: Kept, words: URLSearchParams): CallDetails[] {
  if (!words.has("parent")) {
    return kept.outermost.filter(findThread(words));
  }
  const parent = Number(words.get("parent"));
  if (!(parent in taken.calls)) {
    throw new ApiError(400, `parent: there are ${taken.calls.length}`);
  }
  return [...(kept.within.get(parent) ?? [])];
}

function findPaths(paths: readonly Path[], words: URLSearchParams): Path[] {
  if (!words.has("parent")) {
    const isOfThread = findThread(words);
    return paths.filter(({ parent, first }) => parent < 0 && isOfThread(first));
  }
  const parent = Number(words.get("parent"));
  if (!(parent in paths)) {
    throw new ApiError(400, `parent: there are ${paths.length}`);
  }
  return paths[parent].within.map((number) => paths[number]);
}

function pathsOf(taken: TakenCalls, kept: Kept): Path[] {
  if (kept.paths) {
    return kept.paths;
  }
  const paths: Path[] = [];
  const byKey = new Map<string, Path>();
  const pathOfCall = new Map<number, Path>();
  // Those around a call come before it.
  const byDepth = taken.calls.filter(({ call }) => kept.isKept(call)).sort((a, b) => a.depth - b.depth);
  for (const call of byDepth) {
    const above = pathOfCall.get(call.parent);
    const key = JSON.stringify([above ? above.number : `thread ${call.tid}`, call.kind, call.name]);
    let path = byKey.get(key);
    if (!path) {
      const nothing = { calls: 0, failed: 0, total: 0, own: 0 };
      path = {
        number: paths.length,
        parent: above?.number ?? -1,
        first: call,
        ...nothing,
        injected: new Set(),
        within: [],
      };
      paths.push(path);
      byKey.set(key, path);
      above?.within.push(path.number);
    }
    path.calls++;
    path.failed += hasFailed(call);
    path.total += tookOf(call);
    path.own += ownOf(call);
    call.injected.forEach((word) => path!.injected.add(word));
    pathOfCall.set(call.call, path);
  }
  kept.paths = paths;
  return paths;
}

/** Equal ones stay in the order of time. */
function sortCalls(calls: CallDetails[], sort: string, isDescending: boolean): CallDetails[] {
  const keys: Record<string, ((call: CallDetails) => number | string) | undefined> = {
    name: ({ name }) => name,
    total: tookOf,
    own: ownOf,
  };
  return sortBy(calls, keys[sort], isDescending);
}

function sortPaths(paths: Path[], sort: string, isDescending: boolean): Path[] {
  const keys: Record<string, ((path: Path) => number | string) | undefined> = {
    name: ({ first }) => first.name,
    calls: ({ calls }) => calls,
    total: ({ total }) => total,
    own: ({ own }) => own,
  };
  return sortBy(
    paths.sort((a, b) => a.first.call - b.first.call),
    keys[sort],
    isDescending,
  );
}

/** Without a key they are in their order, or the other way around. */
function sortBy<T>(rows: T[], key: ((row: T) => number | string) | undefined, isDescending: boolean): T[] {
  if (!key) {
    return isDescending ? rows.reverse() : rows;
  }
  const sign = isDescending ? -1 : 1;
  return rows.sort((a, b) => sign * compare(key(a), key(b)));
}

function tellCall(kept: Kept, call: CallDetails): TreeRow {
  const { duration: total } = call;
  const within = kept.within.get(call.call)?.length ?? 0;
  return { ...call, calls: 1, failed: hasFailed(call), total, own: ownOf(call), within };
}

function tellPath({ number, first, within, injected, ...sums }: Path): TreeRow {
  const { call, name, kind } = first;
  const { calls, failed, total, own } = sums;
  const told = { injected: [...injected], within: within.length };
  return { path: number, call, name, kind, calls, failed, total, own, ...told };
}
