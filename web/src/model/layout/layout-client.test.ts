import { beforeEach, expect, test, vi } from "vitest";
import { computeLayout } from "./compute-layout.ts";
import type { LayoutInput } from "./layout.ts";
import type { LayoutAnswer } from "./layout.worker.ts";
import { makeProgram } from "./sample-graphs.ts";

/** Stands for the browser's: answers when told to. */
class FakeWorker {
  static made: FakeWorker[] = [];
  onmessage: ((event: { data: LayoutAnswer }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;
  isTerminated = false;
  received: LayoutInput[] = [];

  constructor() {
    FakeWorker.made.push(this);
  }

  postMessage(input: LayoutInput, transfer: ArrayBuffer[]): void {
    this.received.push(structuredClone(input, { transfer }));
  }

  terminate(): void {
    this.isTerminated = true;
  }

  answer(isFinal: boolean): void {
    this.onmessage?.({ data: { result: computeLayout(this.received[this.received.length - 1]), isFinal } });
  }
}

const input = makeProgram(50);

beforeEach(() => {
  vi.resetModules();
  vi.stubGlobal("Worker", FakeWorker);
  FakeWorker.made = [];
});

test("results come as they are made, and the page keeps its arrays", async () => {
  const { requestLayout } = await import("./layout-client.ts");
  const told: boolean[] = [];
  requestLayout(input, (result, isFinal) => {
    told.push(isFinal);
    expect(result).toEqual(computeLayout(input));
  });
  const [worker] = FakeWorker.made;
  expect(worker.received).toEqual([input]);
  expect(input.firstBlock.length).toBe(input.nFunctions + 1);
  worker.answer(false);
  worker.answer(true);
  expect(told).toEqual([false, true]);
});

test("only what the layout needs is sent, not the buffer it lies in", async () => {
  const { requestLayout } = await import("./layout-client.ts");
  const large = new Int32Array(100_000);
  const caller = large.subarray(50, 50 + input.nFunctions);
  caller.set(input.caller);
  requestLayout({ ...input, caller }, () => undefined);
  expect(FakeWorker.made[0].received[0].caller.buffer.byteLength).toBe(4 * input.nFunctions);
  expect(large.length).toBe(100_000);
});

test("a worker that is done is used again, one that was cancelled is ended and tells nothing", async () => {
  const { requestLayout } = await import("./layout-client.ts");
  const tell = vi.fn();
  const cancel = requestLayout(input, tell);
  FakeWorker.made[0].answer(true);
  cancel();
  expect(FakeWorker.made[0].isTerminated).toBe(false);
  requestLayout(input, tell)();
  expect(FakeWorker.made.length).toBe(1);
  expect(FakeWorker.made[0].isTerminated).toBe(true);
  FakeWorker.made[0].answer(true);
  expect(tell).toHaveBeenCalledTimes(1);
  requestLayout(input, tell);
  expect(FakeWorker.made.length).toBe(2);
});

test("of two at work one is kept", async () => {
  const { requestLayout } = await import("./layout-client.ts");
  requestLayout(input, () => undefined);
  requestLayout(input, () => undefined);
  FakeWorker.made.forEach((worker) => {
    worker.answer(true);
  });
  expect(FakeWorker.made.map((worker) => worker.isTerminated)).toEqual([false, true]);
});

test("a failure is told, and its worker is not used again", async () => {
  const { requestLayout } = await import("./layout-client.ts");
  const fail = vi.fn();
  requestLayout(input, () => undefined, fail);
  FakeWorker.made[0].onerror?.({ message: "out of memory" });
  expect(fail).toHaveBeenCalledWith("the layout failed: out of memory");
  requestLayout(input, () => undefined);
  expect(FakeWorker.made.length).toBe(2);
});
