// How processes and threads ended and what was lost, in words.

const SIGNALS = [
  ..."HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG".split(
    " ",
  ),
  ..."XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(" "),
];

/** SIGSEGV for 11, as Linux numbers them on x86-64. */
export function signalName(number: number): string {
  if (number >= 1 && number <= SIGNALS.length) {
    return `SIG${SIGNALS[number - 1]}`;
  }
  return number >= 34 && number <= 64 ? `SIGRTMIN+${number - 34}` : `signal ${number}`;
}

interface Ended {
  exit: { code?: number | null; signal?: number };
  went_on_unfollowed: boolean;
}

/** How a process ended; `follower` is the program that it went on as, if that was followed. */
export function processEnd(process: Ended, follower: string | null): string {
  const { code, signal } = process.exit;
  if (signal !== undefined) {
    return `killed by ${signalName(signal)}`;
  }
  if (code !== undefined && code !== null) {
    return `exit ${code}`;
  }
  if (process.went_on_unfollowed) {
    return "went on unfollowed";
  }
  return follower === null ? "still ran" : `went on as ${follower.slice(follower.lastIndexOf("/") + 1)}`;
}

/** Whether a reader should look: it failed, or was not followed to its end. */
export function isBadEnd(process: Ended): boolean {
  return process.exit.signal !== undefined || (process.exit.code ?? 0) !== 0 || process.went_on_unfollowed;
}

const THREAD_ENDS = {
  exit: "exited",
  killed: "killed from outside",
  detached: "went on untraced",
  lost: "end not known",
};

/** How a thread of a process ended. One that was killed while its process ended was ended by that. */
export function threadEnd(end: keyof typeof THREAD_ENDS, process: Ended): string {
  return end === "killed" && hasEnded(process) ? "with its process" : THREAD_ENDS[end];
}

/** Whether a reader should look: nobody knows, or it was killed while its process went on. */
export function isBadThreadEnd(end: keyof typeof THREAD_ENDS, process: Ended): boolean {
  return end === "lost" || (end === "killed" && !hasEnded(process));
}

function hasEnded({ exit: { code, signal } }: Ended): boolean {
  return (signal ?? code ?? null) !== null;
}

const LOSSES: Record<string, string> = {
  dropped_records: "records dropped because the recorder was too slow",
  damaged_records: "damaged records",
  damaged_counters: "damaged counters",
  lost_threads: "threads lost",
  lost_processes: "processes lost",
  released_threads: "threads that went on natively",
  unfollowed_children: "child processes not followed",
  unfollowed_programs: "programs not followed",
  uncounted_fragments: "pieces of code not counted",
  untagged_fragments: "pieces of code without their place in the order",
  probe_events: "events of probes",
  uncounted_instructions: "instructions of 32-bit code not counted",
};

/** What a loss of the trace is called. */
export function lossName(name: string): string {
  return LOSSES[name] ?? name.replaceAll("_", " ");
}
