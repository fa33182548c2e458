// Where the cursor goes: steps, frames of playing, positions and times. Pure.
import type { Frames, Marks } from "../api/timeline.ts";

/** Frames that are shown in a second, at most. */
export const FRAME_RATE = 30;
export const SLOWEST = 1;
export const FASTEST = 1e7;

/** How playing at `speed` blocks a second goes on: `stride` blocks a frame, `rate` frames a second. */
export function pace(speed: number): { stride: number; rate: number } {
  const stride = Math.max(Math.round(speed / FRAME_RATE), 1);
  return { stride, rate: Math.min(speed / stride, FRAME_RATE) };
}

/** The speed at `share` (0 to 1) of a scale of logarithms. */
export function speedAt(share: number): number {
  return Math.round(SLOWEST * (FASTEST / SLOWEST) ** Math.min(Math.max(share, 0), 1));
}

export function shareOf(speed: number): number {
  return Math.log(Math.max(speed, SLOWEST) / SLOWEST) / Math.log(FASTEST / SLOWEST);
}

/** A step forth or back; a gap that begins at `position` is one step, and inside of one the server settles at its start. */
export function stepFrom(
  position: number,
  direction: 1 | -1,
  length: number,
  gap: { start: number; end: number } | null,
): number {
  if (direction > 0 && gap?.start === position) {
    return Math.min(gap.end, length);
  }
  return Math.min(Math.max(position + direction, 0), length);
}

/** What to ask for to play on from `position`: frames that begin behind it, or that end in front of it. */
export function nextFrames(
  position: number,
  direction: 1 | -1,
  stride: number,
  most: number,
  length: number,
): { start: number; stride: number; frames: number } | null {
  if (direction > 0) {
    const frames = Math.min(most, Math.ceil((length - position) / stride));
    return frames > 0 ? { start: Math.min(position + stride, length), stride, frames } : null;
  }
  const frames = Math.min(most, Math.ceil(position / stride));
  if (frames <= 0) {
    return null;
  }
  // The last step back may be a shorter one, to the very start.
  return frames * stride > position && frames > 1
    ? { start: position - (frames - 1) * stride, stride, frames: frames - 1 }
    : { start: Math.max(position - frames * stride, 0), stride, frames };
}

export interface Frame {
  position: number;
  recent: Uint32Array;
}

/** Frames in the order in which they are shown, and only those that lead on from `position`. */
export function orderFrames(found: Frames, position: number, direction: 1 | -1): Frame[] {
  const frames: Frame[] = [];
  for (let i = 0; i < found.position.length; i++) {
    const recent = found.block.subarray(i > 0 ? found.blockEnd[i - 1] : 0, found.blockEnd[i]);
    frames.push({ position: found.position[i], recent });
  }
  if (direction < 0) {
    frames.reverse();
  }
  return frames.filter((frame) => (frame.position - position) * direction > 0);
}

/** The value at `at` between marks (rising `x`, with `y`); that of the nearest end outside of them. */
export function interpolate(x: Float64Array, y: Float64Array, at: number): number {
  const n = x.length;
  if (n === 0) {
    return 0;
  }
  if (at <= x[0]) {
    return y[0];
  }
  if (at >= x[n - 1]) {
    return y[n - 1];
  }
  let low = 0;
  let high = n - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] <= at) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return y[low] + ((at - x[low]) / (x[high] - x[low])) * (y[high] - y[low]);
}

export function timeAt(marks: Marks, position: number): number {
  return interpolate(marks.position, marks.time, position);
}

export function positionAt(marks: Marks, time: number): number {
  return Math.round(interpolate(marks.time, marks.position, time));
}

/** Whether marks reach over a position: of a time span there are only those in it. */
export function reachOver(marks: Marks, position: number): boolean {
  const n = marks.position.length;
  return n > 0 && position >= marks.position[0] && position <= marks.position[n - 1];
}
