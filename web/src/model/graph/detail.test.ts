import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fitEye, projectionMatrix, projectPoint } from "../../base/projection.ts";
import type { LayoutResult } from "../layout/layout.ts";
import { EMPTY_FILTER } from "../view-state.ts";
import { edgesAt, listEdges, listNodes, nodeOfSelection, nodePlaces, openFunctions } from "./detail.ts";
import { colorEdges } from "./edge-colors.ts";
import { foldCounts, foldGraph } from "./folding.ts";
import { pickNode, shareInFrame } from "./picking.ts";
import { sampleGraph } from "./sample-graph.ts";

const FRAME = { width: 800, height: 600 };
const PADDING = { top: 20, right: 20, bottom: 20, left: 20 };

function sample() {
  const { functions, blocks, counts } = sampleGraph();
  const graph = foldGraph(functions, blocks, EMPTY_FILTER);
  const drawnCounts = foldCounts(graph, counts);
  const result: LayoutResult = {
    layout: "force",
    dimensions: 2,
    blocks: Float32Array.from({ length: 24 }, (_, i) => (i % 3 === 0 ? i / 3 : 0)),
    functions: Float32Array.from([1.5, 0, 0, 4, 0, 0, 5.5, 0, 0, 7, 0, 0]),
    radii: Float32Array.from([2, 0.5, 1, 0.5]),
    cylinderRadius: 0,
  };
  const strong = new Uint8Array(32).fill(255);
  return {
    graph,
    places: nodePlaces(graph, result),
    edges: colorEdges(graph.edges, drawnCounts.edges!, "heat", false, strong, true),
    links: colorEdges(graph.links, drawnCounts.links, "heat", true, strong, true),
  };
}

const pairs = (ends: Uint32Array) =>
  Array.from({ length: ends.length / 2 }, (_, i) => `${ends[2 * i]}>${ends[2 * i + 1]}`);

describe("level of detail", () => {
  test("from afar functions, from near their blocks; what is selected is always open", () => {
    const { places } = sample();
    const eye = { yaw: 0, pitch: 0, distance: 20, target: [4, 0, 0] as const };
    const isOpen = new Uint8Array(4);
    expect(openFunctions(places, eye, FRAME, -1, isOpen)).toBe(true);
    expect([...isOpen]).toEqual([1, 1, 1, 1]);
    openFunctions(places, { ...eye, distance: 4000 }, FRAME, 2, isOpen);
    // A function of one block is that block at any distance.
    expect([...isOpen]).toEqual([0, 1, 1, 1]);
    expect(openFunctions(places, { ...eye, distance: 4000 }, FRAME, 2, isOpen)).toBe(false);
  });

  test("nodes and edges are those of the blocks, or of the functions instead", () => {
    const { graph, edges, links } = sample();
    expect([...listNodes(graph, 8, Uint8Array.from([0, 1, 0, 1]))]).toEqual([8, 4, 10, 7]);
    const closed = listEdges(graph, 8, new Uint8Array(4), edges, links, 100);
    expect(pairs(closed.ends).sort()).toEqual(["10>11", "8>9", "9>10"]);
    const open = listEdges(graph, 8, new Uint8Array(4).fill(1), edges, links, 100);
    expect(open.count).toBe(9);
    const half = listEdges(graph, 8, Uint8Array.from([0, 0, 1, 0]), edges, links, 100);
    expect(pairs(half.ends)).toContain("9>5");
    expect(pairs(half.ends)).toContain("8>9");
    expect(listEdges(graph, 8, new Uint8Array(4).fill(1), edges, links, 3).count).toBe(3);
  });

  test("edges at a node, and the node of what is selected", () => {
    const { graph } = sample();
    const open = new Uint8Array(4).fill(1);
    const at = edgesAt(graph, 8, open, 1);
    expect(pairs(at.out)).toEqual(["1>2", "1>3"]);
    expect(pairs(at.in)).toEqual(["0>1", "2>1"]);
    expect(pairs(edgesAt(graph, 8, new Uint8Array(4), 9).out)).toEqual(["9>10"]);
    // What leads back to where it begins leads away, and is there once.
    const looped = { ...graph, edges: { ...graph.edges, target: Int32Array.from(graph.edges.target) } };
    looped.edges.target[2] = 1;
    const own = edgesAt(looped, 8, open, 1);
    expect([pairs(own.out), [...own.outOf], own.areLinks]).toEqual([["1>1", "1>3"], [2, 4], false]);
    expect(pairs(own.in)).toEqual(["0>1", "2>1"]);
    expect(nodeOfSelection(graph, 8, open, { kind: "block", index: 6 })).toBe(6);
    expect(nodeOfSelection(graph, 8, new Uint8Array(4), { kind: "block", index: 6 })).toBe(10);
    expect(nodeOfSelection(graph, 8, open, { kind: "function", index: 2 })).toBe(5);
    expect(nodeOfSelection(graph, 8, open, { kind: "block", index: 99 })).toBe(-1);
  });
});

describe("picking", () => {
  const size = () => ({ world: 0.5, least: 4, most: 40 });

  test("what is at a node's place is that node, where no other covers it", () => {
    const points = fc.uniqueArray(fc.tuple(fc.integer({ min: -20, max: 20 }), fc.integer({ min: -20, max: 20 })), {
      minLength: 2,
      maxLength: 40,
      selector: (point) => point.join(),
    });
    fc.assert(
      fc.property(points, fc.nat(), (found, seed) => {
        const positions = new Float32Array(found.flatMap(([x, y]) => [x, y, 0]));
        const nodes = Uint32Array.from(found, (_, i) => i);
        const eye = fitEye(positions, 0, 0, FRAME, PADDING);
        expect(shareInFrame(nodes, positions, eye, FRAME)).toBe(1);
        const wanted = seed % found.length;
        const at = [0, 0, 0];
        projectPoint(projectionMatrix(eye, FRAME, 50), FRAME, positions, wanted, at);
        expect(pickNode(nodes, positions, size, eye, FRAME, at[0], at[1])).toBe(wanted);
      }),
    );
  });

  test("of two the nearer to the eye, and nothing where there is nothing", () => {
    const positions = Float32Array.from([0, 0, 0, 0, 0, 5, 9, 0, 0]);
    const eye = { yaw: 0, pitch: 0, distance: 30, target: [0, 0, 0] as const };
    expect(pickNode(Uint32Array.from([0, 1, 2]), positions, size, eye, FRAME, 400, 300)).toBe(1);
    expect(pickNode(Uint32Array.from([0, 2]), positions, size, eye, FRAME, 400, 300)).toBe(0);
    expect(pickNode(Uint32Array.from([0, 1, 2]), positions, size, eye, FRAME, 400, 100)).toBe(-1);
    // What is drawn over all others is what is under the pointer, however far behind it is.
    for (const inFront of [[0], [0, 2]]) {
      expect(pickNode(Uint32Array.from([0, 1, 2]), positions, size, eye, FRAME, 400, 300, new Set(inFront))).toBe(0);
    }
  });
});
