// Pointer, wheel, touch and keys over the picture: what they do to the camera and to single nodes, and what is pointed at.
import { Fingers } from "../../base/fingers.ts";
import { type Eye, type Frame, orbitEye, panEye, zoomEye } from "../../base/projection.ts";
import { type Binding, bindKeys } from "../../model/keys.ts";

/** A pointer that stayed nearer than this to where it went down did not drag, in pixels. */
const CLICK_PX = 4;
const ORBIT_PER_PX = 0.006;
const KEY_ORBIT = 0.09;
const KEY_PAN_PX = 48;
const KEY_ZOOM = 1.2;
const KEY_NUDGE_PX = 12;

/** And where they lead. The picture goes the other way. */
const ARROWS = [
  ["ArrowLeft", -1, 0],
  ["ArrowRight", 1, 0],
  ["ArrowUp", 0, -1],
  ["ArrowDown", 0, 1],
] as const;

export interface ControlTarget {
  isFlat: () => boolean;
  move: (change: (eye: Eye, frame: Frame) => Eye) => void;
  fit: () => void;
  hover: (x: number, y: number) => void;
  leave: () => void;
  click: (x: number, y: number) => void;
  open: (x: number, y: number) => void;
  clear: () => void;
  enter: () => void;
  /** Take hold of a node; whether there is one. `isAny` takes small ones, too, `isWhole` all of a function. */
  grab: (x: number, y: number, isAny: boolean, isWhole: boolean) => boolean;
  drag: (dx: number, dy: number) => void;
  drop: () => void;
  /** Move what is selected. */
  nudge: (dx: number, dy: number) => void;
  undo: () => void;
  release: (isAll: boolean) => void;
  /** Point at what is selected, or at nothing any more. */
  pointAtSelected: () => void;
}

const pressKey = bindKeys<ControlTarget>("Graph", [
  ...arrows("", "Turn the picture; in two dimensions move it", (on, x, y) => (on.isFlat() ? pan : orbit)(on, x, y)),
  ...arrows("Shift+", "Move the picture", pan),
  { key: "+", what: "Nearer", run: (on) => zoom(on, 1 / KEY_ZOOM) },
  { key: "=", what: "Nearer", run: (on) => zoom(on, 1 / KEY_ZOOM) },
  { key: "-", what: "Farther", run: (on) => zoom(on, KEY_ZOOM) },
  { key: "f", what: "All of it", run: (on) => on.fit() },
  { key: "0", what: "All of it", run: (on) => on.fit() },
  { key: "Enter", what: "Open the selected function", run: (on) => on.enter() },
  { key: "Escape", what: "Select nothing", run: (on) => on.clear() },
  {
    key: "o",
    what: "Point at what is selected: its neighbours, and particles on its edges",
    run: (on) => on.pointAtSelected(),
  },
  ...arrows("Ctrl+", "Move what is selected", (on, x, y) => on.nudge(x * KEY_NUDGE_PX, y * KEY_NUDGE_PX)),
  { key: "Ctrl+Z", what: "Take the last move back", run: (on) => on.undo() },
  { key: "r", what: "Put what is selected where the layout has it", run: (on) => on.release(false) },
  { key: "R", what: "Put everything where the layout has it", run: (on) => on.release(true) },
]);

function arrows(
  modifier: string,
  what: string,
  run: (on: ControlTarget, x: number, y: number) => void,
): Binding<ControlTarget>[] {
  return ARROWS.map(([key, x, y]) => ({ key: `${modifier}${key}`, what, run: (on) => run(on, x, y) }));
}

function pan(on: ControlTarget, x: number, y: number): void {
  on.move((eye, frame) => panEye(eye, frame, -x * KEY_PAN_PX, -y * KEY_PAN_PX));
}

function orbit(on: ControlTarget, x: number, y: number): void {
  on.move((eye) => orbitEye(eye, x * KEY_ORBIT, -y * KEY_ORBIT));
}

function zoom(on: ControlTarget, factor: number): void {
  on.move((eye, frame) => zoomEye(eye, frame, factor, frame.width / 2, frame.height / 2));
}

/** Returns what ends it. */
export function controlCamera(canvas: HTMLCanvasElement, target: ControlTarget): () => void {
  const fingers = new Fingers();
  let travelled = 0;
  let isDragging = false;
  const drop = () => {
    if (isDragging) {
      isDragging = false;
      target.drop();
    }
  };
  const ended = new AbortController();
  const { signal } = ended;
  const at = (event: MouseEvent): [number, number] => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener(
    "pointerdown",
    (event) => {
      const [x, y] = at(event);
      canvas.setPointerCapture(event.pointerId);
      fingers.put(event.pointerId, { x, y });
      travelled = fingers.count > 1 ? Infinity : 0;
      drop();
      if (fingers.count === 1 && event.button === 0) {
        isDragging = target.grab(x, y, event.ctrlKey || event.metaKey, event.shiftKey);
      }
    },
    { signal },
  );
  canvas.addEventListener(
    "pointermove",
    (event) => {
      const [x, y] = at(event);
      const before = fingers.placeOf(event.pointerId);
      if (!before) {
        target.hover(x, y);
        return;
      }
      const [dx, dy] = [x - before.x, y - before.y];
      travelled = Math.max(travelled, Math.hypot(dx, dy));
      if (travelled < CLICK_PX) {
        return;
      }
      if (isDragging) {
        fingers.move(event.pointerId, { x, y });
        target.drag(dx, dy);
        return;
      }
      target.leave();
      const pinch = fingers.move(event.pointerId, { x, y });
      if (pinch) {
        target.move((eye, frame) =>
          zoomEye(panEye(eye, frame, pinch.dx, pinch.dy), frame, 1 / pinch.factor, pinch.x, pinch.y),
        );
      } else {
        const isPan =
          target.isFlat() !== (event.shiftKey || (event.buttons & 6) !== 0) || (target.isFlat() && event.buttons !== 0);
        target.move((eye, frame) =>
          isPan ? panEye(eye, frame, dx, dy) : orbitEye(eye, -dx * ORBIT_PER_PX, dy * ORBIT_PER_PX),
        );
      }
    },
    { signal },
  );
  canvas.addEventListener(
    "pointerup",
    (event) => {
      const isClick = fingers.lift(event.pointerId) && travelled < CLICK_PX;
      drop();
      if (isClick && event.button === 0) {
        target.click(...at(event));
      }
    },
    { signal },
  );
  canvas.addEventListener(
    "pointercancel",
    (event) => {
      fingers.lift(event.pointerId);
      drop();
    },
    { signal },
  );
  canvas.addEventListener("pointerleave", () => target.leave(), { signal });
  canvas.addEventListener("dblclick", (event) => target.open(...at(event)), { signal });
  canvas.addEventListener("contextmenu", (event) => event.preventDefault(), { signal });
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      const delta = Math.min(Math.max(event.deltaY * lines, -240), 240);
      const [x, y] = at(event);
      target.leave();
      target.move((eye, frame) => zoomEye(eye, frame, Math.exp(delta * 0.0016), x, y));
    },
    { signal, passive: false },
  );
  canvas.addEventListener("keydown", (event) => pressKey(event, target), { signal });
  return () => ended.abort();
}
