// Where the threads of two processes part, and the replays of both, which go there together.
import { computed, effect, signal } from "@preact/signals";
import {
  fetchOrder,
  fetchPath,
  type OrderPlace,
  type Parting,
  type ProcessOf,
  type ThreadOrder,
  type Union,
} from "../../api/compare.ts";
import { client } from "../session.ts";
import { compare, cursor, type Cursor, update } from "../view-state.ts";
import { nameNode } from "./compared-code.ts";
import { comparison, pair, union } from "./compare-session.ts";

/** So many partings of each pair of threads are asked for. */
export const MOST_PARTINGS = 20;
/** Blocks in front of the place of a replay, and behind it, that are shown. */
const AROUND = 8;

/** From where on threads are compared and in which images, as `clew diff --from --only`; empty for its own choice. */
export const orderWanted = signal({ start: "", only: "" });
export const order = signal<ThreadOrder[] | null>(null);
/** Why there is none; null if there is, or it is still asked for. */
export const noOrder = signal<string | null>(null);

/** A parting with the threads that it is of. */
export interface FoundParting {
  threads: ThreadOrder;
  parting: Parting;
  number: number;
}

export const partings = computed<FoundParting[]>(() =>
  (order.value ?? []).flatMap((threads) => threads.partings.map((parting, i) => ({ threads, parting, number: i + 1 }))),
);

/** The parting that both replays are at; -1 for none. */
export const currentParting = computed(() => {
  const [a, b] = [cursor.value, compare.value.cursor];
  return partings.value.findIndex(
    ({ threads, parting }) => isAt(a, threads.a?.tid, parting.a.at) && isAt(b, threads.b?.tid, parting.b.at),
  );
});

function isAt(at: Cursor | null, tid: number | undefined, place: { execution: number }): boolean {
  return at !== null && at.thread === tid && at.position === place.execution;
}

/** Ask where threads part whenever what is compared changes, until the function returned is called. */
export function followOrder(): () => void {
  return effect(() => {
    const [wanted, of, { start, only }] = [pair.value, comparison.value, orderWanted.value];
    order.value = null;
    noOrder.value = of?.no_order ?? null;
    if (!wanted || !of?.is_ordered) {
      return undefined;
    }
    const asking = new AbortController();
    fetchOrder(client(), wanted, { partings: MOST_PARTINGS, start, only }, asking.signal).then(
      (found) => {
        order.value = found.threads;
        noOrder.value = found.reason;
      },
      (error: unknown) => {
        if (!asking.signal.aborted) {
          noOrder.value = error instanceof Error ? error.message : String(error);
        }
      },
    );
    return () => asking.abort();
  });
}

/** Both replays to a parting, in front of what differs; or to where they meet again. */
export function goToParting({ threads, parting }: FoundParting, place: "at" | "met" = "at"): void {
  const [a, b] = [parting.a[place], parting.b[place]];
  if (!threads.a || !threads.b || !a || !b) {
    return;
  }
  const of = place === "at" ? parting.last : parting.met;
  update({
    cursor: { thread: threads.a.tid, position: a.execution },
    compare: {
      ...compare.peek(),
      cursor: { thread: threads.b.tid, position: b.execution },
      selection: of?.node == null ? compare.peek().selection : { kind: "block", index: of.node },
    },
  });
}

/** The next parting, or the one before. */
export function stepParting(by: 1 | -1): void {
  const [all, at] = [partings.peek(), currentParting.peek()];
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
  if (next in all) {
    goToParting(all[next]);
  }
}

/** Both replays one block on, or back. */
export function stepBoth(by: 1 | -1): void {
  const [a, b] = [cursor.peek(), compare.peek().cursor];
  const moved = (at: Cursor | null) => at && { ...at, position: Math.max(at.position + by, 0) };
  update({ cursor: moved(a), compare: { ...compare.peek(), cursor: moved(b) } });
}

/** A block around the place of a replay. */
export interface ReplayRow {
  position: number;
  /** -1 for one that is not known. */
  node: number;
}

export interface ReplayRows {
  at: Cursor;
  rows: ReplayRow[];
}

/** The blocks around the place of a replay, whenever that changes; null without one. What is returned ends it. */
export function followReplayOf(side: "a" | "b", show: (rows: ReplayRows | null) => void): () => void {
  return effect(() => {
    const at = side === "a" ? cursor.value : compare.value.cursor;
    const [of, both]: [ProcessOf | undefined, Union | null] = [pair.value?.[side], union.value];
    if (!at || !of || !both) {
      show(null);
      return undefined;
    }
    const nodeOf = firstNodes(both.compared.block[side]);
    const asking = new AbortController();
    const start = Math.max(at.position - AROUND, 0);
    fetchPath(client(), of, at.thread, start, 2 * AROUND + 1, asking.signal).then(
      (found) => {
        const rows = Array.from(found.blocks, (block, i) => ({
          position: found.start + i,
          node: nodeOf.get(block) ?? -1,
        }));
        show({ at, rows });
      },
      (error: unknown) => {
        if (!asking.signal.aborted) {
          noOrder.value = error instanceof Error ? error.message : String(error);
          show(null);
        }
      },
    );
    return () => asking.abort();
  });
}

function firstNodes(blocks: Int32Array): Map<number, number> {
  const found = new Map<number, number>();
  blocks.forEach((block, node) => {
    if (block >= 0 && !found.has(block)) {
      found.set(block, node);
    }
  });
  return found;
}

/** Where something is: as the graph of both names it, else by its symbol, else by its file. */
export function namePlace(of: Union | null, place: OrderPlace): string {
  const line = place.line === null ? "" : ` (${place.line.slice(place.line.lastIndexOf("/") + 1)})`;
  if (of && place.node !== null) {
    return `${nameNode(of, place.node)}${line}`;
  }
  if (place.symbol !== null) {
    const away = place.symbol_offset ?? 0;
    return `${place.symbol}${away > 0 ? `+0x${away.toString(16)}` : ""}${line}`;
  }
  const file = place.image?.slice(place.image.lastIndexOf("/") + 1);
  return `${file === undefined ? place.app_pc : `${file}+${place.offset ?? "?"}`}${line}`;
}
