// Makes layouts beside the page. Is given one LayoutInput at a time, and answers with results, the last of which is final.
import { computeLayout } from "./compute-layout.ts";
import type { LayoutInput, LayoutResult } from "./layout.ts";

/** What the worker says. */
export interface LayoutAnswer {
  result: LayoutResult;
  isFinal: boolean;
}

function answer(result: LayoutResult, isFinal: boolean): void {
  const transfer = [result.blocks.buffer, result.functions.buffer, result.radii.buffer];
  postMessage({ result, isFinal } satisfies LayoutAnswer, { transfer });
}

addEventListener("message", (event: MessageEvent<LayoutInput>) => {
  const result = computeLayout(event.data, (partial) => {
    answer(partial, false);
  });
  answer(result, true);
});
