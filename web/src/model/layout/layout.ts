// What a layout is given and what it gives: places of functions and blocks in space, by index. Pure data, so that a worker
// can make it.
import type { Layout } from "../view-state.ts";

/** The graph as layouts see it; of a process whose blocks are not loaded the edges are empty, and so are its blocks' places. */
export interface LayoutInput {
  layout: Layout;
  dimensions: 2 | 3;
  nFunctions: number;
  nBlocks: number;
  /** Whether blocks are to be placed; else only functions are. */
  hasBlocks: boolean;
  firstBlock: Uint32Array;
  caller: Int32Array;
  depth: Int32Array;
  image: Int32Array;
  linkSource: Uint32Array;
  linkTarget: Uint32Array;
  linkCall: Uint8Array;
  edgeSource: Int32Array;
  edgeTarget: Int32Array;
  edgeKind: Int8Array;
}

/** Positions are x, y, z one after the other; y points up; in two dimensions z is 0. Every number is finite. */
export interface LayoutResult {
  layout: Layout;
  dimensions: 2 | 3;
  /** Of each block, or none if blocks were not to be placed. */
  blocks: Float32Array;
  /** Centres of functions, and how far their blocks reach from there. */
  functions: Float32Array;
  radii: Float32Array;
  /** Radius of the cylinder on whose surface all lies, around the y axis; 0 where there is none. Arcs follow the surface. */
  cylinderRadius: number;
}

/** A result with all places at 0. */
export function emptyResult({ layout, dimensions, nFunctions, nBlocks, hasBlocks }: LayoutInput): LayoutResult {
  return {
    layout,
    dimensions,
    blocks: new Float32Array(hasBlocks ? 3 * nBlocks : 0),
    functions: new Float32Array(3 * nFunctions),
    radii: new Float32Array(nFunctions),
    cylinderRadius: 0,
  };
}
