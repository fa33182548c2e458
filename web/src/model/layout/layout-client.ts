// Asks a worker for layouts, so that the page stays quick.
import { startEmbeddedWorker } from "../../base/embedded.ts";
import type { LayoutInput, LayoutResult } from "./layout.ts";
import type { LayoutAnswer } from "./layout.worker.ts";

/** A worker that has nothing to do, kept since to start one takes time. */
let idle: Worker | null = null;

function makeWorker(): Worker {
  return (
    startEmbeddedWorker("layout") ?? new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" })
  );
}

/** Start a worker before there is a graph: it is ready when one comes. */
export function prepareLayouts(): void {
  idle ??= makeWorker();
}

/**
 * Have a layout made of the graph. `onResult` is told of it, of layouts that take long also of what there is on the way; nothing
 * is told after the final result, a failure, or a call of the function that is returned, which cancels the work.
 */
export function requestLayout(
  input: LayoutInput,
  onResult: (result: LayoutResult, isFinal: boolean) => void,
  onFailure?: (message: string) => void,
): () => void {
  const worker = idle ?? makeWorker();
  idle = null;
  const release = () => {
    worker.onmessage = null;
    worker.onerror = null;
  };
  let isOver = false;
  const stop = () => {
    if (!isOver) {
      isOver = true;
      release();
      worker.terminate();
    }
  };
  worker.onmessage = ({ data }: MessageEvent<LayoutAnswer>) => {
    if (data.isFinal) {
      isOver = true;
      release();
      if (idle) {
        worker.terminate();
      } else {
        idle = worker;
      }
    }
    onResult(data.result, data.isFinal);
  };
  worker.onerror = (event) => {
    stop();
    onFailure?.(`the layout failed: ${event.message || "its worker did not start"}`);
  };
  const copy = copyInput(input);
  worker.postMessage(
    copy,
    Object.values(copy).flatMap((value) => (ArrayBuffer.isView(value) ? [value.buffer as ArrayBuffer] : [])),
  );
  return stop;
}

/**
 * What is sent, and then is gone here. The page's own arrays lie in one buffer with all that came from the server, which
 * would be sent as a whole with each of them.
 */
function copyInput(input: LayoutInput): LayoutInput {
  return {
    layout: input.layout,
    dimensions: input.dimensions,
    nFunctions: input.nFunctions,
    nBlocks: input.nBlocks,
    hasBlocks: input.hasBlocks,
    firstBlock: input.firstBlock.slice(),
    caller: input.caller.slice(),
    depth: input.depth.slice(),
    image: input.image.slice(),
    linkSource: input.linkSource.slice(),
    linkTarget: input.linkTarget.slice(),
    linkCall: input.linkCall.slice(),
    edgeSource: input.edgeSource.slice(),
    edgeTarget: input.edgeTarget.slice(),
    edgeKind: input.edgeKind.slice(),
  };
}
