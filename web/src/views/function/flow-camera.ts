// Which part of a function's picture is seen, and how large. Pure.

/** The point of the picture in the view's upper left corner, and pixels per unit of the picture. */
export interface FlowCamera {
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export const SMALLEST = 0.002;
export const LARGEST = 3;
/** Text can be read from here on. */
const READABLE = 0.8;

/** All of the picture. */
export function fitAll(picture: Size, view: Size): FlowCamera {
  const scale = Math.min(view.width / picture.width, view.height / picture.height, 1);
  return centre({ x: picture.width / 2, y: picture.height / 2 }, Math.max(scale, SMALLEST), view);
}

/** All of it if that can be read; else so that it can be, with `point` in the upper middle. */
export function startAt(point: { x: number; y: number }, picture: Size, view: Size): FlowCamera {
  const all = fitAll(picture, view);
  if (all.scale >= READABLE) {
    return all;
  }
  const scale = Math.min(Math.max(view.width / picture.width, READABLE), 1);
  return { x: point.x - view.width / 2 / scale, y: point.y - 60 / scale, scale };
}

export function centre(point: { x: number; y: number }, scale: number, view: Size): FlowCamera {
  return { x: point.x - view.width / 2 / scale, y: point.y - view.height / 2 / scale, scale };
}

/** Larger or smaller by `factor`; what is at the point (pixels of the view) stays there. */
export function zoomAt(camera: FlowCamera, factor: number, at: { x: number; y: number }): FlowCamera {
  const scale = Math.min(Math.max(camera.scale * factor, SMALLEST), LARGEST);
  return {
    x: camera.x + at.x / camera.scale - at.x / scale,
    y: camera.y + at.y / camera.scale - at.y / scale,
    scale,
  };
}

/** The same, but never with the picture out of sight. */
export function keepInSight(camera: FlowCamera, picture: Size, view: Size): FlowCamera {
  const [w, h] = [view.width / camera.scale, view.height / camera.scale];
  return {
    x: Math.min(Math.max(camera.x, -0.8 * w), picture.width - 0.2 * w),
    y: Math.min(Math.max(camera.y, -0.8 * h), picture.height - 0.2 * h),
    scale: camera.scale,
  };
}
