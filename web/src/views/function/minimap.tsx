// All of the picture, small, with a frame around what is seen: dragging the frame moves the view.
import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { COLD, toHex } from "../../base/color.ts";
import type { LaidOutFlow } from "../../model/flow/flow-of-function.ts";
import { settings } from "../../model/settings.ts";
import type { FlowCamera, Size } from "./flow-camera.ts";
import { heatOfBox } from "./flow-painter.ts";
import { readTheme } from "./flow-theme.tsx";

const MOST_WIDTH = 190;
const MOST_HEIGHT = 340;

interface Properties {
  of: LaidOutFlow;
  camera: ReadonlySignal<FlowCamera>;
  view: ReadonlySignal<Size>;
  onLook: (camera: FlowCamera) => void;
}

export function Minimap({ of, camera, view, onLook }: Properties) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { layout } = of;
  const scale = Math.min(MOST_WIDTH / layout.width, MOST_HEIGHT / layout.height);
  const [width, height] = [Math.max(layout.width * scale, 24), Math.max(layout.height * scale, 24)];
  const theme = settings.value.theme;
  useEffect(() => paint(canvas.current!, of, scale, width, height), [of, theme]);
  const { x, y, scale: zoom } = camera.value;
  const [w, h] = [view.value.width / zoom, view.value.height / zoom];
  const onPointerDown = (event: PointerEvent) => {
    const element = event.currentTarget as HTMLElement;
    const box = element.getBoundingClientRect();
    element.setPointerCapture(event.pointerId);
    const at = (next: PointerEvent) => [(next.clientX - box.left) / scale, (next.clientY - box.top) / scale];
    const [startX, startY] = at(event);
    const isInside = startX >= x && startX <= x + w && startY >= y && startY <= y + h;
    // Where the frame was taken hold of; beside it, in its middle.
    const [gripX, gripY] = isInside ? [startX - x, startY - y] : [w / 2, h / 2];
    const look = (next: PointerEvent) => {
      const [nextX, nextY] = at(next);
      onLook({ x: nextX - gripX, y: nextY - gripY, scale: zoom });
    };
    look(event);
    element.addEventListener("pointermove", look);
    const stop = () => element.removeEventListener("pointermove", look);
    element.addEventListener("pointerup", stop, { once: true });
    element.addEventListener("pointercancel", stop, { once: true });
  };
  const frame = {
    left: `${Math.max(x * scale, 0)}px`,
    top: `${Math.max(y * scale, 0)}px`,
    width: `${Math.max(Math.min((x + w) * scale, width) - Math.max(x * scale, 0), 4)}px`,
    height: `${Math.max(Math.min((y + h) * scale, height) - Math.max(y * scale, 0), 4)}px`,
  };
  return (
    <div
      class="minimap"
      data-minimap
      role="img"
      aria-label="All of the function; the frame is what is seen"
      style={{ width: `${width}px`, height: `${height}px` }}
      onPointerDown={onPointerDown}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <div class="minimap-frame" data-minimap-frame style={frame} />
    </div>
  );
}

function paint(canvas: HTMLCanvasElement, of: LaidOutFlow, scale: number, width: number, height: number): void {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  if (!context) {
    return;
  }
  const theme = readTheme(canvas);
  context.setTransform(scale * ratio, 0, 0, scale * ratio, 0, 0);
  context.strokeStyle = theme.quiet;
  context.globalAlpha = 0.5;
  context.lineWidth = 0.7 / scale;
  context.beginPath();
  const { first, points } = of.layout;
  for (let edge = 0; edge + 1 < first.length; edge++) {
    context.moveTo(points[2 * first[edge]], points[2 * first[edge] + 1]);
    for (let at = first[edge] + 1; at < first[edge + 1]; at++) {
      context.lineTo(points[2 * at], points[2 * at + 1]);
    }
  }
  context.stroke();
  context.globalAlpha = 1;
  const least = 1.5 / scale;
  of.model.boxes.forEach((_, box) => {
    context.fillStyle = toHex(heatOfBox(of, box) ?? COLD);
    const [w, h] = [of.model.input.widths[box], of.model.input.heights[box]];
    context.fillRect(of.layout.x[box], of.layout.y[box], Math.max(w, least), Math.max(h, least));
  });
}
