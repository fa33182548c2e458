// Tells the recorder of a program that runs what to do, and asks how the program stands: docs/viewer.md, "Live".
import type { HoldWord, ModeWord } from "../protocol/generated.ts";
import { askServer } from "./server-source.ts";

/** A thread that is stopped, in front of the instruction at `address`; numbers are hexadecimal. */
export interface StoppedThread {
  tid: number;
  reason: HoldWord;
  address: string;
  symbol: string;
  registers: Record<string, string>;
}

/** A thread that is not stopped: in a system call, or (null) it runs. */
export interface OtherThread {
  tid: number;
  system_call: string | null;
}

export interface Breakpoint {
  address: string;
  symbol: string;
}

/** What a recording can be told to be while it runs; "auto" is "full" with a budget. */
export type ToldMode = "counts" | "auto" | "full";

export interface ProgramStatus {
  pid: number;
  mode: ModeWord;
  /** Bytes of the order a second that are recorded at most; null for all. */
  budget: number | null;
  /** It waits in front of its first instruction. */
  is_paused: boolean;
  include: string[];
  exclude: string[];
  executable: string;
  is_held: boolean;
  breakpoints: Breakpoint[];
  stopped: StoppedThread[];
  elsewhere: OtherThread[];
  n_stopped: number;
  n_elsewhere: number;
}

/** `status` is null where the process is not recorded any more; `places` is how much code a filter holds. */
export interface ControlAnswer {
  status: ProgramStatus | null;
  places: number | null;
  reason: string;
}

export type Command =
  | { command: "pause" | "continue" | "detach" | "kill" }
  | { command: "step" | "next"; tid: number }
  | { command: "break" | "delete"; place: string }
  | { command: "include" | "exclude" | "only"; what: string }
  | { command: "mode"; mode: ToldMode }
  | { command: "budget"; budget: number };

const PATH = "live/control";

/** How process `pid` stands; 0 is the first one. Rejects with an ApiError. */
export async function fetchStatus(token: string, pid: number): Promise<ControlAnswer> {
  return (await (await askServer(token, `${PATH}?pid=${pid}`)).json()) as ControlAnswer;
}

/** Have process `pid` do something. Rejects with an ApiError that says what was refused. */
export async function sendCommand(token: string, pid: number, command: Command): Promise<ControlAnswer> {
  const body = JSON.stringify({ ...command, pid });
  return (await (await askServer(token, PATH, { method: "POST", body })).json()) as ControlAnswer;
}
