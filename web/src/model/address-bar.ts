// The state in the address' fragment, as readable words: #token=...&view=graph&select=f12. What is as at first is left out.
import { formatCalls, parseCalls } from "./calls/calls-address.ts";
import {
  type Camera,
  type ColorMode,
  type Compare,
  COMPARE_PARTS,
  COMPARE_SHOWN,
  type ComparePart,
  type CompareShown,
  type Cursor,
  EMPTY_FILTER,
  type Filter,
  INITIAL_COMPARE,
  INITIAL_STATE,
  LAYOUTS,
  type Layout,
  MODES,
  type Selection,
  VIEWS,
  type View,
  type ViewState,
} from "./view-state.ts";

/** The fragment that `parseFragment` reads the same state from, without the #. `isLive`: of a recording that goes on. */
export function formatFragment(token: string, state: ViewState, isLive = false): string {
  // A page that is a file has no token.
  const words: [string, string][] = token === "" ? [] : [["token", token]];
  const add = (name: string, value: string | null | undefined) => {
    if (value != null) {
      words.push([name, value]);
    }
  };
  const changed = <K extends keyof ViewState>(name: K) =>
    state[name] === INITIAL_STATE[name] ? null : String(state[name]);
  add("live", isLive ? "1" : null);
  add("trace", changed("trace"));
  add("process", changed("process"));
  add("threads", state.threads?.join(","));
  add("range", state.range?.map(Math.round).join("-"));
  add("at", formatCursor(state.cursor));
  add("select", formatSelection(state.selection));
  add("view", changed("view"));
  add("layout", changed("layout"));
  add("dimensions", changed("dimensions"));
  add("mode", changed("mode"));
  add("camera", state.camera && formatCamera(state.camera));
  const filter = state.filter;
  add("filter", filter.text || null);
  add("hide-stubs", filter.hideStubs ? "1" : null);
  add("fold-loops", filter.foldLoops ? "1" : null);
  add("hide-images", filter.hiddenImages.join(",") || null);
  add("fold-images", filter.foldedImages.join(",") || null);
  add("fold-functions", filter.foldedFunctions.join(",") || null);
  const compared = state.compare;
  add("with", compared.trace < 0 ? null : String(compared.trace));
  add("with-process", compared.process < 0 ? null : String(compared.process));
  add("compare", compared.part === INITIAL_COMPARE.part ? null : compared.part);
  add("compare-shown", compared.shown === INITIAL_COMPARE.shown ? null : compared.shown);
  add("compare-beside", compared.isBeside ? "1" : null);
  add("compare-select", formatSelection(compared.selection));
  add("compare-at", formatCursor(compared.cursor));
  words.push(...formatCalls(state.calls, state.process !== INITIAL_STATE.process));
  return words
    .map(([name, value]) => `${name}=${encodeURIComponent(value).replace(/%2C/g, ",").replace(/%3A/g, ":")}`)
    .join("&");
}

/** The token and the state that a fragment tells of; what makes no sense is as at first. */
export function parseFragment(fragment: string): { token: string; state: ViewState; isLive: boolean } {
  const words = new URLSearchParams(fragment.replace(/^#/, "").replace(/\+/g, "%2B"));
  const number = (name: string, otherwise: number) => parseInteger(words.get(name)) ?? otherwise;
  const filter: Filter = {
    ...EMPTY_FILTER,
    text: words.get("filter") ?? "",
    hideStubs: words.get("hide-stubs") === "1",
    foldLoops: words.get("fold-loops") === "1",
    hiddenImages: parseList(words.get("hide-images")) ?? [],
    foldedImages: parseList(words.get("fold-images")) ?? [],
    foldedFunctions: parseList(words.get("fold-functions")) ?? [],
  };
  const state: ViewState = {
    trace: number("trace", INITIAL_STATE.trace),
    process: number("process", INITIAL_STATE.process),
    threads: words.has("threads") ? parseList(words.get("threads")) : null,
    range: parseRange(words.get("range")),
    cursor: parseCursor(words.get("at")),
    selection: parseSelection(words.get("select")),
    filter,
    view: oneOf<View>(VIEWS, words.get("view"), INITIAL_STATE.view),
    layout: oneOf<Layout>(LAYOUTS, words.get("layout"), INITIAL_STATE.layout),
    dimensions: words.get("dimensions") === "2" ? 2 : 3,
    mode: oneOf<ColorMode>(MODES, words.get("mode"), INITIAL_STATE.mode),
    camera: parseCamera(words.get("camera")),
    compare: parseCompare(words),
    calls: parseCalls(words),
  };
  return { token: words.get("token") ?? "", state, isLive: words.get("live") === "1" };
}

function formatCursor(cursor: Cursor | null): string | null {
  return cursor && `${cursor.thread}:${cursor.position}`;
}

function formatSelection(selection: Selection | null): string | null {
  return selection && `${selection.kind[0]}${selection.index}`;
}

function parseCompare(words: URLSearchParams): Compare {
  const index = (name: string) => Math.max(parseInteger(words.get(name)) ?? -1, -1);
  return {
    trace: index("with"),
    process: index("with-process"),
    part: oneOf<ComparePart>(COMPARE_PARTS, words.get("compare"), INITIAL_COMPARE.part),
    shown: oneOf<CompareShown>(COMPARE_SHOWN, words.get("compare-shown"), INITIAL_COMPARE.shown),
    isBeside: words.get("compare-beside") === "1",
    selection: parseSelection(words.get("compare-select")),
    cursor: parseCursor(words.get("compare-at")),
  };
}

function formatCamera(camera: Camera): string {
  return [camera.yaw, camera.pitch, camera.distance, ...camera.target].map((value) => value.toPrecision(6)).join(",");
}

function parseCamera(text: string | null): Camera | null {
  const numbers = (text ?? "").split(",").map(Number);
  if (!text || numbers.length !== 6 || !numbers.every(Number.isFinite) || numbers[2] <= 0) {
    return null;
  }
  return { yaw: numbers[0], pitch: numbers[1], distance: numbers[2], target: [numbers[3], numbers[4], numbers[5]] };
}

function parseInteger(text: string | null): number | null {
  return text !== null && /^-?\d{1,15}$/.test(text) ? Number(text) : null;
}

function parseList(text: string | null): number[] | null {
  const found = (text ?? "").split(",").map(parseInteger);
  return found.every((number) => number !== null) ? found : null;
}

function parseRange(text: string | null): readonly [number, number] | null {
  const found = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? "");
  return found && Number(found[1]) < Number(found[2]) ? [Number(found[1]), Number(found[2])] : null;
}

function parseCursor(text: string | null): Cursor | null {
  const found = /^(\d{1,10}):(\d{1,15})$/.exec(text ?? "");
  return found && { thread: Number(found[1]), position: Number(found[2]) };
}

function parseSelection(text: string | null): Selection | null {
  const found = /^([fb])(\d{1,9})$/.exec(text ?? "");
  return found && { kind: found[1] === "f" ? "function" : "block", index: Number(found[2]) };
}

function oneOf<T extends string>(known: readonly T[], word: string | null, otherwise: T): T {
  return known.find((one) => one === word) ?? otherwise;
}
