// The answers that are in the file which the page is in: src/clew/server/recorded_answers.py chose them. Threads are told
// together, time in one width, and places in the order of a thread are some.
import { inflateBase64, type ReadElement } from "../base/embedded.ts";
import type { CallDetails } from "./calls.ts";
import { type Answer, type AnswerSource, ApiError } from "./client.ts";
import type { TakenCalls } from "./file-call-choice.ts";
import { nearCallsOf } from "./file-call-lanes.ts";
import { answerFromCalls } from "./file-calls.ts";
import { answerFromAll } from "./file-every-call.ts";
import type { TraceSummary } from "./traces.ts";
import type { EventRow, ReplayState } from "./timeline.ts";

interface Index {
  version: number;
  /** In words, what there was no room for. */
  left_out: string[];
  chunks: { kind: "json" | "arrays"; keys: string[] }[];
}

/** So many chunks are kept as they were read. */
const MOST_KEPT = 8;

/** Words that an answer is the same without: the recorded one is about all threads, all of time, and whatever counts. */
const NOT_TOLD_APART: Record<string, readonly string[] | undefined> = {
  counts: ["threads", "blocks", "owners"],
  timeline: ["threads", "from", "to", "bins"],
};

export class FileSource implements AnswerSource {
  readonly isFile = true;
  private index: Promise<{ about: Index; chunkOf: Map<string, number> }> | null = null;
  private readonly kept = new Map<number, Promise<ArrayBuffer | Record<string, unknown>>>();

  constructor(private readonly read: ReadElement) {}

  /** What of the trace is not in the file, in words. */
  async leftOut(): Promise<readonly string[]> {
    return (await this.open()).about.left_out;
  }

  command(): Promise<void> {
    return Promise.reject(new ApiError(404, "there is no server behind this file"));
  }

  async ask(path: string, words: URLSearchParams, signal?: AbortSignal): Promise<Answer> {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const process = /^(.*\/processes\/\d+)\/((calls|entities|touches)\b.*)$/.exec(path);
    const trace = /^(traces\/\d+)\/((calls|entities)\b.*)$/.exec(path);
    const near = /^(.*\/processes\/\d+)\/threads\/(\d+)\/calls-near$/.exec(path);
    const thread = /^(.*\/threads\/\d+)\/(replay|seek|frames)$/.exec(path);
    let found: unknown;
    if (process) {
      found = await this.calls(process[1], process[2], words);
    } else if (trace) {
      found = await this.everyCall(trace[1], trace[2], words);
    } else if (near) {
      const taken = (await this.find(`${near[1]}/calls/all`)) as TakenCalls;
      found = nearCallsOf(taken, Number(near[2]), words);
    } else if (thread) {
      found = await this.replay(thread[1], thread[2], words);
    } else if (name === "events") {
      found = await this.events(path, words);
    } else {
      const dropped = NOT_TOLD_APART[name] ?? ["threads"];
      const kept = [...words].filter(([word]) => !dropped.includes(word)).sort(([a], [b]) => (a < b ? -1 : 1));
      found = await this.find(kept.length > 0 ? `${path}?${new URLSearchParams(kept).toString()}` : path);
    }
    signal?.throwIfAborted();
    return {
      json: () => Promise.resolve(found),
      // Whoever asked may keep or send away what is given: the next one gets another copy.
      arrayBuffer: () => Promise.resolve((found as ArrayBuffer).slice(0)),
    };
  }

  /** The recorded answer. Rejects with an ApiError if there is none. */
  private async find(key: string): Promise<unknown> {
    const number = (await this.open()).chunkOf.get(key);
    if (number === undefined) {
      throw new ApiError(404, `${nameOf(key)} is not in this file; \`clew view\` of the trace shows it`);
    }
    const chunk = await this.chunk(number);
    return chunk instanceof ArrayBuffer ? chunk : chunk[key];
  }

  private open(): Promise<{ about: Index; chunkOf: Map<string, number> }> {
    this.index ??= this.readIndex();
    return this.index;
  }

  private async readIndex(): Promise<{ about: Index; chunkOf: Map<string, number> }> {
    const about = JSON.parse(decodeText(await this.inflate("clew-index"))) as Index;
    if (about.version !== 1) {
      throw new ApiError(422, "the answers in this file are of another version than its page");
    }
    const chunkOf = new Map<string, number>();
    about.chunks.forEach(({ keys }, number) => keys.forEach((key) => chunkOf.set(key, number)));
    return { about, chunkOf };
  }

  private async chunk(number: number): Promise<ArrayBuffer | Record<string, unknown>> {
    const { kind } = (await this.open()).about.chunks[number];
    let found = this.kept.get(number);
    if (!found) {
      found = this.inflate(`clew-chunk-${number}`).then((content) =>
        kind === "arrays" ? content : (JSON.parse(decodeText(content)) as Record<string, unknown>),
      );
    }
    // The one that was asked for last is the last to go.
    this.kept.delete(number);
    this.kept.set(number, found);
    if (this.kept.size > MOST_KEPT) {
      this.kept.delete(this.kept.keys().next().value!);
    }
    return found;
  }

  private async inflate(id: string): Promise<ArrayBuffer> {
    const text = this.read(id);
    try {
      return await inflateBase64(text ?? "");
    } catch {
      throw new ApiError(422, "this file is damaged: a part of it can't be read");
    }
  }

  private async events(path: string, words: URLSearchParams): Promise<unknown> {
    const { events, omitted } = (await this.find(path)) as { events: EventRow[]; omitted: number };
    const [from, to] = [Number(words.get("from")), Number(words.get("to"))];
    return { events: events.filter(({ time }) => time >= from && time <= to), omitted };
  }

  private async calls(process: string, what: string, words: URLSearchParams): Promise<unknown> {
    const found = answerFromCalls((await this.find(`${process}/calls/all`)) as TakenCalls, what, words);
    // Where its thread was is of use where the file has places in the order of that.
    return /^calls\/\d+$/.test(what) ? this.placed(process, found as CallDetails) : found;
  }

  /** Of all processes whose calls are in the file. */
  private async everyCall(trace: string, what: string, words: URLSearchParams): Promise<unknown> {
    const { processes } = (await this.find(trace)) as TraceSummary;
    const callers = processes.filter((one) => one.api_calls > 0);
    const { chunkOf } = await this.open();
    const keyOf = (process: number) => `${trace}/processes/${process}/calls/all`;
    const there = callers.filter((one) => chunkOf.has(keyOf(one.process_id)));
    if (there.length === 0) {
      throw new ApiError(404, "no calls are in this file; `clew view` of the trace shows them");
    }
    const of = await Promise.all(
      there.map(async ({ process_id: process }) => ({
        process,
        taken: (await this.find(keyOf(process))) as TakenCalls,
      })),
    );
    const missing = callers.reduce((sum, one) => sum + (there.includes(one) ? 0 : one.api_calls), 0);
    return answerFromAll(of, missing, what, words);
  }

  private async placed(process: string, call: CallDetails): Promise<CallDetails> {
    const isReplayed = (await this.positionsOf(`${process}/threads/${call.tid}`)).length > 0;
    return { ...call, position: isReplayed ? call.position : null };
  }

  /** Places in the order of a thread that are in the file, rising. */
  private async positionsOf(thread: string): Promise<number[]> {
    const prefix = `${thread}/replay?position=`;
    return [...(await this.open()).chunkOf.keys()]
      .filter((key) => key.startsWith(prefix))
      .map((key) => Number(key.slice(prefix.length)))
      .sort((a, b) => a - b);
  }

  /** States of a thread: the recorded one that is nearest to what is asked for. */
  private async replay(thread: string, what: string, words: URLSearchParams): Promise<unknown> {
    const prefix = `${thread}/replay?position=`;
    const positions = await this.positionsOf(thread);
    if (positions.length === 0) {
      throw new ApiError(404, "this thread's replay is not in this file; `clew view` of the trace shows it");
    }
    const stateAt = async (position: number) => (await this.find(prefix + String(position))) as ReplayState;
    if (what === "frames") {
      const [start, stride, n] = ["start", "stride", "frames"].map((name) => Number(words.get(name)));
      const wanted = positions.filter((position) => position >= start && position < start + stride * n);
      // Where none are so near together the next one is the next frame, whichever way it goes.
      const beside = [positions.findLast((one) => one < start), positions.find((one) => one >= start)];
      const chosen = wanted.length > 0 ? thin(wanted, n) : beside.filter((one) => one !== undefined);
      return { frames: await Promise.all(chosen.map(stateAt)) };
    }
    const at = Number(words.get("position") ?? 0);
    if (what === "replay") {
      return stateAt(nearest(positions, at));
    }
    if (words.has("step")) {
      const step = Number(words.get("step"));
      const found = step > 0 ? positions.find((one) => one > at) : positions.findLast((one) => one < at);
      return { ...(await stateAt(found ?? nearest(positions, at))), found: found !== undefined };
    }
    throw new ApiError(404, "searches in the order are not in this file; `clew view` of the trace has them");
  }
}

function nearest(positions: readonly number[], at: number): number {
  return positions.reduce((best, one) => (Math.abs(one - at) < Math.abs(best - at) ? one : best));
}

/** At most `n` of some, evenly chosen, the last one among them. */
function thin(positions: readonly number[], n: number): number[] {
  const count = Math.min(n, positions.length);
  return Array.from({ length: count }, (_, i) => positions[Math.floor(((i + 1) * positions.length) / count) - 1]);
}

function decodeText(content: ArrayBuffer): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(content);
}

/** What a key is of, in words. */
function nameOf(key: string): string {
  const path = key.split("?")[0];
  const names: [RegExp, string][] = [
    [/\/functions\/\d+/, "the code of this function"],
    [/\/listing/, "the listing of this process"],
    [/\/references$/, "what leads to this block"],
    [/\/calls\/all$/, "what this process called"],
    [/\/search$/, "the search in code"],
    [/\/table$/, "this table"],
    [/\/processes\/\d+/, "this process"],
  ];
  return names.find(([pattern]) => pattern.test(path))?.[1] ?? "this";
}
