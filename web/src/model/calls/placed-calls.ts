// Calls in the order of execution of a thread: which is at a place, and which are open there. Pure.
import type { NearCalls, PlacedCall } from "../../api/calls.ts";

/** The first of `rows`, whose positions rise, at a position or behind it; their number if there is none. */
export function firstFrom(rows: readonly PlacedCall[], position: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].position < position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Whether at least so many calls are known in front of a position and behind it, or all that there are. */
export function hasRoom({ rows, first, total }: NearCalls, position: number, least: number): boolean {
  const at = firstFrom(rows, position);
  const isAtStart = first === 0;
  const isAtEnd = first + rows.length === total;
  return (isAtStart || at >= least) && (isAtEnd || rows.length - at >= least);
}

/** Of the call `row` and those around it, the outermost first, those that are open at a time: whose blocks are in `stack`,
 * which has the blocks of all open calls, the outermost first. -1: of those around the first row. */
export function openAround(near: NearCalls, row: number, stack: readonly number[], time: number): PlacedCall[] {
  const known = new Map([...near.around, ...near.rows.slice(0, row + 1)].map((one) => [one.call, one]));
  const chain: PlacedCall[] = [];
  let at = row >= 0 ? (near.rows[row] as PlacedCall | undefined) : near.around[0];
  while (at && !chain.includes(at)) {
    chain.unshift(at);
    at = known.get(at.parent);
  }
  const open: PlacedCall[] = [];
  let place = 0;
  for (const call of chain) {
    const found = stack.indexOf(call.block, place);
    const isOver = call.duration !== null && time > call.time + call.duration;
    // One that was jumped to, and not called, has no place in the stack.
    if (found >= 0 && !isOver) {
      open.push(call);
      place = found + 1;
    }
  }
  return open;
}
