// Which node is under the pointer, and how many are in the frame. Pure.
import { type Eye, type Frame, pixelsPerUnit, projectionMatrix, projectPoint } from "../../base/projection.ts";

/** How large a node is on the screen: `world` in units of space, bounded in pixels (diameters). */
export interface NodeSize {
  world: number;
  least: number;
  most: number;
}

/** How far beside a node a click still means it, in pixels. */
const SLACK_PX = 4;

const NONE: ReadonlySet<number> = new Set();

/** The diameter in pixels of a node of this size at a depth. */
export function nodePixels(size: NodeSize, pixels: number, depth: number): number {
  return Math.min(Math.max((size.world * pixels) / depth, size.least), size.most);
}

/**
 * The node at a pixel, -1 for none: of those that cover it the nearest to the eye, those `inFront` before all others, as they
 * are drawn; else the one whose rim is nearest, within a few pixels.
 */
export function pickNode(
  nodes: Uint32Array,
  positions: Float32Array,
  sizeOf: (node: number) => NodeSize,
  eye: Eye,
  frame: Frame,
  x: number,
  y: number,
  inFront: ReadonlySet<number> = NONE,
): number {
  const matrix = projectionMatrix(eye, frame, 1);
  const pixels = pixelsPerUnit(frame);
  const at = [0, 0, 0];
  let [covering, coveringDepth, coveringIsInFront] = [-1, Infinity, false];
  let [beside, besideGap] = [-1, SLACK_PX];
  for (const node of nodes) {
    projectPoint(matrix, frame, positions, node, at);
    const depth = at[2];
    if (depth <= 0 || Math.abs(at[0] - x) > 200 || Math.abs(at[1] - y) > 200) {
      continue;
    }
    const gap = Math.hypot(at[0] - x, at[1] - y) - nodePixels(sizeOf(node), pixels, depth) / 2;
    if (gap <= 0) {
      const isInFront = inFront.has(node);
      if (isInFront === coveringIsInFront ? depth < coveringDepth : isInFront) {
        [covering, coveringDepth, coveringIsInFront] = [node, depth, isInFront];
      }
    } else if (gap < besideGap) {
      [beside, besideGap] = [node, gap];
    }
  }
  return covering >= 0 ? covering : beside;
}

/** The share of the nodes whose middle is inside the frame, 0 to 1. */
export function shareInFrame(nodes: Uint32Array, positions: Float32Array, eye: Eye, frame: Frame): number {
  const matrix = projectionMatrix(eye, frame, 1);
  const at = [0, 0, 0];
  let inside = 0;
  for (const node of nodes) {
    projectPoint(matrix, frame, positions, node, at);
    if (at[2] > 0 && at[0] >= 0 && at[1] >= 0 && at[0] <= frame.width && at[1] <= frame.height) {
      inside++;
    }
  }
  return nodes.length > 0 ? inside / nodes.length : 1;
}
