// Whose calls are looked at: those of one process, or of all that have recorded ones; and what processes are called there.
import { computed } from "@preact/signals";
import type { Where } from "../../api/calls.ts";
import type { ProcessSummary } from "../../api/traces.ts";
import { summary } from "../session.ts";
import { calls } from "../view-state.ts";
import { where } from "./following.ts";

/** Processes with recorded calls, in the order of the trace. */
export const callers = computed(() => (summary.value?.processes ?? []).filter((one) => one.api_calls > 0));

/** Whether the calls of all processes are looked at together. */
export const isOfAll = computed(() => calls.value.isOfAll && callers.value.length > 1);

/** What calls and entities are asked of. */
export const callsPlace = computed<Where | null>(() =>
  where.value && isOfAll.value ? { trace: where.value.trace, process: null } : where.value,
);

const known = computed(() => new Map(summary.value?.processes.map((one) => [one.process_id, one])));

/** What a process is called: its pid, and the program without its folder. */
export const processName = computed(() => (process: number) => tellProcess(known.value.get(process), process));

/** The same with all words of its command. */
export const processTitle = computed(() => (process: number) => {
  const found = known.value.get(process);
  return found ? `${found.pid} ${found.command.join(" ")}`.slice(0, 400) : tellProcess(found, process);
});

function tellProcess(found: ProcessSummary | undefined, process: number): string {
  if (!found) {
    return `process ${process}`;
  }
  const program = found.command[0] ?? "";
  return `${found.pid} ${program.slice(program.lastIndexOf("/") + 1) || program}`;
}
