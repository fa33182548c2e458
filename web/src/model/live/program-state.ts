// What is said of a program that runs, and which block a thread is stopped in. Pure.
import type { OtherThread, ProgramStatus, StoppedThread, ToldMode } from "../../api/live-control.ts";

/** "coming": not all of its threads are stopped yet; "gone": it has ended, or clew has left it. */
export type ProgramState = "unknown" | "waiting" | "running" | "coming" | "held" | "gone";

export const STATE_WORDS: Record<ProgramState, string> = {
  unknown: "Asking how the program stands …",
  waiting: "Waits in front of its first instruction",
  running: "Runs",
  coming: "Stopping …",
  held: "Stopped",
  gone: "Is not recorded any more: it has ended, or runs on without clew",
};

const REASONS: Record<StoppedThread["reason"], string> = {
  asked: "paused",
  stepped: "stepped",
  breakpoint: "breakpoint",
  capture: "captured",
  block: "about to translate",
};

/** How a program stands; `status` is undefined before it was asked. */
export function stateOf(status: ProgramStatus | null | undefined): ProgramState {
  if (!status) {
    return status === null ? "gone" : "unknown";
  }
  if (status.is_paused) {
    return "waiting";
  }
  if (!status.is_held) {
    return "running";
  }
  return status.elsewhere.some((thread) => thread.system_call === null) ? "coming" : "held";
}

/** Why a thread is stopped, and where: "breakpoint at main+0x4". */
export function describeStopped({ reason, address, symbol }: StoppedThread): string {
  return `${REASONS[reason]} at ${symbol || address}`;
}

export function describeOther({ system_call: call }: OtherThread): string {
  return call === null ? "runs" : `waits in ${call}`;
}

/** The thread that is meant: the one chosen if it is stopped, else the first, which has a reason of its own if any has. */
export function findMeant(status: ProgramStatus | null | undefined, chosen: number | null): StoppedThread | null {
  const stopped = status?.stopped ?? [];
  return stopped.find(({ tid }) => tid === chosen) ?? stopped[0] ?? null;
}

interface BlockPlaces {
  address: BigUint64Array;
  sizeBytes: ArrayLike<number>;
  codeVersion: ArrayLike<number>;
}

/**
 * The block that has an address, -1 if none has: the one that begins last of those, and of several versions of its code the
 * newest.
 */
export function findBlockAt({ address, sizeBytes, codeVersion }: BlockPlaces, at: bigint): number {
  let found = -1;
  for (let block = 0; block < address.length; block++) {
    const start = address[block];
    if (start > at || at >= start + BigInt(sizeBytes[block])) {
      continue;
    }
    const isBetter =
      found < 0 || start > address[found] || (start === address[found] && codeVersion[block] > codeVersion[found]);
    found = isBetter ? block : found;
  }
  return found;
}

/** The mode as people name it. */
export function findMode({ mode, budget }: ProgramStatus): ProgramStatus["mode"] | ToldMode {
  return mode === "full" && budget !== null ? "auto" : mode;
}

/** Why the recording can't be told another mode; empty where it can. */
export function whyModeStays({ mode }: ProgramStatus): string {
  return mode === "counts" || mode === "full"
    ? ""
    : `Mode ${mode} stays to the end; start with --mode counts to have the order later`;
}

/** Why what is included can't be changed; empty where it can. */
export function whyFiltersStay({ mode }: ProgramStatus): string {
  return mode === "region" ? "In mode region what is included is chosen at the start" : "";
}

/** Bytes a second of a budget as people write it, in MB or "all"; null where it is none. */
export function parseBudget(text: string): number | null {
  const word = text.trim().toLowerCase();
  if (word === "all") {
    return -1;
  }
  const megabytes = word === "" ? NaN : Number(word);
  return megabytes >= 0 && megabytes < 1e9 ? Math.round(megabytes * 1e6) : null;
}

/** A budget as people write it. */
export function writeBudget(budget: number | null): string {
  return budget === null ? "all" : String(budget / 1e6);
}

export function describeBudget(budget: number | null): string {
  return budget === null
    ? "all of the order"
    : budget === 0
      ? "no order, only counts"
      : `${writeBudget(budget)} MB/s of order`;
}
