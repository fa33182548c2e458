import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MovedByLayout, MovedNodes, type Offset } from "./moved-nodes.ts";

const N = 6;
const base = (node: number, axis: number) => 100 * node + axis;

function places(moved: MovedNodes): number[] {
  const positions = new Float32Array(3 * N);
  moved.write(Array(N).keys(), base, positions);
  return [...positions];
}

const steps = fc.array(
  fc.record({
    nodes: fc.uniqueArray(fc.nat(N - 1), { maxLength: 3 }),
    by: fc.tuple(fc.integer({ min: -9, max: 9 }), fc.integer({ min: -9, max: 9 }), fc.integer({ min: -9, max: 9 })),
    isRelease: fc.boolean(),
  }),
  { maxLength: 12 },
);

describe("moved nodes", () => {
  test("stay where they were put, until they are released", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const moved = new MovedNodes();
        const offsets = new Map<number, Offset>();
        for (const { nodes, by, isRelease } of all) {
          if (isRelease) {
            expect(moved.release(nodes)).toEqual(nodes.filter((node) => offsets.delete(node)));
          } else {
            moved.move(nodes, by);
            for (const node of nodes) {
              const before = offsets.get(node) ?? [0, 0, 0];
              offsets.set(node, [before[0] + by[0], before[1] + by[1], before[2] + by[2]]);
            }
          }
        }
        const expected = Array.from({ length: 3 * N }, (_, i) => {
          const [node, axis] = [Math.floor(i / 3), i % 3];
          return base(node, axis) + (offsets.get(node)?.[axis] ?? 0);
        });
        expect(places(moved)).toEqual(expected);
        expect(moved.state.value.moved).toBe(offsets.size);
        expect(moved.nodes().sort()).toEqual([...offsets.keys()].sort());
      }),
    );
  });

  test("every step can be taken back, the last first", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const moved = new MovedNodes();
        const seen = [places(moved)];
        for (const { nodes, by, isRelease } of all) {
          if (isRelease) {
            // Releasing what was not moved is no step.
            if (moved.release(nodes).length === 0) {
              continue;
            }
          } else {
            moved.move(nodes, by);
          }
          seen.push(places(moved));
        }
        expect(moved.state.value.steps).toBe(seen.length - 1);
        while (seen.length > 0) {
          expect(places(moved)).toEqual(seen.pop());
          moved.undo();
        }
        expect(moved.undo()).toEqual([]);
        expect(moved.state.value).toEqual({ moved: 0, steps: 0 });
      }),
    );
  });

  test("each layout of a graph has its own; another graph has none", () => {
    const all = new MovedByLayout();
    const [graph, other] = [{}, {}];
    all.of(graph, "force", 2).move([1], [1, 1, 0]);
    expect(all.of(graph, "force", 3).nodes()).toEqual([]);
    expect(all.of(graph, "force", 2).nodes()).toEqual([1]);
    expect(all.of(other, "force", 2).nodes()).toEqual([]);
    expect(all.of(graph, "force", 2).nodes()).toEqual([]);
  });
});
