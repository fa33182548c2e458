// The program that is being recorded, as it can be commanded: how it stands, which of its threads is meant, and commands. It is
// asked again and again while somebody looks; often where it may stop by itself.
import { batch, computed, effect, signal } from "@preact/signals";
import {
  type Command,
  type ControlAnswer,
  fetchStatus,
  type ProgramStatus,
  sendCommand,
} from "../../api/live-control.ts";
import { blocks, functions, sessionToken } from "../session.ts";
import { type Selection, selection, update } from "../view-state.ts";
import { liveState } from "./live-session.ts";
import { findBlockAt, findMeant, type ProgramState, stateOf } from "./program-state.ts";

const OFTEN_MS = 500;
const SELDOM_MS = 2000;
/** So long after a command it is asked often in any case. */
const AFTER_COMMAND_MS = 10_000;

/** As it was told last; null: it is not recorded any more, undefined: not known yet. */
export const programStatus = signal<ProgramStatus | null | undefined>(undefined);
/** What was refused last, and what the last command did where its effect is not seen; empty for nothing. */
export const programError = signal("");
export const programNote = signal("");
/** Whether a command is under way; others wait until it is answered. */
export const isCommanding = signal(false);
const chosen = signal<number | null>(null);

export const programState = computed<ProgramState>(() => {
  const recording = liveState.value?.meta.state ?? "running";
  return recording === "running" ? stateOf(programStatus.value) : "gone";
});
/** Whether it is stopped, or some of it already. */
export const isStill = computed(() => programState.value === "held" || programState.value === "coming");
/** The thread that is stopped and that steps move. */
export const meantThread = computed(() => findMeant(programStatus.value, chosen.value));
/** The process that is looked at; 0 before it is known. */
const pid = computed(() => {
  const number = liveState.value?.meta.process;
  return liveState.value?.processes.find((one) => one.number === number)?.pid ?? 0;
});

/** Which address "Break here" means: that of the selected block or function; null without. */
export const selectedPlace = computed(() => {
  const { value } = selection;
  const address = value && addressOf(value);
  return address == null ? null : `0x${address.toString(16)}`;
});

let generation = 0;
let isWatched = false;
let commandedAt = -Infinity;
let timer = 0;

/** Ask how it stands, and select where it does, until what is returned is called. */
export function watchProgram(): () => void {
  isWatched = true;
  let shown = "";
  const ends = [
    effect(() => {
      pid.value;
      generation++;
      batch(() => {
        programStatus.value = undefined;
        chosen.value = null;
      });
      askSoon(0);
    }),
    effect(() => {
      const [thread, of] = [meantThread.value, blocks.value];
      if (!thread) {
        shown = "";
        return;
      }
      // Once for each place: what is selected afterwards stays so.
      const place = `${thread.tid} ${thread.address}`;
      const index = of && place !== shown ? findBlockAt(of, BigInt(thread.address)) : -1;
      if (index >= 0) {
        shown = place;
        update({ selection: { kind: "block", index } });
      }
    }),
  ];
  return () => {
    isWatched = false;
    generation++;
    clearTimeout(timer);
    ends.forEach((end) => end());
    programStatus.value = undefined;
  };
}

/** Mean a stopped thread. */
export function chooseThread(tid: number): void {
  chosen.value = tid;
}

/** Have the program do something; whether it did. What is refused is told by `programError`. */
export async function command(what: Command): Promise<boolean> {
  if (isCommanding.peek() || !isWatched) {
    return false;
  }
  generation++;
  batch(() => {
    isCommanding.value = true;
    programError.value = "";
    programNote.value = "";
  });
  try {
    const answer = await sendCommand(sessionToken(), pid.peek(), what);
    take(answer);
    if (answer.places !== null) {
      const n = answer.places;
      programNote.value = `It holds ${n} piece${n === 1 ? "" : "s"} of code that is loaded, and what is loaded later`;
    }
    return true;
  } catch (error) {
    programError.value = error instanceof Error ? error.message : String(error);
    return false;
  } finally {
    isCommanding.value = false;
    commandedAt = performance.now();
    askSoon(OFTEN_MS);
  }
}

/** Pause the program, or let it go on. */
export function pauseOrContinue(): void {
  void command({ command: isStill.peek() ? "continue" : "pause" });
}

/** Move the thread that is meant. */
export function moveThread(how: "step" | "next"): void {
  const thread = meantThread.peek();
  if (thread) {
    void command({ command: how, tid: thread.tid });
  } else {
    programError.value = "no thread is stopped: pause the program first";
  }
}

/** Have threads stop that come to what is selected. */
export function breakHere(): void {
  const place = selectedPlace.peek();
  if (place === null) {
    programError.value = "nothing is selected to break at: select a block or a function";
  } else {
    void command({ command: "break", place });
  }
}

function take(answer: ControlAnswer): void {
  batch(() => {
    programStatus.value = answer.status;
    if (!answer.status?.is_held) {
      chosen.value = null;
    }
  });
}

function askSoon(delay: number): void {
  clearTimeout(timer);
  if (isWatched) {
    timer = window.setTimeout(() => void ask(), delay);
  }
}

async function ask(): Promise<void> {
  const asked = generation;
  if (!document.hidden && !isCommanding.peek()) {
    try {
      const answer = await fetchStatus(sessionToken(), pid.peek());
      if (asked === generation) {
        take(answer);
      }
    } catch {
      // The connection is gone, which the panel tells; when it is back, so are answers.
    }
  }
  if (asked === generation) {
    const status = programStatus.peek();
    const mayStop = status && (status.is_held || status.is_paused || status.breakpoints.length > 0);
    const isNew = performance.now() - commandedAt < AFTER_COMMAND_MS;
    askSoon(mayStop || isNew ? OFTEN_MS : SELDOM_MS);
  }
}

function addressOf({ kind, index }: Selection): bigint | undefined {
  return (kind === "block" ? blocks.value : functions.value)?.address[index];
}
