// Results on the way: made and told only now and then, since to make one takes time too.
import type { LayoutResult } from "./layout.ts";

/** Is told that there is something new; `make` makes a result of it. */
export type Progress = (make: () => LayoutResult) => void;

/** When the first is told, and how long it takes from one to the next, in milliseconds. */
const FIRST_MS = 80;
const NEXT_MS = 300;

export function paceProgress(tell: ((partial: LayoutResult) => void) | undefined): Progress {
  if (!tell) {
    return () => undefined;
  }
  let due = performance.now() + FIRST_MS;
  return (make) => {
    if (performance.now() >= due) {
      tell(make());
      due = performance.now() + NEXT_MS;
    }
  };
}
