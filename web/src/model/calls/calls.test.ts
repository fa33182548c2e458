import fc from "fast-check";
import { expect, test } from "vitest";
import type { CallChart, EntityRow, Touch } from "../../api/calls.ts";
import { formatArguments, formatResult } from "./call-text.ts";
import { listEntities, sortKinds } from "./entity-rows.ts";
import { binAt, binStart, stackBars, stretchOf } from "./stacked-bars.ts";
import { layoutTouches } from "./touch-graph.ts";

const charts: fc.Arbitrary<CallChart> = fc
  .record({ from: fc.nat(10 ** 9), span: fc.integer({ min: 1, max: 10 ** 9 }), bins: fc.integer({ min: 1, max: 30 }) })
  .chain(({ from, span, bins }) =>
    fc.array(fc.array(fc.nat(100), { minLength: bins, maxLength: bins }), { maxLength: 5 }).map((series) => ({
      from,
      to: from + Math.max(span, bins),
      bins,
      names: series.map((_, index) => `n${index}`),
      others: 0,
      counts: Uint32Array.from(series.flat()),
    })),
  );

test("bars stand on one another, and all calls are in them", () => {
  fc.assert(
    fc.property(charts, (chart) => {
      const { series, sums, highest } = stackBars(chart);
      const all = chart.counts.reduce((a, b) => a + b, 0);
      expect(sums.reduce((a, b) => a + b, 0)).toBe(all);
      expect(series.reduce((sum, one) => sum + one.calls, 0)).toBe(all);
      expect(highest).toBe(Math.max(1, ...sums));
      const reached = new Array<number>(chart.bins).fill(highest);
      for (const { path } of series) {
        for (const [, bin, top, height] of path.matchAll(/M(\d+) (\d+)h1v(\d+)h-1z/g)) {
          expect(Number(top) + Number(height)).toBe(reached[Number(bin)]);
          reached[Number(bin)] = Number(top);
        }
      }
      expect(reached).toEqual(sums.map((sum) => highest - sum));
    }),
  );
});

test("a stretch takes the bins that it was chosen by", () => {
  fc.assert(
    fc.property(charts, fc.nat(), fc.nat(), (chart, one, other) => {
      const [a, b] = [one % chart.bins, other % chart.bins];
      const [start, end] = stretchOf(chart, a, b);
      expect(start).toBeLessThan(end);
      expect(start).toBeLessThanOrEqual(binStart(chart, Math.min(a, b)));
      expect(end).toBeGreaterThanOrEqual(binStart(chart, Math.max(a, b) + 1));
      expect(end - start).toBeLessThanOrEqual(
        binStart(chart, Math.max(a, b) + 1) - binStart(chart, Math.min(a, b)) + 3,
      );
      expect(stretchOf(chart, b, a)).toEqual([start, end]);
    }),
  );
});

test("each time has its bin", () => {
  const chart = { from: 100, to: 200, bins: 10 };
  expect([0, 100, 109, 110, 199, 200, 999].map((time) => binAt(chart, time))).toEqual([0, 0, 0, 1, 9, 9, 9]);
});

function touch(process: number, entity: number, calls: number): Touch {
  return { process, entity, kind: "file", name: `e${entity}`, calls, roles: [], bytes_read: 0, bytes_written: 0 };
}

test("who did most is on top, and what there is no room for is counted", () => {
  const touches = [touch(1, 10, 5), touch(2, 11, 50), touch(2, 10, 1), touch(1, 12, 1)];
  const graph = layoutTouches(touches, (process) => `p${process}`, 2);
  expect(graph.processes.map((node) => [node.name, node.calls])).toEqual([
    ["p2", 51],
    ["p1", 6],
  ]);
  expect(graph.entities.map((node) => node.id)).toEqual([11, 10]);
  expect(graph.lines.map(({ touch: { calls } }) => calls)).toEqual([5, 50, 1]);
  expect(graph.omitted).toBe(1);
  const [, widest] = graph.lines;
  expect(graph.lines.every((line) => line.width <= widest.width && line.width >= 1)).toBe(true);
  for (const side of [graph.processes, graph.entities]) {
    expect(side.every((node, at) => node.y > (side[at - 1]?.y ?? 0) && node.y < graph.height)).toBe(true);
  }
  expect(layoutTouches([], String, 3)).toMatchObject({ lines: [], height: 0, omitted: 0 });
});

test("entities are listed by kind, known kinds first", () => {
  const entity = (kind: string, name: string) => ({ kind, name }) as EntityRow;
  const rows = [entity("file", "a"), entity("odd", "b"), entity("process", "c"), entity("file", "d")];
  const listed = listEntities({
    source: "recorded",
    total: 9,
    offset: 0,
    kinds: { file: 7, odd: 1, process: 1 },
    rows,
  });
  expect(listed.map((row) => ("entity" in row ? row.entity.name : `${row.heading} ${row.count}`))).toEqual([
    ..."Processes 1,c,Files 7,a,d,odd 1,b".split(","),
  ]);
  expect(sortKinds(["z", "a", "other", "thread"])).toEqual(["thread", "other", "a", "z"]);
});

test("a call in words", () => {
  expect(formatArguments([{ name: "path", value: "0x1", text: "/etc" }, { value: "3" }, {}])).toBe("path=/etc, 3, ?");
  expect(formatArguments([{ text: "x".repeat(1000) }])).toHaveLength(301);
  expect(formatResult({ result: "-1", error: "ENOENT" })).toBe("-1 ENOENT");
  expect(formatResult({ result: null, error: null })).toBe("");
});
