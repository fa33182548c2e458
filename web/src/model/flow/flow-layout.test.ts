import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../base/properties.test-support.ts";
import { findDispatch } from "./dispatch.ts";
import { type FlowInput, type FlowLayout } from "./flow-graph.ts";
import { layOutFlow } from "./flow-layout.ts";
import { findBackEdges } from "./layers.ts";

interface Drawn {
  sizes: [number, number][];
  edges: [number, number, number][];
}

function toInput({ sizes, edges }: Drawn): FlowInput {
  const n = sizes.length;
  return {
    widths: Float64Array.from(sizes, ([width]) => width),
    heights: Float64Array.from(sizes, ([, height]) => height),
    entry: 0,
    source: Int32Array.from(edges, ([from]) => from % n),
    target: Int32Array.from(edges, ([, to]) => to % n),
    style: Uint8Array.from(edges, ([, , style]) => style),
  };
}

const flows: fc.Arbitrary<FlowInput> = fc
  .record({
    sizes: fc.array(fc.tuple(fc.integer({ min: 60, max: 400 }), fc.integer({ min: 20, max: 300 })), {
      minLength: 1,
      maxLength: 40,
    }),
    edges: fc.array(fc.tuple(fc.nat(1000), fc.nat(1000), fc.nat(4)), { maxLength: 90 }),
  })
  .map(toInput);

/** Code as compilers make it: most blocks lead to the next, some jump near, a few far or back; some end. */
function makeCode(n: number, seed: number): FlowInput {
  let state = seed;
  const random = () => (state = (state * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
  const edges: [number, number, number][] = [];
  for (let block = 0; block < n - 1; block++) {
    if (random() < 0.9) {
      edges.push([block, block + 1, 1]);
    }
    if (random() < 0.6) {
      const reach = random() < 0.9 ? 12 : n;
      edges.push([block, Math.min(Math.max(block + Math.round((random() - 0.3) * reach), 0), n - 1), 0]);
    }
  }
  return toInput({ sizes: Array.from({ length: n }, () => [180 + 200 * random(), 30 + 150 * random()]), edges });
}

function segments(layout: FlowLayout, edge: number): [number, number, number, number][] {
  const found: [number, number, number, number][] = [];
  for (let at = layout.first[edge]; at + 1 < layout.first[edge + 1]; at++) {
    const [x0, y0, x1, y1] = layout.points.slice(2 * at, 2 * at + 4);
    found.push([Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1)]);
  }
  return found;
}

/** All that is wrong with a layout. */
function findFaults(input: FlowInput, layout: FlowLayout): string[] {
  const faults: string[] = [];
  const n = input.widths.length;
  const right = layout.x.map((x, box) => x + input.widths[box]);
  const bottom = layout.y.map((y, box) => y + input.heights[box]);
  for (let a = 0; a < n; a++) {
    if (!(layout.x[a] >= 0 && layout.y[a] >= 0 && right[a] <= layout.width && bottom[a] <= layout.height)) {
      faults.push(`box ${a} is not on the page`);
    }
    for (let b = a + 1; b < n; b++) {
      if (layout.x[a] < right[b] && layout.x[b] < right[a] && layout.y[a] < bottom[b] && layout.y[b] < bottom[a]) {
        faults.push(`boxes ${a} and ${b} overlap`);
      }
    }
  }
  for (let edge = 0; edge < input.source.length; edge++) {
    const [from, to] = [input.source[edge], input.target[edge]];
    const [startX, startY] = layout.points.slice(2 * layout.first[edge]);
    const [endX, endY] = layout.points.slice(2 * layout.first[edge + 1] - 2);
    if (!(startY === bottom[from] && startX > layout.x[from] && startX < right[from])) {
      faults.push(`edge ${edge} does not leave its source below`);
    }
    if (!(endY === layout.y[to] && endX > layout.x[to] && endX < right[to])) {
      faults.push(`edge ${edge} does not come to its target from above`);
    }
    for (const [x0, y0, x1, y1] of segments(layout, edge)) {
      if (x0 !== x1 && y0 !== y1) {
        faults.push(`edge ${edge} is aslant`);
      }
      if (!(x0 >= 0 && y0 >= 0 && x1 <= layout.width && y1 <= layout.height)) {
        faults.push(`edge ${edge} is not on the page`);
      }
      for (let box = 0; box < n; box++) {
        if (x1 > layout.x[box] && x0 < right[box] && y1 > layout.y[box] && y0 < bottom[box]) {
          faults.push(`edge ${edge} leads through box ${box}`);
        }
      }
    }
  }
  return faults;
}

test("boxes never overlap, edges lead from below to above and through no box", () => {
  fc.assert(
    fc.property(flows, (input) => {
      expect(findFaults(input, layOutFlow(input))).toEqual([]);
    }),
    runs(150),
  );
});

test("so too for code as compilers make it", () => {
  for (const seed of [1, 2, 3]) {
    const input = makeCode(120, seed);
    expect(findFaults(input, layOutFlow(input))).toEqual([]);
  }
});

test("lines of different styles, or to different ends, never lie upon each other upright", () => {
  for (const seed of [4, 5]) {
    const input = makeCode(60, seed);
    const layout = layOutFlow(input);
    const all = Array.from(input.source, (_, edge) => segments(layout, edge).map((part) => ({ edge, part }))).flat();
    let overlays = 0;
    for (const one of all) {
      for (const other of all) {
        const [x0, y0, x1, y1] = one.part;
        const [u0, v0, u1, v1] = other.part;
        const isOther =
          one.edge < other.edge &&
          input.source[one.edge] !== input.source[other.edge] &&
          input.target[one.edge] !== input.target[other.edge];
        if (isOther && x0 === x1 && u0 === u1 && x0 === u0 && Math.min(y1, v1) - Math.max(y0, v0) > 1) {
          overlays++;
        }
      }
    }
    expect(overlays).toBe(0);
  }
});

test("the same input gives the same layout", () => {
  fc.assert(
    fc.property(flows, (input) => {
      expect(layOutFlow(input)).toEqual(layOutFlow(input));
    }),
    runs(30),
  );
});

test("without the edges that lead back there is no way around", () => {
  fc.assert(
    fc.property(flows, ({ source, target, widths, entry }) => {
      const isBack = findBackEdges(source, target, widths.length, entry);
      const ways = new Uint32Array(widths.length);
      const kept = [...source.keys()].filter((edge) => !isBack[edge]);
      kept.forEach((edge) => ways[target[edge]]++);
      const open = [...ways.keys()].filter((box) => ways[box] === 0);
      let done = 0;
      for (let box = open.pop(); box !== undefined; box = open.pop()) {
        done++;
        for (const edge of kept) {
          if (source[edge] === box && --ways[target[edge]] === 0) {
            open.push(target[edge]);
          }
        }
      }
      expect(done).toBe(widths.length);
    }),
  );
});

test("a straight line of boxes is one, and what nothing leads to is on the page", () => {
  const input = toInput({ sizes: [[100, 40], [100, 40], [100, 40], [80, 20]], edges: [[0, 1, 3], [1, 2, 3]] }); // prettier-ignore
  const layout = layOutFlow(input);
  expect(layout.first[2]).toBe(4);
  expect(layout.x[0]).toBeCloseTo(layout.x[2]);
  expect(findFaults(input, layout)).toEqual([]);
});

test("300 blocks take less than 200 ms", () => {
  // Of the processor's time: others may be at work on the machine.
  const times = [1, 2, 3, 4, 5].map((seed) => {
    const input = makeCode(300, seed);
    const start = process.cpuUsage();
    layOutFlow(input);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  });
  expect(Math.min(...times)).toBeLessThan(200);
});

/** An interpreter: boxes that are chosen, each of which has a few boxes and then chooses the next one. */
function makeInterpreter(chosen: number, steps: number): FlowInput {
  const edges: [number, number, number][] = [];
  const first = (one: number) => 1 + one * steps;
  for (let one = -1; one < chosen; one++) {
    const last = one < 0 ? 0 : first(one) + steps - 1;
    for (let at = Math.max(last - steps + 1, 1); one >= 0 && at < last; at++) {
      edges.push([at, at + 1, 3]);
    }
    // Some were seen to choose among many, some to go one way only.
    for (let i = 0; i < (one % 3 === 2 ? 1 : 12); i++) {
      edges.push([last, first((one * 7 + i * 5 + chosen) % chosen), 2]);
    }
  }
  return toInput({ sizes: Array.from({ length: 1 + chosen * steps }, () => [200, 60]), edges });
}

test("what an interpreter chooses stands side by side, and its jumps share lines", () => {
  const input = makeInterpreter(41, 3);
  const layout = layOutFlow(input);
  expect(findFaults(input, layout)).toEqual([]);
  // As many rows as boxes one after the other, and some for those for which there is no room beside others.
  expect(new Set(layout.y).size).toBeLessThanOrEqual(1 + 3 * 6);
  const jumps = [...input.source.keys()].filter((edge) => input.style[edge] === 2);
  const uprights = jumps.flatMap((edge) => segments(layout, edge)).filter(([x0, y0, x1, y1]) => x0 === x1 && y1 > y0);
  const boxes = new Set(jumps.flatMap((edge) => [input.source[edge], input.target[edge]])).size;
  const rows = new Set(layout.y).size;
  expect(new Set(uprights.map(([x]) => x)).size).toBeLessThanOrEqual(2 * boxes + 2 * rows);
});

test("a head stands above all that is chosen, also if it was not seen to choose some of it", () => {
  const input = makeInterpreter(41, 3);
  const { source, target, isElsewhere, group } = findDispatch(input.source, input.target, input.style, 124, 0);
  expect(new Set(group)).toEqual(new Set([-1, group.find((of) => of >= 0)]));
  const led = [...source.keys()].filter((edge) => source[edge] === 0 && !isElsewhere[edge]).map((edge) => target[edge]);
  expect(new Set(led).size).toBe(41);
});

test("one box that chooses alone is laid out as any other", () => {
  const edges = Array.from({ length: 12 }, (_, i): [number, number, number] => [0, i + 1, 2]);
  const input = toInput({ sizes: Array.from({ length: 13 }, () => [100, 40]), edges });
  const { group } = findDispatch(input.source, input.target, input.style, 13, 0);
  expect([...group].every((of) => of < 0)).toBe(true);
});
