// What was executed just before the cursor, for pictures that light it up.
import { signal } from "@preact/signals";

/** A block by its index, and how recent it is: 1 for the one executed last, towards 0 the longer ago. */
export interface RecentBlock {
  block: number;
  weight: number;
}

/** The blocks executed last where there is a cursor in an ordered thread; null where there is none. */
export const recentBlocks = signal<RecentBlock[] | null>(null);

/** Functions in which a program that runs found new code just now: their labels come before others. */
export const freshFunctions = signal<ReadonlySet<number>>(new Set());

/** Blocks in the order of their execution as weights; what ran several times counts as it did last. */
export function weighRecent(recent: ArrayLike<number>): RecentBlock[] {
  const found: RecentBlock[] = [];
  const seen = new Set<number>();
  const n = recent.length;
  for (let i = n - 1; i >= 0; i--) {
    const block = recent[i];
    if (block >= 0 && !seen.has(block)) {
      seen.add(block);
      found.push({ block, weight: n > 1 ? i / (n - 1) : 1 });
    }
  }
  return found;
}
