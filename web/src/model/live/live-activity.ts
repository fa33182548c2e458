// What happens in a program that runs: which blocks are busy, what is newest, what each thread does. Pure, and bounded: what
// is older than the last so many is forgotten.
import { EDGE_KIND } from "../../protocol/generated.ts";
import type { LiveChange, LiveGraph, LiveThread } from "./live-graph.ts";

export const MOST_NEWEST = 60;
export const MOST_BUSY = 48;
export const MOST_THREADS = 64;
/** Samples of a thread's activity, one for each `SAMPLE_MS`. */
export const SAMPLES = 60;
export const SAMPLE_MS = 500;

/** New blocks of a function that came together, or a new call, with the names as they were then. */
export interface Newest {
  kind: "block" | "call";
  /** Of the last of the blocks, or of the block called, by rows of live-graph.ts. */
  row: number;
  name: string;
  from: string;
  at: number;
  /** How many blocks. */
  blocks: number;
}

export interface BusyBlock {
  row: number;
  /** 1 for the busiest, towards 0. */
  weight: number;
}

/** A thread's instructions a second, the oldest first; a ring of fixed length. */
export interface ThreadActivity {
  thread: LiveThread;
  rates: Float64Array;
}

const PULSE_PERIOD_MS = 900;

/** How strongly busy blocks are lit at a time in milliseconds, 0.2 to 1: it swells and fades, or is even where little movement is
 *  asked for. */
export function pulseStrength(now: number, isStill: boolean): number {
  return isStill ? 1 : 0.6 + 0.4 * Math.sin((2 * Math.PI * now) / PULSE_PERIOD_MS);
}

export class LiveActivity {
  newest: Newest[] = [];
  busy: BusyBlock[] = [];
  private readonly threads = new Map<string, { last: number; rates: Float64Array }>();
  private executionsBefore = new Float64Array(0);
  private sampledAt = 0;

  /** Note what a frame changed; `now` is a time in milliseconds. */
  note(graph: LiveGraph, change: LiveChange, now: number): void {
    if (change.isWhole) {
      this.newest = [];
      this.busy = [];
      this.threads.clear();
      this.executionsBefore = new Float64Array(0);
    }
    // Of a whole picture nothing is newer than the rest.
    if (!change.isWhole) {
      this.noteNewest(graph, change, now);
    }
    this.noteBusy(graph, change);
  }

  /** Take a sample of what the threads do, if it is time; whether it was. */
  sample(threads: readonly LiveThread[], now: number): boolean {
    const elapsed = now - this.sampledAt;
    if (elapsed < SAMPLE_MS) {
      return false;
    }
    const known = new Set<string>();
    for (const thread of threads.slice(0, MOST_THREADS)) {
      const key = keyOf(thread);
      known.add(key);
      const before = this.threads.get(key);
      const kept = before ?? { last: thread.instructions, rates: new Float64Array(SAMPLES) };
      kept.rates.copyWithin(0, 1);
      kept.rates[SAMPLES - 1] = before ? (Math.max(thread.instructions - kept.last, 0) / elapsed) * 1000 : 0;
      kept.last = thread.instructions;
      this.threads.set(key, kept);
    }
    for (const key of this.threads.keys()) {
      if (!known.has(key)) {
        this.threads.delete(key);
      }
    }
    this.sampledAt = now;
    return true;
  }

  /** The threads, with what they did of late. */
  rows(threads: readonly LiveThread[]): ThreadActivity[] {
    return threads.slice(0, MOST_THREADS).map((thread) => ({
      thread,
      rates: this.threads.get(keyOf(thread))?.rates.slice() ?? new Float64Array(SAMPLES),
    }));
  }

  /** Bytes of all that is kept by number of blocks or of threads. */
  get bytes(): number {
    return this.executionsBefore.byteLength + this.threads.size * SAMPLES * 8;
  }

  private noteNewest(graph: LiveGraph, change: LiveChange, now: number): void {
    const { blocks, edges, names } = graph;
    const of = blocks.array("function");
    const first = blocks.array("first");
    const found = new Map<string, Newest & { first: number }>();
    for (const row of change.blocks) {
      const known = found.get(`b${of[row]}`);
      if (row >= change.blocksBefore && of[row] >= 0) {
        const isLater = !known || first[row] >= known.first;
        const n = (known?.blocks ?? 0) + 1;
        const told = { kind: "block" as const, name: names[of[row]], from: "", at: now, blocks: n };
        found.set(`b${of[row]}`, isLater ? { ...told, row, first: first[row] } : { ...known, blocks: n });
      }
    }
    const [source, target, kind] = [edges.array("source"), edges.array("target"), edges.array("kind")];
    for (const row of change.edges) {
      const isCall = kind[row] === EDGE_KIND.call || kind[row] === EDGE_KIND.indirect_call;
      if (row >= change.edgesBefore && isCall && source[row] >= 0 && target[row] >= 0) {
        const [by, to] = [of[source[row]], of[target[row]]];
        found.set(`c${by} ${to}`, {
          kind: "call",
          row: target[row],
          name: names[to],
          from: names[by],
          at: now,
          blocks: 0,
          first: Math.max(first[source[row]], first[target[row]]),
        });
      }
    }
    if (found.size > 0) {
      const latest = [...found.values()].sort((a, b) => b.first - a.first).slice(0, MOST_NEWEST);
      this.newest = [...latest, ...this.newest].slice(0, MOST_NEWEST);
    }
  }

  private noteBusy(graph: LiveGraph, change: LiveChange): void {
    const executions = graph.blocks.executions.array;
    const found: { row: number; rise: number }[] = [];
    if (this.executionsBefore.length !== executions.length) {
      const grown = new Float64Array(executions.length);
      grown.set(this.executionsBefore);
      this.executionsBefore = grown;
    }
    for (const row of change.countedBlocks) {
      const rise = executions[row] - this.executionsBefore[row];
      this.executionsBefore[row] = executions[row];
      if (rise > 0 && !change.isWhole) {
        found.push({ row, rise });
      }
    }
    found.sort((a, b) => b.rise - a.rise || a.row - b.row);
    const most = Math.log1p(found[0]?.rise ?? 1);
    this.busy = found.slice(0, MOST_BUSY).map(({ row, rise }) => ({ row, weight: Math.log1p(rise) / most }));
  }
}

function keyOf(thread: LiveThread): string {
  return thread.members > 1 ? "ended" : `${thread.tid} ${thread.isRunning ? "" : "ended"}`;
}
