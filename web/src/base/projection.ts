// Where points of space are on the screen: an eye that turns around a target, in perspective. Pure; y points up in space
// and down on the screen.

/** Where the eye is: angles in radians around the target, `distance` from it in units of space. */
export interface Eye {
  yaw: number;
  pitch: number;
  distance: number;
  target: readonly [number, number, number];
}

/** The picture's size in pixels. */
export interface Frame {
  width: number;
  height: number;
}

/** Pixels at the frame's sides that "fit" leaves free. */
export interface Padding {
  top: number;
  right: number;
  bottom: number;
  left: number;
}

/** Cotangent of half the angle of sight, which is 40 degrees from top to bottom. */
export const FOCAL = 1 / Math.tan((20 * Math.PI) / 180);

/** The steepest look up or down: straight from above the picture would flip. */
export const MOST_PITCH = Math.PI / 2 - 0.02;

const LEAST_DISTANCE = 1e-3;
/** The eye comes no nearer than this share of how far points are from the origin: numbers of 32 bits tell no more apart. */
const LEAST_SHARE = 1e-3;

/** The eye's axes in space: to the right, up, and from the target back to the eye. */
export interface Axes {
  right: readonly [number, number, number];
  up: readonly [number, number, number];
  back: readonly [number, number, number];
}

export function axesOf(yaw: number, pitch: number): Axes {
  const [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
  return { right: [cy, 0, -sy], up: [-sy * sp, cp, -cy * sp], back: [sy * cp, sp, cy * cp] };
}

/**
 * From space to clip coordinates, column by column as WebGL takes it. `w` of a point is how far it is in front of the eye,
 * in units of space. `reach` is how far from the target points may be: what depths are told apart depends on it.
 */
export function projectionMatrix(eye: Eye, frame: Frame, reach: number): Float32Array {
  const { right, up, back } = axesOf(eye.yaw, eye.pitch);
  const far = eye.distance + reach;
  const near = Math.max(eye.distance - reach, far / 2000);
  const fx = (FOCAL * frame.height) / Math.max(frame.width, 1);
  const depth = (far + near) / Math.max(far - near, 1e-9);
  const shift = (2 * far * near) / Math.max(far - near, 1e-9);
  const along = (axis: readonly [number, number, number]) =>
    axis[0] * eye.target[0] + axis[1] * eye.target[1] + axis[2] * eye.target[2];
  const w = eye.distance + along(back);
  const columns = [0, 1, 2].map((i) => [fx * right[i], FOCAL * up[i], -depth * back[i], -back[i]]);
  return new Float32Array([...columns.flat(), -fx * along(right), -FOCAL * along(up), depth * w - shift, w]);
}

/** How many pixels one unit of space is wide at depth 1. At depth w it is this by w. */
export function pixelsPerUnit(frame: Frame): number {
  return (FOCAL * frame.height) / 2;
}

/** Writes x and y in pixels and the depth of point number `i` of `positions` to `found`; the depth is 0 or less behind the eye. */
export function projectPoint(
  matrix: Float32Array,
  frame: Frame,
  positions: Float32Array,
  i: number,
  found: Float64Array | number[],
): void {
  const x = positions[3 * i];
  const y = positions[3 * i + 1];
  const z = positions[3 * i + 2];
  const w = matrix[3] * x + matrix[7] * y + matrix[11] * z + matrix[15];
  const by = 1 / Math.max(Math.abs(w), 1e-12);
  found[0] = (0.5 + 0.5 * (matrix[0] * x + matrix[4] * y + matrix[8] * z + matrix[12]) * by) * frame.width;
  found[1] = (0.5 - 0.5 * (matrix[1] * x + matrix[5] * y + matrix[9] * z + matrix[13]) * by) * frame.height;
  found[2] = w;
}

/** The nearest eye with these angles that has every one of the points (x, y, z one after the other) within the padding. */
export function fitEye(points: Float32Array, yaw: number, pitch: number, frame: Frame, padding: Padding): Eye {
  const { right, up, back } = axesOf(yaw, pitch);
  const fx = (FOCAL * frame.height) / Math.max(frame.width, 1);
  // The free rectangle, in the frame's own measure from -1 to 1. In a frame too small for padding it is in the middle.
  const free = (low: number, high: number, size: number): [number, number] => {
    const room = size - low - high;
    return room < size / 4 ? [-0.8, 0.8] : [(2 * low) / size - 1, 1 - (2 * high) / size];
  };
  const [left, rightmost] = free(padding.left, padding.right, frame.width);
  const [bottom, top] = free(padding.bottom, padding.top, frame.height);
  // Each side of the frame is a plane that the point farthest out touches; the eye's x and its depth are bound by it.
  const most = [-Infinity, -Infinity, -Infinity, -Infinity];
  let nearest = -Infinity;
  let farthest = Infinity;
  let outermost = 0;
  for (let i = 0; i < points.length; i += 3) {
    const [px, py, pz] = [points[i], points[i + 1], points[i + 2]];
    const x = (right[0] * px + right[1] * py + right[2] * pz) * fx;
    const y = (up[0] * px + up[1] * py + up[2] * pz) * FOCAL;
    const z = back[0] * px + back[1] * py + back[2] * pz;
    most[0] = Math.max(most[0], x + rightmost * z);
    most[1] = Math.max(most[1], -x - left * z);
    most[2] = Math.max(most[2], y + top * z);
    most[3] = Math.max(most[3], -y - bottom * z);
    outermost = Math.max(outermost, Math.abs(px), Math.abs(py), Math.abs(pz));
    nearest = Math.max(nearest, z);
    farthest = Math.min(farthest, z);
  }
  if (nearest === -Infinity) {
    return { yaw, pitch, distance: 10, target: [0, 0, 0] };
  }
  const middle = (nearest + farthest) / 2;
  const reach = Math.max(most[0] + most[1], most[2] + most[3], nearest - farthest);
  const room = reach > 1e-6 ? (nearest - farthest) * 0.05 : 10;
  const depth = Math.max(
    (most[0] + most[1]) / (rightmost - left),
    (most[2] + most[3]) / (top - bottom),
    nearest + Math.max(room, LEAST_DISTANCE, LEAST_SHARE * outermost),
  );
  const x = (most[0] - rightmost * depth - left * depth - most[1]) / 2 / fx;
  const y = (most[2] - top * depth - bottom * depth - most[3]) / 2 / FOCAL;
  const target = [0, 1, 2].map((i) => x * right[i] + y * up[i] + middle * back[i]);
  return { yaw, pitch, distance: depth - middle, target: [target[0], target[1], target[2]] };
}

/** The eye moved so that what is at the target's depth goes with a pointer that moved by `dx`, `dy` pixels. */
export function panEye(eye: Eye, frame: Frame, dx: number, dy: number): Eye {
  const { right, up } = axesOf(eye.yaw, eye.pitch);
  const unit = eye.distance / pixelsPerUnit(frame);
  const target = [0, 1, 2].map((i) => eye.target[i] - right[i] * dx * unit + up[i] * dy * unit);
  return { ...eye, target: [target[0], target[1], target[2]] };
}

/** The eye turned around its target. */
export function orbitEye(eye: Eye, yaw: number, pitch: number): Eye {
  return {
    ...eye,
    yaw: (eye.yaw + yaw) % (2 * Math.PI),
    pitch: Math.min(Math.max(eye.pitch + pitch, -MOST_PITCH), MOST_PITCH),
  };
}

/** The eye nearer by `factor` (below 1) or farther, such that what is under the pixel at the target's depth stays there. */
export function zoomEye(eye: Eye, frame: Frame, factor: number, x: number, y: number): Eye {
  const distance = Math.max(eye.distance * factor, LEAST_DISTANCE);
  const kept = 1 - distance / eye.distance;
  const moved = panEye(eye, frame, (frame.width / 2 - x) * kept, (frame.height / 2 - y) * kept);
  return { ...moved, distance };
}

/** Where between two eyes one is at `t` from 0 to 1. */
export function mixEyes(from: Eye, to: Eye, t: number): Eye {
  const mix = (a: number, b: number) => a + (b - a) * t;
  const turn = Math.atan2(Math.sin(to.yaw - from.yaw), Math.cos(to.yaw - from.yaw));
  return {
    yaw: from.yaw + turn * t,
    pitch: mix(from.pitch, to.pitch),
    distance: Math.exp(mix(Math.log(from.distance), Math.log(to.distance))),
    target: [mix(from.target[0], to.target[0]), mix(from.target[1], to.target[1]), mix(from.target[2], to.target[2])],
  };
}
