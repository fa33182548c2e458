// Who did what with what, as the view shows it.
import { computed } from "@preact/signals";
import { summary } from "../session.ts";
import { touches } from "./calls.ts";
import { layoutTouches } from "./touch-graph.ts";

const MOST_NODES = 14;

/** What a process is called: its pid, and the program. */
export const processName = computed(() => {
  const known = new Map(summary.value?.processes.map((one) => [one.process_id, `${one.pid} ${one.command[0] ?? ""}`]));
  return (process: number) => known.get(process) ?? `process ${process}`;
});

/** Null while that is not known, or not looked at. */
export const touchGraph = computed(
  () => touches.value && layoutTouches(touches.value.rows, processName.value, MOST_NODES),
);
