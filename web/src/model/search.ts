// The search: what is asked for, and what was found of each kind.
import { computed, signal } from "@preact/signals";
import { fetchSearch, type SearchAnswer, type SearchHit } from "../api/search.ts";
import { rankNames } from "../base/names.ts";
import { kindsOf, type SearchKind } from "../base/query-kinds.ts";
import { client, counts, functions, processId } from "./session.ts";
import { update, viewState } from "./view-state.ts";

const MOST_HITS = 100;
const DELAY_MS = 180;

export interface FoundRow {
  kind: SearchKind;
  function: number;
  /** An index; -1 for a function. */
  block: number;
  address: bigint;
  text: string;
  /** How often it was executed; of a function, how often it was entered. */
  executions: number;
}

export interface FoundGroup {
  kind: SearchKind;
  rows: FoundRow[];
  /** A line about the group: what is missing, or what is wrong with the query. */
  note: string | null;
}

export const query = signal("");
/** The one kind that is searched; null for all that make sense. */
export const onlyKind = signal<SearchKind | null>(null);

const answers = signal<ReadonlyMap<SearchKind, SearchAnswer | Error>>(new Map());
export const isSearching = signal(false);

const symbols = computed<FoundGroup>(() => {
  const of = functions.value;
  const executed = counts.value;
  const weight = (index: number) => executed?.functionInstructions[index] ?? 0;
  const found = of ? rankNames(of.names, query.value, weight, MOST_HITS + 1) : [];
  return {
    kind: "symbol",
    rows: found.slice(0, MOST_HITS).map((index) => ({
      kind: "symbol",
      function: index,
      block: -1,
      address: of!.address[index],
      text: of!.names[index],
      executions: executed?.functionEntries[index] ?? 0,
    })),
    note: found.length > MOST_HITS ? `the best ${MOST_HITS} are shown` : null,
  };
});

function wanted(): SearchKind[] {
  if (onlyKind.value !== null) {
    return query.value.trim() ? [onlyKind.value] : [];
  }
  return kindsOf(query.value);
}

/** What was found, exact places first. */
export const groups = computed<FoundGroup[]>(() => {
  const kinds = wanted();
  const found: FoundGroup[] = [];
  for (const kind of ["address", "symbol", "bytes", "text"] as const) {
    if (!kinds.includes(kind)) {
      continue;
    }
    const answer = answers.value.get(kind);
    if (kind === "symbol") {
      found.push(symbols.value);
    } else if (answer instanceof Error) {
      found.push({ kind, rows: [], note: onlyKind.value === null ? null : answer.message });
    } else if (answer) {
      found.push({ kind, rows: answer.hits.map((hit) => toRow(kind, hit)), note: noteOf(answer) });
    }
  }
  return found.filter((group) => group.rows.length > 0 || group.note !== null);
});

/** All rows of all groups, one after another. */
export const rows = computed(() => groups.value.flatMap((group) => group.rows));

function toRow(kind: SearchKind, hit: SearchHit): FoundRow {
  return {
    kind,
    function: hit.function,
    block: hit.block,
    address: BigInt(hit.address),
    text: hit.count > 1 ? `${hit.text}  (${hit.count} times in its block)` : hit.text,
    executions: hit.executions,
  };
}

function noteOf(answer: SearchAnswer): string | null {
  if (answer.stopped === "time") {
    return "stopped after 1.5 s; ask again and it goes on from there";
  }
  return answer.stopped === "limit" ? `the ${MOST_HITS} executed most are shown` : null;
}

let timer = 0;
let running: AbortController | null = null;

/** Search for some text, of the kinds that make sense or of one. What was asked before is forgotten. */
export function search(text: string, only: SearchKind | null): void {
  query.value = text;
  onlyKind.value = only;
  clearTimeout(timer);
  running?.abort();
  answers.value = new Map();
  const kinds = wanted().filter((kind) => kind !== "symbol");
  isSearching.value = kinds.length > 0 && processId.value >= 0;
  if (isSearching.value) {
    timer = window.setTimeout(() => void ask(kinds as Exclude<SearchKind, "symbol">[], text), DELAY_MS);
  }
}

async function ask(kinds: Exclude<SearchKind, "symbol">[], text: string): Promise<void> {
  const control = new AbortController();
  running = control;
  const [trace, process] = [viewState.peek().trace, processId.peek()];
  await Promise.all(
    kinds.map(async (kind) => {
      const answer = await fetchSearch(client(), trace, process, kind, text, MOST_HITS, control.signal).catch(
        (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
      );
      if (!control.signal.aborted) {
        answers.value = new Map(answers.peek()).set(kind, answer);
      }
    }),
  );
  if (!control.signal.aborted) {
    isSearching.value = false;
  }
}

/** Select what was found, and show it: where the graph is not seen, in the view that is. */
export function show(row: FoundRow): void {
  update({
    selection: row.block >= 0 ? { kind: "block", index: row.block } : { kind: "function", index: row.function },
    ...(["processes", "calls"].includes(viewState.peek().view) ? { view: "graph" as const } : {}),
  });
}
