// What keys of the comparison are for: help has them before it is loaded.
import type { DescribedKey } from "../../model/keys.ts";

const PARTING = "Both replays to the next parting, or the one before";
const BOTH = "Both replays a block back or on";

/** By key. */
export const COMPARE_KEYS = {
  v: "The next part of the comparison",
  x: "Swap A and B",
  s: "In the graph, one picture or two beside each other",
  n: PARTING,
  p: PARTING,
  "(": BOTH,
  ")": BOTH,
  Escape: "In the graph, select nothing",
} as const;

export const DESCRIBED_KEYS: readonly DescribedKey[] = Object.entries(COMPARE_KEYS).map(([key, what]) => ({
  key,
  what,
}));
