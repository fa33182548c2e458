// The graph of a process that runs, put together of frames: docs/format/container.md, as `live`. Pure.
import type { Container } from "../../protocol/container.ts";
import type { ModeWord } from "../../protocol/generated.ts";
import { LiveRows } from "./live-rows.ts";

export interface LiveProcess {
  number: number;
  pid: number;
  parent_pid: number;
  executable: string;
  command: string;
  is_running: boolean;
  /** Its graph can still be asked for; else only the finished trace has it. */
  is_kept: boolean;
}

export interface LiveImage {
  path: string;
  base: string;
  size_bytes: number;
}

export type RecordingState = "running" | "ended" | "published" | "failed";

/** What a frame says beside its arrays. */
export interface LiveMeta {
  name: string;
  mode: ModeWord;
  command: string[];
  epoch: string;
  sequence: number;
  since: number;
  process: number;
  state: RecordingState;
  reason: string;
  trouble: string;
  elapsed_ns: number;
  processes: LiveProcess[] | null;
  images: LiveImage[] | null;
  totals: LiveTotals | null;
}

export interface LiveTotals {
  functions: number;
  blocks: number;
  edges: number;
  instructions: number;
  executions: number;
  threads_ended: number;
}

/** A thread, or several that ended long ago, and what it executed so far. */
export interface LiveThread {
  tid: number;
  name: string;
  isRunning: boolean;
  members: number;
  instructions: number;
  executions: number;
}

/** What a frame changed. */
export interface LiveChange {
  /** Another process, or another server: nothing of what was known holds. */
  isWhole: boolean;
  hasNewStructure: boolean;
  /** Numbers of blocks and edges that were told of, new ones among them. */
  blocks: Uint32Array;
  edges: Uint32Array;
  countedBlocks: Uint32Array;
  /** How many blocks and edges were known before: those from there on are new. */
  blocksBefore: number;
  edgesBefore: number;
}

const NOTHING = new Uint32Array(0);

export class LiveGraph {
  meta: LiveMeta | null = null;
  processes: LiveProcess[] = [];
  images: LiveImage[] = [];
  threads: LiveThread[] = [];
  totals: LiveTotals | null = null;
  names: string[] = [];
  readonly functions = new LiveRows("function", {
    image: "i32",
    offset: "u64",
    address: "u64",
    discovered: "f64",
    caller: "i32",
    depth: "i32",
    flags: "u8",
  });
  readonly blocks = new LiveRows("block", {
    address: "u64",
    code_version: "u32",
    function: "i32",
    size_bytes: "u32",
    n_instructions: "u32",
    exit_kind: "i8",
    is_recorded: "u8",
    first: "f64",
  });
  readonly edges = new LiveRows("edge", { source: "i32", target: "i32", kind: "i8", callee: "i32" });

  /** Take a frame. Throws an Error if it does not follow what is known: then all has to be asked for again. */
  apply(frame: Container): LiveChange {
    const meta = frame.meta as unknown as LiveMeta;
    const isWhole = meta.since < 0;
    const known = this.meta;
    const follows = known?.epoch === meta.epoch && known.process === meta.process && known.sequence === meta.since;
    if (!isWhole && !follows) {
      throw new Error(`frame ${meta.since} to ${meta.sequence} does not follow ${known?.sequence ?? "nothing"}`);
    }
    if (isWhole) {
      this.clear();
    }
    const [blocksBefore, edgesBefore] = [this.blocks.count, this.edges.count];
    this.meta = meta;
    this.processes = meta.processes ?? this.processes;
    this.images = meta.images ?? this.images;
    this.totals = meta.totals;
    if (!frame.has("block")) {
      const nothing = { blocks: NOTHING, edges: NOTHING, countedBlocks: NOTHING };
      return { isWhole, hasNewStructure: isWhole, ...nothing, blocksBefore, edgesBefore };
    }
    const functions = this.functions.take(frame);
    const names = frame.texts("function_name");
    functions.forEach((row, i) => {
      this.names[row] = names[i];
    });
    const blocks = this.blocks.take(frame);
    const edges = this.edges.take(frame);
    const countedBlocks = this.blocks.takeCounts(frame);
    this.edges.takeCounts(frame);
    this.takeThreads(frame);
    const hasNewStructure = isWhole || functions.length + blocks.length + edges.length > 0;
    return { isWhole, hasNewStructure, blocks, edges, countedBlocks, blocksBefore, edgesBefore };
  }

  /** What the page has: to be told to the server, which then tells what changed since. */
  get place(): { epoch: string; sequence: number; has: number } {
    const { meta } = this;
    return meta
      ? { epoch: meta.epoch, sequence: meta.sequence, has: meta.process }
      : { epoch: "", sequence: -1, has: -1 };
  }

  /** Bytes of all rows. */
  get bytes(): number {
    return this.functions.bytes + this.blocks.bytes + this.edges.bytes;
  }

  /** Forget all: the next frame has to be a whole one. */
  clear(): void {
    this.functions.clear();
    this.blocks.clear();
    this.edges.clear();
    this.names = [];
    this.images = [];
    this.threads = [];
    this.totals = null;
    this.meta = null;
  }

  private takeThreads(frame: Container): void {
    const tid = frame.get("thread_tid", "u32");
    const running = frame.get("thread_running", "u8");
    const members = frame.get("thread_members", "u32");
    const instructions = frame.get("thread_instructions", "f64");
    const executions = frame.get("thread_executions", "f64");
    this.threads = frame.texts("thread_name").map((name, i) => ({
      tid: tid[i],
      name,
      isRunning: running[i] === 1,
      members: members[i],
      instructions: instructions[i],
      executions: executions[i],
    }));
  }
}
