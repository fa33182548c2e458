// Draws what marks times across the lanes: the axis, the chosen range, the cursor, bookmarks.
import { axisTimes, formatAxisTime, niceStep } from "../../base/time-axis.ts";
import { AXIS_HEIGHT, type Colors, GUTTER, type Scene, xOf } from "./lane-scene.ts";

const MARK_APART = 90;

export function drawAxis(context: CanvasRenderingContext2D, scene: Scene, colors: Colors): void {
  const { width, span, height } = scene;
  const most = Math.max(Math.floor((width - GUTTER) / MARK_APART), 1);
  const step = niceStep((span[1] - span[0]) / most);
  context.textAlign = "left";
  for (const time of axisTimes(span[0], span[1], most)) {
    const x = Math.round(xOf(scene, time)) + 0.5;
    context.fillStyle = colors.line;
    context.globalAlpha = 0.55;
    context.fillRect(x - 0.5, 0, 1, height);
    context.globalAlpha = 1;
    const words = formatAxisTime(time, step);
    if (x + 4 + context.measureText(words).width < width) {
      context.fillStyle = colors.quiet;
      context.fillText(words, x + 4, AXIS_HEIGHT / 2);
    }
  }
}

export function drawRange(context: CanvasRenderingContext2D, scene: Scene, colors: Colors): void {
  if (!scene.range) {
    return;
  }
  const [from, to] = scene.range.map((time) => Math.min(Math.max(xOf(scene, time), GUTTER), scene.width));
  context.globalAlpha = 0.16;
  context.fillStyle = colors.accent;
  context.fillRect(from, 0, Math.max(to - from, 1), scene.height);
  context.globalAlpha = 1;
  context.fillRect(from, 0, 1, scene.height);
  context.fillRect(to - 1, 0, 1, scene.height);
}

export function drawCursor(context: CanvasRenderingContext2D, scene: Scene, colors: Colors): void {
  if (!scene.cursor) {
    return;
  }
  const x = xOf(scene, scene.cursor.time);
  if (x < GUTTER - 1 || x > scene.width + 1) {
    return;
  }
  context.fillStyle = colors.ground;
  context.fillRect(x - 1.5, 0, 4, scene.height);
  context.fillStyle = colors.accent;
  context.fillRect(x - 0.5, 0, 2, scene.height);
  context.beginPath();
  context.moveTo(x - 5.5, 0);
  context.lineTo(x + 6.5, 0);
  context.lineTo(x + 0.5, 8);
  context.closePath();
  context.fill();
}

export function drawFlag(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  height: number,
  colors: Colors,
): void {
  if (x < GUTTER) {
    return;
  }
  context.fillStyle = colors.ground;
  context.fillRect(x - 1.5, y - 3, 10, height + 5);
  context.fillStyle = colors.warning;
  context.fillRect(x - 0.5, y - 2, 1.5, height + 3);
  context.beginPath();
  context.moveTo(x, y - 2);
  context.lineTo(x + 8, y + 1.5);
  context.lineTo(x, y + 5);
  context.closePath();
  context.fill();
}
