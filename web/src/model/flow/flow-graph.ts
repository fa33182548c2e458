// What the layout of a function's control flow is given and what it gives. Pure data, so that a worker can make it.

/** Boxes by index, with their sizes; edges between them by index. Lengths are in units of the picture, pixels at zoom 1. */
export interface FlowInput {
  widths: Float64Array;
  heights: Float64Array;
  /** The box that goes on top. */
  entry: number;
  source: Int32Array;
  target: Int32Array;
  /** Edges of one style that share an end share lines; those of different styles never do. */
  style: Uint8Array;
}

/** Where everything is: y points down, nothing is left of or above 0. */
export interface FlowLayout {
  width: number;
  height: number;
  /** Left and upper side of each box. */
  x: Float64Array;
  y: Float64Array;
  /** Corners of edge e: x and y, from points[2 * first[e]] up to points[2 * first[e + 1]]; from its source's lower side to
   * its target's upper side, each part upright or level. */
  first: Uint32Array;
  points: Float64Array;
}

/** Distances in the picture. */
export const SPACE = {
  /** Between boxes side by side. */
  box: 28,
  /** Between lines, or a line and a box, side by side. */
  lane: 12,
  /** Between level lines. */
  track: 8,
  /** Between a box and the nearest level line. */
  gap: 16,
  /** Around everything. */
  margin: 24,
} as const;
