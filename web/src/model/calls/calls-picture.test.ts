import fc from "fast-check";
import { expect, test } from "vitest";
import { anyCharacter } from "../../base/properties.test-support.ts";
import type { CallChart, Touch } from "../../api/calls.ts";
import { type Shape, shapesToSvg } from "../../base/shapes.ts";
import { type CallsTheme, drawCalls, type SeenCalls } from "./calls-picture.ts";
import { layoutTouches } from "./touch-graph.ts";

const THEME: CallsTheme = {
  ground: "#000001",
  panel: "#000002",
  line: "#000003",
  text: "#000004",
  quiet: "#000005",
  accent: "#000006",
  picked: "#000007",
  straight: "#000008",
};
const BARS = { width: 600, height: 80 };

const CHART: CallChart = {
  from: 0,
  to: 4000,
  bins: 4,
  names: ["read", "<b>", "others"],
  others: 3,
  counts: Uint32Array.from([2, 0, 1, 0, 0, 0, 3, 0, 1, 0, 0, 0]),
};
const NOTHING: SeenCalls = { chart: null, by: "name", range: null, touches: null, entity: null };

const draw = (seen: Partial<SeenCalls>) => drawCalls({ ...NOTHING, ...seen }, BARS, THEME, (text) => 7 * text.length);

const ofKind = <K extends Shape["kind"]>(shapes: readonly Shape[], kind: K, name?: string) =>
  shapes.filter((one): one is Shape & { kind: K } => one.kind === kind && one.told?.class === name);

function touch(process: number, entity: number, calls: number): Touch {
  const moved = { bytes_read: 0, bytes_written: 0 };
  return { process, entity, kind: "file", name: `/f${entity}`, calls, roles: [["read", calls]], ...moved };
}

test("a bar for each series and bin with calls, on top of one another", () => {
  const { shapes, width } = draw({ chart: CHART });
  const bars = ofKind(shapes, "box", "bar");
  expect(bars.map(({ told }) => told!.title)).toEqual([
    "read\n2 calls, 0 ns to 1.00 µs",
    "read\n1 call, 2.00 µs to 3.00 µs",
    "<b>\n3 calls, 2.00 µs to 3.00 µs",
    "3 others\n1 call, 0 ns to 1.00 µs",
  ]);
  const unit = BARS.height / 4;
  expect(bars.map(({ height }) => height)).toEqual([2 * unit, unit, 3 * unit, unit]);
  expect(bars.map(({ x, width: wide }) => [x - 10, wide])).toEqual([
    [0, 150],
    [300, 150],
    [300, 150],
    [0, 150],
  ]);
  const floor = bars[0].y + bars[0].height;
  expect(bars[1].y + bars[1].height).toBe(floor);
  expect(bars[2].y + bars[2].height).toBe(bars[1].y);
  expect(bars[3].y + bars[3].height).toBe(bars[0].y);
  expect(width).toBe(620);
  const texts = ofKind(shapes, "text").map(({ text }) => text);
  expect(texts).toEqual([
    "Calls over time by name",
    ...["read", "3", "<b>", "3", "3 others", "1"],
    ...["0 ns", "at most 4 in a bar", "4.00 µs"],
  ]);
});

test("the stretch of time that is chosen is marked", () => {
  const marked = draw({ chart: CHART, range: [1000, 3000] }).shapes.find(
    (one) => one.kind === "box" && one.fill === THEME.picked,
  );
  expect(marked).toMatchObject({ x: 160, width: 300, height: BARS.height });
  expect(draw({ chart: CHART }).shapes.some((one) => "fill" in one && one.fill === THEME.picked)).toBe(false);
});

test("a line for each pair, that of the chosen entity in front, and a name for each end", () => {
  const touches = layoutTouches([touch(0, 7, 9), touch(0, 8, 1), touch(1, 8, 2)], (process) => `p${process}`, 9);
  const { shapes, width, height } = draw({ touches, entity: 7 });
  const lines = ofKind(shapes, "curve", "touch");
  expect(lines.map(({ told, stroke }) => [told!.title, stroke])).toEqual([
    ["p0 → /f8\n1 call: read 1", THEME.straight],
    ["p1 → /f8\n2 calls: read 2", THEME.straight],
    ["p0 → /f7\n9 calls: read 9", THEME.accent],
  ]);
  expect(ofKind(shapes, "text", "process").map(({ told }) => told!.title)).toEqual([
    "p0\nprocess, 10 calls",
    "p1\nprocess, 2 calls",
  ]);
  expect(ofKind(shapes, "text", "entity").map(({ text, told }) => [text, told!.title])).toEqual([
    ["/f7", "/f7\nfile, 9 calls"],
    ["/f8", "/f8\nfile, 3 calls"],
  ]);
  expect([width, height]).toEqual([660, touches.height + 20]);
  // Below the chart, where there is one.
  const both = draw({ touches, chart: CHART });
  const bottom = Math.max(...ofKind(both.shapes, "box", "bar").map(({ y, height: high }) => y + high));
  expect(Math.min(...ofKind(both.shapes, "text", "process").map(({ y }) => y))).toBeGreaterThan(bottom);
  expect(both.height).toBeGreaterThan(bottom + touches.height);
});

test("all that is drawn lies in the picture, and no name is markup in its SVG", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: anyCharacter, maxLength: 60 }), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 40, max: 900 }),
      (names, wide) => {
        const chart = { ...CHART, bins: 2, names, others: 0, counts: Uint32Array.from(names.flatMap(() => [1, 0])) };
        const touches = layoutTouches(
          names.map((name, index) => ({ ...touch(0, index, 1), name })),
          () => names[0],
          9,
        );
        const seen = { ...NOTHING, chart, touches };
        const { width, height, shapes } = drawCalls(seen, { width: wide, height: 50 }, THEME, (text) => text.length);
        for (const shape of shapes) {
          if (shape.kind === "box") {
            expect([shape.x >= 0, shape.y >= 0]).toEqual([true, true]);
            expect(shape.y + shape.height).toBeLessThanOrEqual(height);
          } else if (shape.kind === "text") {
            expect(shape.y).toBeLessThan(height);
            expect(shape.x).toBeLessThanOrEqual(width);
          }
        }
        const svg = shapesToSvg(shapes, "calls");
        expect(new Set([...svg.matchAll(/<(\/?\w+)/g)].map(([, name]) => name.replace("/", "")))).toEqual(
          new Set(["text", "rect", "path", "title"]),
        );
      },
    ),
  );
});
