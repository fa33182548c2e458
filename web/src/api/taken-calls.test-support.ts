// Made up calls for tests of what is told out of a file.
import fc from "fast-check";
import type { CallDetails } from "./calls.ts";
import type { TakenCalls } from "./file-call-choice.ts";

export function makeCall(number: number, change: Partial<CallDetails>): CallDetails {
  return {
    call: number,
    process: 0,
    time: 10 * number,
    duration: null,
    tid: 7,
    kind: "system_call",
    name: "read",
    block: number,
    function: 0,
    filter: "File",
    library: null,
    arguments: [],
    result: null,
    error: null,
    injected: [],
    position: null,
    parent: -1,
    depth: 0,
    own: null,
    references: [],
    ...change,
  };
}

/** What a file has of some recorded calls, which are in the order of time. */
export function takeCalls(calls: CallDetails[]): TakenCalls {
  const tids = [...new Set(calls.map(({ tid }) => tid))].filter((tid) => tid !== null).sort((a, b) => a - b);
  return {
    summary: {
      ...{ source: "recorded", reason: null, total: calls.length, omitted: 0, untimed: 0 },
      ...{ from: calls.at(0)?.time ?? null, to: calls.at(-1)?.time ?? null, calls: calls.length },
      ...{ names: [], names_omitted: 0, filters: [], processes: [] },
      threads: tids.map((tid) => ({ tid, calls: calls.filter((call) => call.tid === tid).length })),
    },
    places: { total: 0, calls: 0, rows: [] },
    calls,
    entities: { source: "recorded", rows: [] },
    makers: [],
    touches: [],
  };
}

/** Calls of two threads, some within others: of each its thread, its name, and how many of the open ones return first. */
export const nestedCalls = fc
  .array(fc.record({ tid: fc.constantFrom(7, 8), name: fc.constantFrom("a", "b"), returns: fc.nat(3) }), {
    maxLength: 40,
  })
  .map((steps) => {
    const open = new Map<number, CallDetails[]>([
      [7, []],
      [8, []],
    ]);
    const calls = steps.map(({ tid, name, returns }, number) => {
      const stack = open.get(tid)!;
      const time = 10 * number;
      for (let left = returns; left > 0 && stack.length > 0; left--) {
        const over = stack.pop()!;
        over.duration = time - left - over.time;
      }
      const around = stack.at(-1);
      const error = number % 3 === 2 ? "EIO" : null;
      const call = makeCall(number, { tid, name, error, parent: around?.call ?? -1, depth: stack.length });
      stack.push(call);
      return call;
    });
    for (const call of calls) {
      const within = calls.filter(({ parent }) => parent === call.call);
      const inside = within.reduce((sum, { duration }) => sum + (duration ?? 0), 0);
      call.own = call.duration === null ? null : Math.max(call.duration - inside, 0);
    }
    return calls;
  });
