// The rows of the table of calls: a page at a time, as they come into sight, whichever of a million that is.
import { computed, effect, signal } from "@preact/signals";
import { type CallRow, fetchCalls, type Where } from "../../api/calls.ts";
import type { Parameters } from "../../api/client.ts";
import { client, failure, processId } from "../session.ts";
import { calls } from "../view-state.ts";

export const PAGE_ROWS = 200;
const MOST_PAGES = 60;

/** What the table has: `wanted` says of what it is; null until it is known how many rows there are. */
export interface CallTableRows {
  wanted: string;
  total: number;
}

export const callTable = signal<CallTableRows | null>(null);
/** Changes whenever rows have come. */
export const rowsLoaded = signal(0);
/** The row that is to be in sight: that of the call that was chosen elsewhere; -1 for none. */
export const shownRow = signal(-1);

let pages = new Map<number, CallRow[] | null>();
let ask: ((words: Parameters, signal?: AbortSignal) => ReturnType<typeof fetchCalls>) | null = null;

/** A row of the table; null while it is loaded, which asking for it begins. */
export function callAt(row: number): CallRow | null {
  const number = Math.floor(row / PAGE_ROWS);
  const page = pages.get(number);
  if (page === undefined) {
    load(number);
  }
  return page?.[row % PAGE_ROWS] ?? null;
}

/** Where a call of a process is among the rows that are loaded; -1 if it is not. */
export function rowOfCall(process: number, call: number): number {
  for (const [number, page] of pages) {
    const at = page?.findIndex((row) => row.call === call && row.process === process) ?? -1;
    if (at >= 0) {
      return number * PAGE_ROWS + at;
    }
  }
  return -1;
}

function keep(number: number, rows: CallRow[] | null): void {
  pages.set(number, rows);
  if (pages.size > MOST_PAGES) {
    pages.delete(pages.keys().next().value!);
  }
}

function load(number: number): void {
  const [all, asked] = [pages, ask];
  if (!asked) {
    return;
  }
  keep(number, null);
  asked({ offset: number * PAGE_ROWS, count: PAGE_ROWS }).then(
    ({ rows }) => {
      if (all === pages) {
        pages.set(number, rows);
        rowsLoaded.value++;
      }
    },
    (error: unknown) => {
      pages.delete(number);
      fail(error);
    },
  );
}

/** Have the table of the calls that `words` choose and sort as long as the view is there; null for none. */
export function watchCallTable(read: () => { place: Where; words: Parameters } | null): () => void {
  let running: AbortController | null = null;
  const key = computed(() => JSON.stringify(read()));
  const stopTable = effect(() => {
    const wanted = JSON.parse(key.value) as { place: Where; words: Parameters } | null;
    running?.abort();
    pages = new Map();
    if (!wanted) {
      ask = null;
      callTable.value = null;
      return;
    }
    const current = (running = new AbortController());
    ask = (words) => fetchCalls(client(), wanted.place, { ...wanted.words, ...words }, current.signal);
    // The page with the call that is looked at, or the first.
    const call = calls.peek().call;
    ask({ count: PAGE_ROWS, ...wordsOf(call), offset: call === null ? 0 : null }).then(
      ({ total, offset, at, rows }) => {
        if (!current.signal.aborted) {
          keep(Math.floor(offset / PAGE_ROWS), rows);
          callTable.value = { wanted: key.peek(), total };
          shownRow.value = at ?? -1;
          rowsLoaded.value++;
        }
      },
      (error: unknown) => !current.signal.aborted && fail(error),
    );
  });
  const stopShown = effect(() => {
    const [{ call }, process] = [calls.value, processId.value];
    if (call === null || !ask) {
      return;
    }
    const known = rowOfCall(process, call);
    if (known >= 0) {
      shownRow.value = known;
      return;
    }
    const all = pages;
    ask({ ...wordsOf(call), count: PAGE_ROWS }).then(
      ({ offset, at, rows }) => {
        if (all === pages && at !== null && calls.peek().call === call && processId.peek() === process) {
          keep(Math.floor(offset / PAGE_ROWS), rows);
          shownRow.value = at;
          rowsLoaded.value++;
        }
      },
      () => undefined,
    );
  });
  return () => {
    stopTable();
    stopShown();
    running?.abort();
    ask = null;
  };
}

/** Words that name a call of the process that is looked at. */
function wordsOf(call: number | null): Parameters {
  return call === null ? {} : { call, process: processId.peek() };
}

function fail(error: unknown): void {
  if (!(error instanceof DOMException && error.name === "AbortError")) {
    failure.value = error instanceof Error ? error.message : String(error);
  }
}
