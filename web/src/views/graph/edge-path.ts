// The way of an edge on the screen, as the shader draws it (shaders.ts): on a cylinder along its surface, else bent a little
// to the left, so that both directions between two nodes are seen. Pure.
import { type Frame, projectPoint } from "../../base/projection.ts";
import { round } from "../../base/shapes.ts";

/** Pieces of a curve on a cylinder. */
const PIECES = 10;

/** The edge as the data of an SVG path; null where an end is behind the eye. `radius` is the cylinder's, or 0. */
export function edgePath(
  matrix: Float32Array,
  frame: Frame,
  positions: Float32Array,
  source: number,
  target: number,
  radius: number,
): { path: string; span: number } | null {
  const [a, b] = [new Float64Array(3), new Float64Array(3)];
  projectPoint(matrix, frame, positions, source, a);
  projectPoint(matrix, frame, positions, target, b);
  if (a[2] <= 0 || b[2] <= 0) {
    return null;
  }
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const span = Math.hypot(dx, dy);
  const start = `M${round(a[0])} ${round(a[1])}`;
  if (radius <= 0) {
    const bend = (2 * Math.min(span * 0.1, 40)) / Math.max(span, 1e-3);
    const [x, y] = [(a[0] + b[0]) / 2 + dy * bend, (a[1] + b[1]) / 2 - dx * bend];
    return { path: `${start}Q${round(x)} ${round(y)} ${round(b[0])} ${round(b[1])}`, span };
  }
  const points = new Float32Array(3 * (PIECES + 1));
  for (let i = 0; i <= PIECES; i++) {
    placeOnCylinder(positions, source, target, radius, i / PIECES, points, 3 * i);
  }
  const at = new Float64Array(3);
  let path = start;
  for (let i = 1; i <= PIECES; i++) {
    projectPoint(matrix, frame, points, i, at);
    path += `L${round(at[0])} ${round(at[1])}`;
  }
  return { path, span };
}

function placeOnCylinder(
  positions: Float32Array,
  source: number,
  target: number,
  radius: number,
  t: number,
  found: Float32Array,
  to: number,
): void {
  const [ax, ay, az] = positions.subarray(3 * source, 3 * source + 3);
  const [bx, by, bz] = positions.subarray(3 * target, 3 * target + 3);
  const [angle, out] = [Math.atan2(ax, az), Math.hypot(ax, az)];
  let turn = Math.atan2(bx, bz) - angle;
  turn -= 2 * Math.PI * Math.floor((turn + Math.PI) / (2 * Math.PI));
  const hill = Math.sin(Math.PI * t);
  const at = angle + turn * t + hill * 0.05 * Math.min(Math.abs(by - ay) / Math.max(radius, 1e-6), 1.5);
  const away = out + (Math.hypot(bx, bz) - out) * t + hill * radius * 0.05 * (Math.abs(turn) / Math.PI);
  found[to] = away * Math.sin(at);
  found[to + 1] = ay + (by - ay) * t;
  found[to + 2] = away * Math.cos(at);
}
