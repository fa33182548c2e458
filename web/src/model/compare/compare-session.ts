// Two processes that are compared, as signals, and what loads them: A is what the page looks at, B what it is compared with.
import { batch, computed, effect, signal } from "@preact/signals";
import { type ComparisonSummary, fetchComparison, fetchUnion, type Pair, type Union } from "../../api/compare.ts";
import { fetchSummary, type TraceSummary } from "../../api/traces.ts";
import { functionOfBlock } from "../selected.ts";
import { client, process, processId, summary, traceNames } from "../session.ts";
import { compare, type Selection, update, updateCompare, viewState } from "../view-state.ts";
import { chooseProcess, chooseTrace } from "./pairs.ts";
import { type CompareOrder, compareRows } from "./function-rows.ts";

const traceA = computed(() => viewState.value.trace);

/** The trace B; -1 if there is none to choose. */
export const traceB = computed(() => chooseTrace(traceNames.value, traceA.value, compare.value.trace));

/** The summary of trace B; null while it is loaded. */
export const summaryB = signal<TraceSummary | null>(null);

/** The process of B; -1 until it is known. */
export const processB = computed(() => {
  const [of, a] = [summaryB.value, process.value];
  return of && a ? chooseProcess(of.processes, a, compare.value.process, traceB.value === traceA.value) : -1;
});

/** What is compared, as text so that equal ones are one; null until it is known. */
const pairWords = computed(() => {
  const isKnown = summary.value !== null && processId.value >= 0 && processB.value >= 0;
  return isKnown ? JSON.stringify([traceA.value, processId.value, traceB.value, processB.value]) : null;
});

export const pair = computed<Pair | null>(() => {
  if (pairWords.value === null) {
    return null;
  }
  const [a, processOfA, b, processOfB] = JSON.parse(pairWords.value) as [number, number, number, number];
  return { a: { trace: a, process: processOfA }, b: { trace: b, process: processOfB } };
});

export const comparison = signal<ComparisonSummary | null>(null);
export const union = signal<Union | null>(null);
/** What could not be done, for the reader; null if nothing. */
export const compareFailure = signal<string | null>(null);

/** How the table of functions is sorted, and what names in it hold. */
export const compareOrder = signal<CompareOrder>("difference");
export const compareText = signal("");

export const rows = computed(() => {
  const of = union.value;
  return of ? compareRows(of, compare.value.shown, compareText.value, compareOrder.value) : new Uint32Array(0);
});

/** What is selected of the graph of both; null for nothing, and for what there is not. */
export const comparedSelection = computed<Selection | null>(() => {
  const [of, chosen] = [union.value, compare.value.selection];
  const n = chosen?.kind === "block" ? of?.blocks.count : of?.functions.count;
  return chosen && chosen.index < (n ?? 0) ? chosen : null;
});

export const selectedNode = computed(() => {
  const chosen = comparedSelection.value;
  return chosen?.kind === "block" ? chosen.index : -1;
});

/** The function that is selected, or that the selected node is of; -1 for none. */
export const selectedComparedFunction = computed(() => {
  const [of, chosen] = [union.value, comparedSelection.value];
  if (!of || !chosen) {
    return -1;
  }
  return chosen.kind === "function" ? chosen.index : functionOfBlock(of.functions.firstBlock, chosen.index);
});

/** The function that is looked at: the one that is selected, else the one that differs the most. -1 for none. */
export const shownComparedFunction = computed(() => {
  const of = union.value;
  if (selectedComparedFunction.value >= 0 || !of || of.functions.count === 0) {
    return selectedComparedFunction.value;
  }
  const { difference } = of.compared;
  return difference.reduce((best, value, index) => (value > difference[best] ? index : best), 0);
});

/** Select something of the graph of both; and of the process that the page looks at what that is there. */
export function selectCompared(chosen: Selection | null): void {
  const of = union.peek();
  let own: Selection | null = null;
  if (of && chosen) {
    const { block, function: functions } = of.compared;
    const index = (chosen.kind === "block" ? block : functions).a[chosen.index] ?? -1;
    own = index >= 0 ? { kind: chosen.kind, index } : null;
  }
  update({ selection: own, compare: { ...compare.peek(), selection: chosen } });
}

/** Compare with another trace, or with another process of it. */
export function compareWith(trace: number, id = -1): void {
  updateCompare({ trace, process: id, selection: null, cursor: null });
}

/** A becomes B, and B becomes A, with the places of both replays. */
export function swapSides(): void {
  const now = pair.peek();
  if (now) {
    update({
      trace: now.b.trace,
      process: now.b.process,
      threads: null,
      range: null,
      camera: null,
      selection: null,
      cursor: compare.peek().cursor,
      compare: {
        ...compare.peek(),
        trace: now.a.trace,
        process: now.a.process,
        selection: null,
        cursor: viewState.peek().cursor,
      },
    });
  }
}

/** Load what is compared, for as long as the view is open: until the function returned is called. */
export function followComparison(): () => void {
  const fail = (signal: AbortSignal) => (error: unknown) => {
    if (!signal.aborted) {
      compareFailure.value = error instanceof Error ? error.message : String(error);
    }
  };
  const stopSummary = effect(() => {
    const [index, isOpen] = [traceB.value, summary.value !== null];
    const asking = new AbortController();
    summaryB.value = null;
    if (index < 0 || !isOpen) {
      return undefined;
    }
    fetchSummary(client(), index).then((found) => {
      if (!asking.signal.aborted) {
        summaryB.value = found;
      }
    }, fail(asking.signal));
    return () => asking.abort();
  });
  const stopUnion = effect(() => {
    const wanted = pair.value;
    batch(() => {
      comparison.value = null;
      union.value = null;
      compareFailure.value = null;
    });
    if (!wanted) {
      return undefined;
    }
    const asking = new AbortController();
    Promise.all([fetchComparison(client(), wanted, asking.signal), fetchUnion(client(), wanted, asking.signal)]).then(
      ([found, graph]) => {
        batch(() => {
          comparison.value = found;
          union.value = graph;
        });
      },
      fail(asking.signal),
    );
    return () => asking.abort();
  });
  return () => {
    stopSummary();
    stopUnion();
    batch(() => {
      summaryB.value = null;
      comparison.value = null;
      union.value = null;
      compareFailure.value = null;
    });
  };
}
