// The cylinder: angle by call depth, down by time of discovery, each function a strip of its layered rows. No function lies
// above one that leads to it, unless they call each other. In two dimensions: the surface, unrolled.
import { makeStrips, stripRadius } from "./block-rows.ts";
import { orderByCalls } from "./call-order.ts";
import { emptyResult, type LayoutInput, type LayoutResult } from "./layout.ts";
import { packStrips, STRIP_GAP } from "./strip-packing.ts";

/** Height by circumference: about twice as high as it is wide, neither a plate nor a needle. */
const SHAPE = [1.5 / Math.PI, 1.9 / Math.PI, 2.5 / Math.PI] as const;
const LEAST_CIRCUMFERENCE = 12;
/** Depths with few functions share a sector, until it has this share of the circumference. */
const LEAST_SECTOR = 0.03;
/** Columns without functions between the deepest calls and the first. */
const SEAM = 2;

export function layOutCylinder(input: LayoutInput): LayoutResult {
  const { nFunctions, depth, firstBlock, hasBlocks } = input;
  const result = emptyResult(input);
  const strips = makeStrips(input);
  const { order } = orderByCalls(nFunctions, input.linkSource, input.linkTarget);
  let deepest = 0;
  for (let f = 0; f < nFunctions; f++) {
    deepest = Math.max(deepest, depth[f]);
  }
  const packed = packStrips({
    strips,
    order,
    groupOf: depth,
    nGroups: deepest + 1,
    leastSector: LEAST_SECTOR,
    sectorGap: 0,
    leastSectorGap: 0,
    isLevel: true,
    leastColumns: LEAST_CIRCUMFERENCE,
    shape: SHAPE,
  });
  const circumference = packed.columns + SEAM;
  const radius = input.dimensions === 3 ? circumference / (2 * Math.PI) : 0;
  const put = (into: Float32Array, index: number, across: number, down: number) => {
    const x = across - circumference / 2;
    into[3 * index] = radius > 0 ? radius * Math.sin(x / radius) : x;
    into[3 * index + 1] = packed.height / 2 - down;
    into[3 * index + 2] = radius > 0 ? radius * Math.cos(x / radius) : 0;
  };
  for (let i = 0; i < nFunctions; i++) {
    const f = order[i];
    const middle = packed.left[i] + (strips.width[f] + STRIP_GAP) / 2;
    const top = packed.top[i];
    put(result.functions, f, middle, top + strips.height[f] / 2);
    result.radii[f] = stripRadius(strips, f, hasBlocks);
    if (hasBlocks) {
      for (let block = firstBlock[f]; block < firstBlock[f + 1]; block++) {
        put(result.blocks, block, middle + strips.x[block], top + strips.y[block]);
      }
    }
  }
  return { ...result, cylinderRadius: radius };
}
