import { expect, test } from "vitest";
import { KeptLayouts } from "./kept-layouts.ts";
import type { LayoutResult } from "./layout.ts";

function result(layout: LayoutResult["layout"], dimensions: 2 | 3, megabytes = 0): LayoutResult {
  const empty = new Float32Array(0);
  const blocks = new Float32Array((megabytes * 2 ** 20) / 4);
  return { layout, dimensions, blocks, functions: empty, radii: empty, cylinderRadius: 0 };
}

test("what was kept is found, of its own graph, layout and dimensions only", () => {
  const kept = new KeptLayouts();
  const [graph, other] = [{}, {}];
  const force = result("force", 3);
  expect(kept.find(graph, "force", 3)).toBeNull();
  kept.keep(graph, force);
  expect(kept.find(graph, "force", 3)).toBe(force);
  expect(kept.find(graph, "force", 2)).toBeNull();
  expect(kept.find(graph, "circle", 3)).toBeNull();
  expect(kept.find(other, "force", 3)).toBeNull();
  kept.keep(other, result("circle", 3));
  expect(kept.find(graph, "force", 3)).toBeNull();
});

test("of more than four the one that was used longest ago goes", () => {
  const kept = new KeptLayouts();
  const graph = {};
  for (const layout of ["cylinder", "force", "blocks", "circle"] as const) {
    kept.keep(graph, result(layout, 3));
  }
  kept.find(graph, "cylinder", 3);
  kept.keep(graph, result("circle", 2));
  expect(kept.find(graph, "force", 3)).toBeNull();
  expect(kept.find(graph, "cylinder", 3)).not.toBeNull();
  expect(kept.find(graph, "circle", 2)).not.toBeNull();
});

test("large ones are fewer, and one that alone is too large is not kept", () => {
  const kept = new KeptLayouts();
  const graph = {};
  kept.keep(graph, result("cylinder", 3, 20));
  kept.keep(graph, result("force", 3, 20));
  expect(kept.find(graph, "cylinder", 3)).toBeNull();
  expect(kept.find(graph, "force", 3)).not.toBeNull();
  kept.keep(graph, result("blocks", 3, 40));
  expect(kept.find(graph, "blocks", 3)).toBeNull();
});
