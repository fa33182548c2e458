// Who did what with what, as the view shows it.
import { computed } from "@preact/signals";
import { processName } from "./call-processes.ts";
import { touches } from "./calls.ts";
import { layoutTouches } from "./touch-graph.ts";

const MOST_NODES = 14;

/** Null while that is not known, or not looked at. */
export const touchGraph = computed(
  () => touches.value && layoutTouches(touches.value.rows, processName.value, MOST_NODES),
);
