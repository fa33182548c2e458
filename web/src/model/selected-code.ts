// The instructions of the selected block: loaded with those of its function, of which the last few are kept.
import { computed, effect, signal } from "@preact/signals";
import { type CodeBlock, fetchFunctionCode, type FunctionCode } from "../api/code.ts";
import { selectedBlock, selectedFunction } from "./selected.ts";
import { client, functions, isLive, processId } from "./session.ts";
import { viewState } from "./view-state.ts";

const MOST_KEPT = 8;

/** Of a block; `code` is null where it is not known, with the reason unless its function is too large. */
export interface SelectedCode {
  block: number;
  code: CodeBlock | null;
  failure: string | null;
}

/** Null while it is loaded, and where no block is selected. */
export const selectedCode = signal<SelectedCode | null>(null);

const trace = computed(() => viewState.value.trace);

/** By trace, process and function; the one used last comes last. */
const kept = new Map<string, Promise<FunctionCode>>();

/** Load it whenever another block is selected, until the function returned is called. */
export function followSelectedCode(): () => void {
  let number = 0;
  const end = effect(() => {
    const [block, of, process] = [selectedBlock.value, selectedFunction.value, processId.value];
    const at = trace.value;
    const current = ++number;
    selectedCode.value = null;
    if (block < 0 || of < 0 || process < 0 || functions.value?.processId !== process) {
      return;
    }
    if (isLive.value) {
      // The server reads code from the trace, which there is in the end.
      selectedCode.value = { block, code: null, failure: "Code comes with the finished trace." };
      return;
    }
    void load(at, process, of)
      .then((found) => ({ block, code: found.blocks.find((one) => one.block === block) ?? null, failure: null }))
      .catch((error: unknown) => ({
        block,
        code: null,
        failure: error instanceof Error ? error.message : String(error),
      }))
      .then((found) => {
        if (current === number) {
          selectedCode.value = found;
        }
      });
  });
  return () => {
    number++;
    end();
    selectedCode.value = null;
  };
}

function load(at: number, process: number, of: number): Promise<FunctionCode> {
  const key = `${at} ${process} ${of}`;
  // How often it ran is told elsewhere: so the code is the same for all threads.
  const found = kept.get(key) ?? fetchFunctionCode(client(), at, process, of, null);
  kept.delete(key);
  kept.set(key, found);
  found.catch(() => kept.delete(key));
  for (const old of [...kept.keys()].slice(0, Math.max(kept.size - MOST_KEPT, 0))) {
    kept.delete(old);
  }
  return found;
}
