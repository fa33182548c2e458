// How strong edges are drawn: the less, the more of the picture they would cover. By their number and by their length on
// the screen, of a sample. Pure.
import { type Eye, type Frame, projectionMatrix, projectPoint } from "../../base/projection.ts";

/** So many edges stand for all. */
const SAMPLE = 600;
/** Up to this share of the picture edges may cover at their full strength. */
const FREE_SHARE = 0.25;
/** How quickly they fade beyond it, and bounds of the strength. */
const FADING = 0.55;
const STRENGTH = { least: 0.12, most: 1.4 };
/** Longer edges are fainter, so they cover less: in pixels, as the shader has it. */
const SHORT_PX = 70;
const LENGTH_FADING = 0.6;

/** Some edges of a list, evenly chosen, and how many the list has. */
export interface EdgeSample {
  ends: Uint32Array;
  count: number;
}

/** `ends` has two nodes by edge. */
export function sampleEdges(ends: Uint32Array): EdgeSample {
  const count = ends.length / 2;
  const chosen = Math.min(count, SAMPLE);
  const found = new Uint32Array(2 * chosen);
  for (let i = 0; i < chosen; i++) {
    const edge = Math.floor((i * count) / chosen);
    found[2 * i] = ends[2 * edge];
    found[2 * i + 1] = ends[2 * edge + 1];
  }
  return { ends: found, count };
}

/** What all edges' opacity is to be multiplied with, seen so. `positions` are x, y, z by node. */
export function edgeStrength({ ends, count }: EdgeSample, positions: Float32Array, eye: Eye, frame: Frame): number {
  const matrix = projectionMatrix(eye, frame, 1);
  const [a, b] = [new Float64Array(3), new Float64Array(3)];
  let sum = 0;
  for (let i = 0; i < ends.length; i += 2) {
    projectPoint(matrix, frame, positions, ends[i], a);
    projectPoint(matrix, frame, positions, ends[i + 1], b);
    if (a[2] > 0 && b[2] > 0) {
      const span = Math.hypot(b[0] - a[0], b[1] - a[1]);
      sum += span * shareInside(a, b, frame) * Math.min((SHORT_PX / Math.max(span, 1)) ** LENGTH_FADING, 1);
    }
  }
  const covered = ((sum / Math.max(ends.length / 2, 1)) * count) / Math.max(frame.width * frame.height, 1);
  const strength = (FREE_SHARE / Math.max(covered, 1e-9)) ** FADING;
  return Math.min(Math.max(strength, STRENGTH.least), STRENGTH.most);
}

/** The share of the line from `a` to `b` that is inside the frame, 0 to 1. */
function shareInside(a: Float64Array, b: Float64Array, frame: Frame): number {
  let [from, to] = [0, 1];
  for (const [start, end, most] of [
    [a[0], b[0], frame.width],
    [a[1], b[1], frame.height],
  ]) {
    const way = end - start;
    if (way === 0) {
      if (start < 0 || start > most) {
        return 0;
      }
    } else {
      const [first, last] = [-start / way, (most - start) / way];
      from = Math.max(from, Math.min(first, last));
      to = Math.min(to, Math.max(first, last));
    }
  }
  return Math.max(to - from, 0);
}
