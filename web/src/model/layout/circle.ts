// The circle: functions around a middle, by image, within an image by time of discovery, the blocks of each in layered
// rows that go outwards. In three dimensions each image has a ring of its own, in the order in which images were come to.
import { makeStrips, type Strips, stripRadius } from "./block-rows.ts";
import { emptyResult, type LayoutInput, type LayoutResult } from "./layout.ts";
import { packStrips, STRIP_GAP } from "./strip-packing.ts";

/** How far a ring reaches outwards by its inner circumference: by the inner radius about nine tenths. */
const SHAPE = [0.6 / (2 * Math.PI), 0.9 / (2 * Math.PI), 1.3 / (2 * Math.PI)] as const;
const LEAST_CIRCUMFERENCE = 26;
/** Between images, as a share of the circumference. */
const IMAGE_GAP = 0.015;
/** From one ring to the next, by the mean of their outer radii. */
const RING_DISTANCE = 0.4;
const LEAST_RING_DISTANCE = 6;

/** Functions that lie around one middle. */
interface Ring {
  order: Uint32Array;
  left: Float64Array;
  top: Float64Array;
  innerRadius: number;
  outerRadius: number;
}

export function layOutCircle(input: LayoutInput): LayoutResult {
  const strips = makeStrips(input);
  const { groupOf, nGroups } = groupByImage(input);
  const result = emptyResult(input);
  if (input.dimensions === 2) {
    const all = Uint32Array.from({ length: input.nFunctions }, (_, f) => f);
    putRing(input, strips, makeRing(strips, all, groupOf, nGroups), 0, result);
    return result;
  }
  const members: number[][] = Array.from({ length: nGroups }, () => []);
  for (let f = 0; f < input.nFunctions; f++) {
    members[groupOf[f]].push(f);
  }
  const oneGroup = new Uint32Array(input.nFunctions);
  const rings = members.map((functions) => makeRing(strips, Uint32Array.from(functions), oneGroup, 1));
  const heights: number[] = [];
  rings.forEach((ring, i) => {
    const before = i > 0 ? rings[i - 1].outerRadius : ring.outerRadius;
    const distance = Math.max(LEAST_RING_DISTANCE, (RING_DISTANCE * (before + ring.outerRadius)) / 2);
    heights.push(i > 0 ? heights[i - 1] - distance : 0);
  });
  const middle = rings.length > 0 ? heights[heights.length - 1] / 2 : 0;
  rings.forEach((ring, i) => {
    putRing(input, strips, ring, heights[i] - middle, result);
  });
  return result;
}

/** Images get numbers in the order in which they were come to. */
function groupByImage({ nFunctions, image }: LayoutInput): { groupOf: Uint32Array; nGroups: number } {
  const numbers = new Map<number, number>();
  const groupOf = new Uint32Array(nFunctions);
  for (let f = 0; f < nFunctions; f++) {
    let group = numbers.get(image[f]);
    if (group === undefined) {
      group = numbers.size;
      numbers.set(image[f], group);
    }
    groupOf[f] = group;
  }
  return { groupOf, nGroups: numbers.size };
}

function makeRing(strips: Strips, order: Uint32Array, groupOf: Uint32Array, nGroups: number): Ring {
  const { left, top, height, columns } = packStrips({
    strips,
    order,
    groupOf,
    nGroups,
    leastSector: 0,
    sectorGap: nGroups > 1 ? IMAGE_GAP : 0,
    leastSectorGap: nGroups > 1 ? 2 : 0,
    isLevel: false,
    leastColumns: LEAST_CIRCUMFERENCE,
    shape: SHAPE,
  });
  const innerRadius = columns / (2 * Math.PI);
  return { order, left, top, innerRadius, outerRadius: innerRadius + height };
}

/** Places of a ring's functions and blocks: clockwise from above; upright in two dimensions, else lying at height `y`. */
function putRing(input: LayoutInput, strips: Strips, ring: Ring, y: number, result: LayoutResult): void {
  const { firstBlock, hasBlocks, dimensions } = input;
  const { blocks, functions, radii } = result;
  const put = (into: Float32Array, index: number, across: number, out: number) => {
    const angle = across / ring.innerRadius;
    const radius = ring.innerRadius + out;
    into[3 * index] = radius * Math.sin(angle);
    into[3 * index + 1] = dimensions === 2 ? radius * Math.cos(angle) : y;
    into[3 * index + 2] = dimensions === 2 ? 0 : -radius * Math.cos(angle);
  };
  for (let i = 0; i < ring.order.length; i++) {
    const f = ring.order[i];
    const middle = ring.left[i] + (strips.width[f] + STRIP_GAP) / 2;
    put(functions, f, middle, ring.top[i] + strips.height[f] / 2);
    radii[f] = stripRadius(strips, f, hasBlocks);
    if (hasBlocks) {
      for (let block = firstBlock[f]; block < firstBlock[f + 1]; block++) {
        put(blocks, block, middle + strips.x[block], ring.top[i] + strips.y[block]);
        // Further out columns are further apart.
        radii[f] = Math.max(radii[f], distance(blocks, block, functions, f) + 0.5);
      }
    }
  }
}

function distance(a: Float32Array, i: number, b: Float32Array, j: number): number {
  return Math.hypot(a[3 * i] - b[3 * j], a[3 * i + 1] - b[3 * j + 1], a[3 * i + 2] - b[3 * j + 2]);
}
