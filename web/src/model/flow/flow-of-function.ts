// The flow of the selected function as signals: its code, its source lines, and the layout of its boxes.
import { batch, computed, effect, signal } from "@preact/signals";
import { type CodeLines, fetchFunctionCode, fetchFunctionLines, type FunctionCode } from "../../api/code.ts";
import type { Rgb } from "../../base/color.ts";
import { startEmbeddedWorker } from "../../base/embedded.ts";
import { selectedFunction } from "../selected.ts";
import { client, counts, failure, functions, isCounted, processId } from "../session.ts";
import { threads, viewState } from "../view-state.ts";
import { type FlowModel, makeFlow } from "./flow-boxes.ts";
import type { FlowInput, FlowLayout } from "./flow-graph.ts";
import { layOutFlow } from "./flow-layout.ts";

/** Functions with more blocks are laid out by a worker. */
const MOST_AT_ONCE = 500;

/** So long the picture waits for source lines once the code is there, in milliseconds. */
const LINES_MS = 300;

export interface LaidOutFlow {
  model: FlowModel;
  layout: FlowLayout;
  layoutMs: number;
  /** In place of the heat of boxes colours of their own, null for none. */
  colorOf?: (box: number) => Rgb | null;
}

/** Whether source lines are shown beside instructions. */
export const showsLines = signal(true);

/** The function shown: the one selected, or, if none is, that with the most instructions executed. -1 for none. */
export const shownFunction = computed(() => {
  const chosen = selectedFunction.value;
  const executed = counts.value?.functionInstructions;
  if (chosen >= 0 || !executed || executed.length === 0) {
    return chosen;
  }
  return executed.reduce((best, instructions, index) => (instructions > executed[best] ? index : best), 0);
});

const code = signal<FunctionCode | null>(null);
const lines = signal<{ function: number; lines: CodeLines } | null>(null);

/** The flow to be drawn; while another is being made that of before, and null at first. */
export const flow = signal<LaidOutFlow | null>(null);

/** Whether any instruction of the function has a known source line. */
export const hasLines = computed(
  () =>
    lines.value !== null &&
    lines.value.function === code.value?.function &&
    Object.keys(lines.value.lines.lines).length > 0,
);

const model = computed(() => {
  const of = code.value;
  const known = lines.value;
  return of && makeFlow(of, showsLines.value && known?.function === of.function ? known.lines : null, isCounted.value);
});

/** Load and lay out what is shown, for as long as the view is open: until the function returned is called. */
export function followFunction(): () => void {
  const trace = computed(() => viewState.value.trace);
  let asking = new AbortController();
  let number = 0;
  const stopLoading = effect(() => {
    const [at, id, index, chosen] = [trace.value, processId.value, shownFunction.value, threads.value];
    const isLoaded = functions.value !== null;
    asking.abort();
    asking = new AbortController();
    if (id < 0 || index < 0 || !isLoaded) {
      batch(() => (code.value = flow.value = null));
      return;
    }
    load(at, id, index, chosen, asking.signal).catch((error: unknown) => {
      if (!(error instanceof DOMException && error.name === "AbortError")) {
        failure.value = error instanceof Error ? error.message : String(error);
      }
    });
  });
  const stopLayout = effect(() => {
    const made = model.value;
    const current = ++number;
    if (!made) {
      return;
    }
    const before = flow.peek();
    if (before && isSameInput(before.model.input, made.input)) {
      flow.value = { ...before, model: made };
      return;
    }
    layOutModel(made, (found) => {
      if (current === number) {
        flow.value = found;
      }
    });
  });
  return () => {
    asking.abort();
    number++;
    stopLoading();
    stopLayout();
    batch(() => (code.value = lines.value = flow.value = null));
  };
}

/** Lay out boxes, at once or, where they are many, by a worker. */
export function layOutModel(made: FlowModel, show: (flow: LaidOutFlow) => void): void {
  const start = performance.now();
  const finish = (layout: FlowLayout) => show({ model: made, layout, layoutMs: performance.now() - start });
  if (made.boxes.length <= MOST_AT_ONCE) {
    finish(layOutFlow(made.input));
  } else {
    askWorker(made.input, finish);
  }
}

async function load(
  trace: number,
  id: number,
  index: number,
  chosen: readonly number[] | null,
  signal: AbortSignal,
): Promise<void> {
  const isKnown = lines.value?.function === index;
  const asked = isKnown ? null : fetchFunctionLines(client(), trace, id, index, signal);
  // It is awaited below, but for when the code can't be had.
  asked?.catch(() => undefined);
  const found = await fetchFunctionCode(client(), trace, id, index, chosen, signal);
  // Boxes are wider with lines: a picture that is made at once with them does not change under the reader's eyes.
  const early = asked && (await Promise.race([asked, new Promise<null>((done) => setTimeout(done, LINES_MS, null))]));
  if (signal.aborted) {
    return;
  }
  batch(() => {
    code.value = found;
    if (early) {
      lines.value = { function: index, lines: early };
    }
  });
  if (asked && !early) {
    const late = await asked;
    if (!signal.aborted) {
      lines.value = { function: index, lines: late };
    }
  }
}

/** Whether it would be laid out the same. */
function isSameInput(a: FlowInput, b: FlowInput): boolean {
  const isSame = (name: "widths" | "heights" | "source" | "target" | "style") =>
    a[name].length === b[name].length && a[name].every((value, index) => value === b[name][index]);
  return a.entry === b.entry && (["widths", "heights", "source", "target", "style"] as const).every(isSame);
}

let worker: Worker | null = null;
const waiting = new Map<number, (layout: FlowLayout) => void>();
let asked = 0;

function askWorker(input: FlowInput, show: (layout: FlowLayout) => void): void {
  if (!worker) {
    worker =
      startEmbeddedWorker("flow") ?? new Worker(new URL("./flow.worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = (event: MessageEvent<{ number: number; layout: FlowLayout }>) => {
      waiting.get(event.data.number)?.(event.data.layout);
      waiting.delete(event.data.number);
    };
    worker.onerror = (event) => (failure.value = `the layout failed: ${event.message}`);
  }
  waiting.set(++asked, show);
  worker.postMessage({ number: asked, input });
}
