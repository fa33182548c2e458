// What is looked at, and how: the one state of the page. It is in the address, so that a copied link shows the same.
import { computed, signal } from "@preact/signals";
import type { CallFilter } from "../api/calls.ts";

export const VIEWS = ["graph", "function", "listing", "processes", "calls", "compare"] as const;
export const LAYOUTS = ["cylinder", "force", "blocks", "circle"] as const;
export const MODES = ["structure", "heat", "conditionals", "recency", "degree", "thread"] as const;

export const COMPARE_PARTS = ["summary", "graph", "function", "listing", "order"] as const;
export const COMPARE_SHOWN = ["all", "only-a", "only-b", "changed"] as const;

export const CALL_PARTS = ["calls", "tree", "places", "touches"] as const;
export const CALL_SORTS = ["time", "process", "thread", "name", "duration", "block"] as const;
export const TREE_SORTS = ["order", "total", "own", "calls", "name"] as const;
export const TREE_GROUPS = ["call", "name"] as const;
export const CHART_GROUPS = ["name", "kind", "filter", "process", "thread"] as const;

export type View = (typeof VIEWS)[number];
export type Layout = (typeof LAYOUTS)[number];
export type ColorMode = (typeof MODES)[number];

/** A function or a block of the process, by its index. */
export interface Selection {
  kind: "function" | "block";
  index: number;
}

/** A place in the order in which a thread executed: in front of number `position` of its blocks (full) or tags (region). */
export interface Cursor {
  thread: number;
  position: number;
}

export type ComparePart = (typeof COMPARE_PARTS)[number];
export type CompareShown = (typeof COMPARE_SHOWN)[number];

/** What the trace and process that are looked at, A, are compared with, and what of that is looked at. */
export interface Compare {
  /** The trace and the process B; -1 for one that the page chooses. */
  trace: number;
  process: number;
  part: ComparePart;
  /** Which functions are in the table. */
  shown: CompareShown;
  /** Whether the graph is two pictures, A's beside B's. */
  isBeside: boolean;
  /** A function or a node of the graph of both. */
  selection: Selection | null;
  /** Where the replay of B is; that of A is the state's cursor. */
  cursor: Cursor | null;
}

export type CallPart = (typeof CALL_PARTS)[number];
export type CallSort = (typeof CALL_SORTS)[number];
export type ChartGroup = (typeof CHART_GROUPS)[number];

/** Which calls are looked at, and how. Threads and the stretch of time are those of all views. */
export interface Calls {
  /** Whether those of all processes are, where several have recorded ones; else those of the process. */
  isOfAll: boolean;
  part: CallPart;
  /** What the chart tells apart. */
  by: ChartGroup;
  sort: CallSort;
  isDescending: boolean;
  /** A part of a name or of an argument. */
  text: string;
  /** A whole name; null for all. */
  name: string | null;
  isFailed: boolean;
  /** `system_call`, `library` or `probe`; null for all. */
  kind: string | null;
  /** What descriptions have them under; null for anything. */
  filter: CallFilter | null;
  /** What is one row of the tree, and how its rows are sorted. */
  treeBy: (typeof TREE_GROUPS)[number];
  treeSort: (typeof TREE_SORTS)[number];
  isTreeDescending: boolean;
  /** The entity that they have to do with; null for any. */
  entity: number | null;
  /** The one that was opened, by its index among those of the process. */
  call: number | null;
}

/** What is left out of the pictures. Images and functions by their indices. */
export interface Filter {
  text: string;
  hideStubs: boolean;
  hiddenImages: readonly number[];
  foldedImages: readonly number[];
  foldedFunctions: readonly number[];
  foldLoops: boolean;
}

/** Where the graph is looked at from: angles in radians, `distance` in units of the layout, `target` where to. */
export interface Camera {
  yaw: number;
  pitch: number;
  distance: number;
  target: readonly [number, number, number];
}

export interface ViewState {
  trace: number;
  /** A process_id; -1 for the process that executed the most. */
  process: number;
  /** Ids of threads; null for all. */
  threads: readonly number[] | null;
  /** Nanoseconds since the recording began; null for all of it. */
  range: readonly [number, number] | null;
  cursor: Cursor | null;
  selection: Selection | null;
  filter: Filter;
  view: View;
  layout: Layout;
  dimensions: 2 | 3;
  mode: ColorMode;
  /** null: everything is in the picture. */
  camera: Camera | null;
  compare: Compare;
  calls: Calls;
}

export const EMPTY_FILTER: Filter = {
  text: "",
  hideStubs: false,
  hiddenImages: [],
  foldedImages: [],
  foldedFunctions: [],
  foldLoops: false,
};

export const INITIAL_COMPARE: Compare = {
  trace: -1,
  process: -1,
  part: "summary",
  shown: "all",
  isBeside: false,
  selection: null,
  cursor: null,
};

export const INITIAL_CALLS: Calls = {
  isOfAll: true,
  part: "calls",
  by: "name",
  sort: "time",
  isDescending: false,
  text: "",
  name: null,
  isFailed: false,
  kind: null,
  filter: null,
  treeBy: "call",
  treeSort: "order",
  isTreeDescending: false,
  entity: null,
  call: null,
};

export const INITIAL_STATE: ViewState = {
  trace: 0,
  process: -1,
  threads: null,
  range: null,
  cursor: null,
  selection: null,
  filter: EMPTY_FILTER,
  view: "graph",
  layout: "cylinder",
  dimensions: 3,
  mode: "heat",
  camera: null,
  compare: INITIAL_COMPARE,
  calls: INITIAL_CALLS,
};

/** Read it with `viewState.value`, or one part by the signals below; write it with `update` only. */
export const viewState = signal<ViewState>(INITIAL_STATE);

/** Change some of the state. */
export function update(change: Partial<ViewState>): void {
  viewState.value = { ...viewState.value, ...change };
}

export function updateFilter(change: Partial<Filter>): void {
  update({ filter: { ...viewState.value.filter, ...change } });
}

export function updateCompare(change: Partial<Compare>): void {
  update({ compare: { ...viewState.value.compare, ...change } });
}

export function updateCalls(change: Partial<Calls>): void {
  update({ calls: { ...viewState.value.calls, ...change } });
}

// Parts of the state as signals of their own: whoever depends on one of them is not told of changes of others.
export const selection = computed(() => viewState.value.selection);
export const cursor = computed(() => viewState.value.cursor);
export const filter = computed(() => viewState.value.filter);
export const threads = computed(() => viewState.value.threads);
export const range = computed(() => viewState.value.range);
export const view = computed(() => viewState.value.view);
export const layout = computed(() => viewState.value.layout);
export const dimensions = computed(() => viewState.value.dimensions);
export const mode = computed(() => viewState.value.mode);
export const compare = computed(() => viewState.value.compare);
export const calls = computed(() => viewState.value.calls);
