// Pointers and wheel over the picture of a function: what they do to the part of it that is seen, and what is clicked.
import { Fingers } from "../../base/fingers.ts";
import { type FlowCamera, zoomAt } from "./flow-camera.ts";

const WHEEL_STEP = 0.0015;
/** A pointer that stayed nearer than this to where it went down did not drag, in pixels. */
const CLICK_REACH = 4;

export interface PointerTarget {
  camera: () => FlowCamera;
  look: (to: FlowCamera) => void;
  /** Pixels of the view, as all places here. */
  click: (x: number, y: number) => void;
}

/** Returns what ends it. */
export function followPointers(canvas: HTMLCanvasElement, target: PointerTarget): () => void {
  const fingers = new Fingers();
  /** Where a drag by one pointer began, and what was seen then; null where it is none. */
  let drag: { x: number; y: number; from: FlowCamera; isClick: boolean } | null = null;
  const ended = new AbortController();
  const { signal } = ended;
  const moveTo = ({ x, y, scale }: FlowCamera, dx: number, dy: number): FlowCamera => ({
    x: x - dx / scale,
    y: y - dy / scale,
    scale,
  });
  const onDown = (event: PointerEvent) => {
    if (event.button === 0) {
      const place = { x: event.offsetX, y: event.offsetY };
      canvas.setPointerCapture(event.pointerId);
      fingers.put(event.pointerId, place);
      drag = fingers.count === 1 ? { ...place, from: target.camera(), isClick: true } : null;
    }
  };
  const onMove = (event: PointerEvent) => {
    if (!fingers.placeOf(event.pointerId)) {
      return;
    }
    const [x, y] = [event.offsetX, event.offsetY];
    const pinch = fingers.move(event.pointerId, { x, y });
    if (pinch) {
      target.look(zoomAt(moveTo(target.camera(), pinch.dx, pinch.dy), pinch.factor, pinch));
      return;
    }
    // Of two fingers one was lifted: the other goes on from where it is.
    drag ??= { x, y, from: target.camera(), isClick: false };
    const [dx, dy] = [x - drag.x, y - drag.y];
    drag.isClick &&= Math.hypot(dx, dy) < CLICK_REACH;
    if (!drag.isClick) {
      target.look(moveTo(drag.from, dx, dy));
    }
  };
  const onUp = (event: PointerEvent) => {
    if (fingers.lift(event.pointerId)) {
      const at = drag;
      drag = null;
      if (at?.isClick && event.type === "pointerup") {
        target.click(at.x, at.y);
      }
    }
  };
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : 1;
    const at = { x: event.offsetX, y: event.offsetY };
    target.look(zoomAt(target.camera(), Math.exp(-event.deltaY * unit * WHEEL_STEP), at));
  };
  canvas.addEventListener("pointerdown", onDown, { signal });
  canvas.addEventListener("pointermove", onMove, { signal });
  canvas.addEventListener("pointerup", onUp, { signal });
  canvas.addEventListener("pointercancel", onUp, { signal });
  // Not passive: else the page itself would be enlarged.
  canvas.addEventListener("wheel", onWheel, { signal, passive: false });
  return () => ended.abort();
}
