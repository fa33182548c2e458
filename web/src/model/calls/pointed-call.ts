// The call whose bar the pointer is on, with what it was given and what came of it: asked for when the pointer rests.
import { signal } from "@preact/signals";
import { type CallRow, fetchCalls } from "../../api/calls.ts";
import { client } from "../session.ts";
import { where } from "./following.ts";

const DELAY_MS = 80;

/** null while nothing is pointed at, or that is not known yet. */
export const pointedCall = signal<CallRow | null>(null);

let timer = 0;
let wanted = -1;

/** Point at a call of the process that is looked at, by its number; -1 for none. */
export function pointAt(call: number): void {
  if (call === wanted) {
    return;
  }
  clearTimeout(timer);
  wanted = call;
  pointedCall.value = null;
  const place = where.peek();
  if (call < 0 || !place) {
    return;
  }
  timer = window.setTimeout(() => {
    // All of them are sorted by time as they are numbered. To open it would also say where its thread was, which may take
    // long to find out.
    fetchCalls(client(), place, { sort: "time", offset: call, count: 1 }).then(
      ({ rows }) => {
        if (wanted === call && where.peek() === place) {
          pointedCall.value = rows.at(0) ?? null;
        }
      },
      // What the bar itself says is told all the same.
      () => undefined,
    );
  }, DELAY_MS);
}
