import fc from "fast-check";
import { expect, test } from "vitest";
import { Container } from "../../protocol/container.ts";
import { MOST_BUSY, MOST_NEWEST, MOST_THREADS, LiveActivity, pulseStrength } from "./live-activity.ts";
import { LiveGraph } from "./live-graph.ts";
import { buildCounts, buildStructure } from "./live-picture.ts";
import { type MadeUpRow, makeFrame } from "./made-up-frames.ts";

const rows: fc.Arbitrary<MadeUpRow[]> = fc.array(
  fc.record({ function: fc.nat(5), address: fc.nat(400), executions: fc.nat(1000), isGone: fc.boolean() }),
  { maxLength: 30 },
);

/** What a page would show: names, addresses and executions, by function and block. */
function shown(graph: LiveGraph): unknown {
  const { functions, blocks, ...structure } = buildStructure(graph);
  const counts = buildCounts(graph, { functions, blocks, ...structure });
  return {
    names: functions.names,
    firstBlock: [...functions.firstBlock],
    address: [...blocks.address],
    executions: [...counts.blockExecutions!],
    instructions: [...counts.functionInstructions],
    edges: [...blocks.edgeSource].map((source, i) => [source, blocks.edgeTarget[i], blocks.edgeKind[i]]),
    links: [...functions.linkSource].map((source, i) => [source, functions.linkTarget[i], counts.linkExecutions[i]]),
  };
}

test("changes one after another give the same picture as all of it at once", () => {
  fc.assert(
    fc.property(fc.array(rows, { minLength: 1, maxLength: 6 }), (steps) => {
      const [grown, whole] = [new LiveGraph(), new LiveGraph()];
      const all: MadeUpRow[] = [];
      let sequence = 0;
      for (const step of steps) {
        const first = all.length;
        all.push(...step.map((row) => ({ ...row, isGone: false })));
        // Some that were there before change, or go.
        const changed = step.flatMap((row, i) => (row.isGone && i < first ? [i] : []));
        changed.forEach((i) => (all[i] = { ...all[i], isGone: step[i].isGone, executions: all[i].executions + 1 }));
        const told = [...changed, ...step.map((_, i) => first + i)];
        grown.apply(makeFrame(all, told, sequence === 0 ? -1 : sequence, ++sequence));
      }
      whole.apply(makeFrame(all, [...all.keys()], -1, sequence));
      expect(shown(grown)).toEqual(shown(whole));
    }),
  );
});

test("a frame that follows nothing known is refused, and a whole one is taken", () => {
  const graph = new LiveGraph();
  const some = [{ function: 0, address: 1, executions: 1, isGone: false }];
  expect(graph.place).toEqual({ epoch: "", sequence: -1, has: -1 });
  expect(() => graph.apply(makeFrame(some, [0], 3, 4))).toThrow(/follow/);
  graph.apply(makeFrame(some, [0], -1, 4));
  expect(graph.place).toEqual({ epoch: "e", sequence: 4, has: 0 });
  expect(() => graph.apply(makeFrame(some, [0], 5, 6))).toThrow(/follow/);
  graph.apply(makeFrame(some, [0], -1, 9));
  expect(graph.blocks.count).toBe(1);
});

test("functions follow one another, with their blocks by address, and callers before whom they call", () => {
  fc.assert(
    fc.property(rows, (some) => {
      const graph = new LiveGraph();
      graph.apply(makeFrame(some, [...some.keys()], -1, 1));
      const { functions, blocks, blockRows, blockOfRow } = buildStructure(graph);
      const there = some.filter((row) => !row.isGone);
      expect(blocks.count).toBe(there.length);
      expect(functions.count).toBe(new Set(there.map((row) => row.function)).size);
      for (let of = 0; of < functions.count; of++) {
        expect(functions.caller[of]).toBeLessThan(of);
        for (let block = functions.firstBlock[of]; block < functions.firstBlock[of + 1]; block++) {
          expect(blocks.function[block]).toBe(of);
          expect(blockOfRow[blockRows[block]]).toBe(block);
          if (block > functions.firstBlock[of]) {
            expect(blocks.address[block]).toBeGreaterThanOrEqual(blocks.address[block - 1]);
          }
        }
      }
    }),
  );
});

test("two thousand frames of a program that finds nothing new take no more room than the first", () => {
  const graph = new LiveGraph();
  const activity = new LiveActivity();
  const some = Array.from({ length: 500 }, (_, i) => ({ function: i % 40, address: i, executions: 1, isGone: false }));
  graph.apply(makeFrame(some, [...some.keys()], -1, 1));
  const takes = () => {
    return { bytes: graph.bytes + activity.bytes, newest: activity.newest.length, names: graph.names.length };
  };
  let first: unknown = null;
  for (let sequence = 2; sequence <= 2000; sequence++) {
    const frame = makeFrame(some, [], sequence - 1, sequence, {
      counted: [sequence % 500, (7 * sequence) % 500],
      executions: sequence,
      // Threads come and go all the time.
      threads: Array.from({ length: 80 }, (_, i) => sequence + i),
    });
    const change = graph.apply(frame);
    activity.note(graph, change, 500 * sequence);
    activity.sample(graph.threads, 500 * sequence);
    expect(activity.busy.length).toBeLessThanOrEqual(MOST_BUSY);
    if (sequence === 50) {
      first = takes();
    }
  }
  expect(takes()).toEqual(first);
  expect(activity.rows(graph.threads).length).toBe(MOST_THREADS);
});

test("what is newest is named, the latest first, and only the last of it is kept", () => {
  const graph = new LiveGraph();
  const activity = new LiveActivity();
  const some: MadeUpRow[] = [{ function: 0, address: 0, executions: 1, isGone: false }];
  activity.note(graph, graph.apply(makeFrame(some, [0], -1, 1)), 0);
  expect(activity.newest).toEqual([]);
  for (let i = 1; i < 200; i++) {
    some.push({ function: i, address: i, executions: 1, isGone: false });
    activity.note(graph, graph.apply(makeFrame(some, [i], i, i + 1)), i);
    expect(activity.newest[0]).toMatchObject({ kind: "block", name: `f${i}`, row: i, blocks: 1 });
  }
  expect(activity.newest.length).toBe(MOST_NEWEST);
});

test("the busiest blocks are those that rose most since the frame before", () => {
  const graph = new LiveGraph();
  const activity = new LiveActivity();
  const some = Array.from({ length: 9 }, (_, i) => ({ function: 0, address: i, executions: 50, isGone: false }));
  activity.note(graph, graph.apply(makeFrame(some, [...some.keys()], -1, 1)), 0);
  expect(activity.busy).toEqual([]);
  const frame = makeFrame(some, [], 1, 2, { counted: [4, 5], executions: 1050 });
  some[5].executions = 1040;
  activity.note(graph, graph.apply(frame), 40);
  expect(activity.busy.map(({ row }) => row)).toEqual([4, 5]);
  expect(activity.busy[0].weight).toBe(1);
  activity.note(graph, graph.apply(makeFrame(some, [], 2, 3)), 80);
  expect(activity.busy).toEqual([]);
});

test("what is busy swells and fades about once a second, and is even where little movement is asked for", () => {
  const times = Array.from({ length: 100 }, (_, i) => 20 * i);
  const strengths = times.map((time) => pulseStrength(time, false));
  const [least, most] = [Math.min(...strengths), Math.max(...strengths)];
  expect(least).toBeGreaterThan(0.1);
  expect(most).toBeLessThanOrEqual(1);
  expect(most - least).toBeGreaterThan(0.6);
  const peaks = strengths.filter((one, i) => one > (strengths[i - 1] ?? 2) && one >= (strengths[i + 1] ?? 2));
  expect(peaks.length).toBe(2);
  expect(new Set(times.map((time) => pulseStrength(time, true)))).toEqual(new Set([1]));
});

test("a container without arrays tells of a process of which nothing is known yet", () => {
  const graph = new LiveGraph();
  const change = graph.apply(makeFrame(null, [], -1, 1));
  expect(change.isWhole).toBe(true);
  expect(buildStructure(graph).blocks.count).toBe(0);
  expect(() => new Container(new ArrayBuffer(3))).toThrow(/no container/);
});
