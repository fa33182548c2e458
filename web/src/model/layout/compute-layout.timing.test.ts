// How long layouts of large programs take: by `make test-timing`, when nothing else runs.
import { describe, expect, test } from "vitest";
import { computeLayout } from "./compute-layout.ts";
import type { LayoutInput } from "./layout.ts";
import { makeProgram, withoutBlocks } from "./sample-graphs.ts";

/** Milliseconds of the processor's time: other work on the machine counts little. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

describe("time, with room for slow machines", () => {
  // Five times what it may take.
  const cases: [string, () => LayoutInput, number][] = [
    ["cylinder of 10^5 blocks", () => makeProgram(100_000), 2_000],
    ["cylinder of 10^4 functions", () => withoutBlocks(makeProgram(100_000)), 1_500],
    ["circle of 10^5 blocks", () => ({ ...makeProgram(100_000), layout: "circle", dimensions: 2 }), 5_000],
    ["force on 5,000 functions", () => ({ ...makeProgram(50_000), layout: "force" }), 7_500],
    ["force on 10^4 blocks", () => ({ ...makeProgram(10_000), layout: "blocks" }), 10_000],
  ];
  test.each(cases)(
    "%s",
    (_, make, mostMs) => {
      const input = make();
      let first = Infinity;
      const start = cpuMs();
      computeLayout(input, () => {
        first = Math.min(first, cpuMs() - start);
      });
      expect(cpuMs() - start).toBeLessThan(mostMs);
      if (input.layout === "force" || input.layout === "blocks") {
        expect(first).toBeLessThan(1_500);
      }
    },
    60_000,
  );
});
