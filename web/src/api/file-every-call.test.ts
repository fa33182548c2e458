import fc from "fast-check";
import { expect, test } from "vitest";
import type { CallDetails, CallPage, CallSummary, EntityPage, OpenedEntity, TreeThread } from "./calls.ts";
import type { PlainChart } from "./file-calls.ts";
import { answerFromAll, type TakenProcess } from "./file-every-call.ts";
import { makeCall, takeCalls } from "./taken-calls.test-support.ts";

const FILE = { entity: 4, kind: "file", name: "/tmp/shared", process: null, tid: null, parent: null, details: [] };

/** Calls of some processes at different times: of each its process and whether it failed. */
const made = fc.array(fc.record({ process: fc.nat(2), hasFailed: fc.boolean() }), { minLength: 1, maxLength: 40 });

function take(steps: readonly { process: number; hasFailed: boolean }[]): [CallDetails[], TakenProcess[]] {
  const counts = new Map<number, number>();
  const every = steps.map(({ process, hasFailed }, at) => {
    const number = counts.get(process) ?? 0;
    counts.set(process, number + 1);
    const references = number % 2 === 0 ? [{ entity: 4, role: "read", argument: 0, bytes: 3 }] : [];
    const change = { process, tid: 70 + process, time: 10 * at, error: hasFailed ? "EIO" : null, references };
    return makeCall(number, { ...change, block: -1, function: -1, name: number % 3 === 0 ? "open" : "read" });
  });
  const touches = [...counts].map(([process, n]) => ({
    ...{ process, entity: 4, kind: "file", name: FILE.name, calls: Math.ceil(n / 2), roles: [] as [string, number][] },
    ...{ bytes_read: 3 * Math.ceil(n / 2), bytes_written: 0 },
  }));
  const entity = (calls: number) => ({
    ...FILE,
    from: 0,
    to: 1,
    all_calls: sum(touches.map((one) => one.calls)),
    calls,
  });
  const of = [...counts.keys()].sort().map((process) => {
    const taken = takeCalls(every.filter((call) => call.process === process));
    const calls = touches.find((one) => one.process === process)!.calls;
    const rows = [{ ...entity(calls), bytes: 3 * calls, own: true }];
    return { process, taken: { ...taken, touches, entities: { source: "recorded" as const, rows } } };
  });
  return [every, of];
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);

test("every call of a file is there once, by time", () => {
  fc.assert(
    fc.property(made, (steps) => {
      const [every, of] = take(steps);
      const page = answerFromAll(of, 5, "calls", new URLSearchParams("count=100")) as CallPage;
      expect(page.rows).toEqual(every);
      const failed = answerFromAll(of, 5, "calls", new URLSearchParams("count=100&failed=true&sort=process"));
      const wanted = every.filter(({ error }) => error !== null).sort((a, b) => a.process - b.process);
      expect((failed as CallPage).rows).toEqual(wanted);
      const at = every.length >> 1;
      const { process, call } = every[at];
      const near = answerFromAll(of, 0, "calls", new URLSearchParams({ process: `${process}`, call: `${call}` }));
      expect((near as CallPage).at).toBe(at);
      const summary = answerFromAll(of, 5, "calls/summary", new URLSearchParams()) as CallSummary;
      expect(summary).toMatchObject({ total: every.length, calls: every.length, omitted: 5 });
      expect(summary.processes).toEqual(
        of.map(({ process: id }) => ({ process: id, calls: every.filter((one) => one.process === id).length })),
      );
      const chart = answerFromAll(of, 0, "calls/chart", new URLSearchParams("by=process&bins=6")) as PlainChart;
      expect(sum(chart.counts)).toBe(every.length);
      expect([...chart.names].sort()).toEqual(of.map(({ process: id }) => String(id)));
      const { threads } = answerFromAll(of, 0, "calls/tree", new URLSearchParams()) as { threads: TreeThread[] };
      expect(threads.map(({ process: id, tid, calls }) => [id, tid, calls])).toEqual(
        summary.processes.map((one) => [one.process, 70 + one.process, one.calls]),
      );
    }),
  );
});

test("what several processes share is one entity, with the calls of all", () => {
  fc.assert(
    fc.property(made, (steps) => {
      const [every, of] = take(steps);
      const about = every.filter(({ references }) => references.length > 0);
      const page = answerFromAll(of, 0, "entities", new URLSearchParams()) as EntityPage;
      expect(page.rows).toMatchObject([{ entity: 4, calls: about.length, bytes: 3 * about.length }]);
      const one = answerFromAll(of, 0, "entities/4", new URLSearchParams()) as OpenedEntity;
      expect(one.touches.length).toBe(of.length);
      // Of each process the first is told, and how many more there are.
      const first = of.map(({ process }) => about.find((call) => call.process === process)!);
      first.sort((a, b) => a.time - b.time);
      expect(one.life.map(({ process, call }) => [process, call])).toEqual(
        first.map(({ process, call }) => [process, call]),
      );
      expect(sum(one.life.map(({ more }) => more + 1))).toBe(about.length);
      expect(() => answerFromAll(of, 0, "entities/5", new URLSearchParams())).toThrow("no entity");
      expect(() => answerFromAll(of, 0, "calls/3", new URLSearchParams())).toThrow("single processes");
    }),
  );
});
