// The picture of a function's control flow: moved, enlarged and clicked; with a minimap.
import { effect, type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { type Binding, bindKeys } from "../../model/keys.ts";
import { describeEdge } from "../../model/flow/flow-boxes.ts";
import { newestBlock } from "../../model/flow/flow-follow.ts";
import type { LaidOutFlow } from "../../model/flow/flow-of-function.ts";
import { selectedBlock } from "../../model/selected.ts";
import { prefersReducedMotion, settings } from "../../model/settings.ts";
import { update } from "../../model/view-state.ts";
import { centre, fitAll, type FlowCamera, keepInSight, type Size, startAt, zoomAt } from "./flow-camera.ts";
import { boxAt, type Direction, edgeAt, nearestBox, nextBox } from "./flow-hits.ts";
import { type Marks, NO_MARKS, paintFlow } from "./flow-painter.ts";
import { showFlowPicture } from "./flow-pictures.ts";
import { followPointers } from "./flow-pointers.ts";
import { readTheme } from "./flow-theme.tsx";
import { Minimap } from "./minimap.tsx";

const KEY_ZOOM = 1.3;
const PAN_STEP = 80;
const EDGE_REACH = 5;
const MOVE_MS = 180;

/** What the picture stands for: which block is selected, which ran last, and what a click does. */
export interface FlowSubject {
  selectedBlock: ReadonlySignal<number>;
  newestBlock: ReadonlySignal<number>;
  select: (block: number) => void;
  openFunction: (index: number) => void;
}

const OF_PROCESS: FlowSubject = {
  selectedBlock,
  newestBlock,
  select: (index) => update({ selection: { kind: "block", index } }),
  openFunction: (index) => update({ selection: { kind: "function", index } }),
};

/** What keys are pressed on; `current` is the block that is selected, -1 for none. */
interface KeyTarget {
  current: number;
  go: (way: Direction) => void;
  pan: (way: Direction) => void;
  zoom: (factor: number) => void;
  fit: () => void;
  goToEntry: () => void;
  openCall: (box: number) => void;
}

const pressKey = bindKeys<KeyTarget>("Function", [
  { key: "ArrowUp", what: "To a block that leads here", run: (on) => on.go("up") },
  { key: "ArrowDown", what: "To a block that comes next", run: (on) => on.go("down") },
  { key: "ArrowLeft", what: "To the block beside", run: (on) => on.go("left") },
  { key: "ArrowRight", what: "To the block beside", run: (on) => on.go("right") },
  panKey("Shift+ArrowLeft", "left"),
  panKey("Shift+ArrowRight", "right"),
  panKey("Shift+ArrowUp", "up"),
  panKey("Shift+ArrowDown", "down"),
  { key: "+", what: "Nearer", run: (on) => on.zoom(KEY_ZOOM) },
  { key: "=", what: "Nearer", run: (on) => on.zoom(KEY_ZOOM) },
  { key: "-", what: "Farther", run: (on) => on.zoom(1 / KEY_ZOOM) },
  { key: "f", what: "All of it", run: (on) => on.fit() },
  { key: "0", what: "All of it", run: (on) => on.fit() },
  { key: "Home", what: "To the entry", run: (on) => on.goToEntry() },
  {
    key: "Enter",
    what: "Into the function that the block calls",
    when: ({ current }) => current >= 0,
    run: (on) => on.openCall(on.current),
  },
]);

function panKey(key: string, way: Direction): Binding<KeyTarget> {
  return { key, what: "Move the picture", run: (on) => on.pan(way) };
}

export function FlowCanvas({ of, subject = OF_PROCESS }: { of: LaidOutFlow; subject?: FlowSubject }) {
  const { selectedBlock, newestBlock } = subject;
  const canvas = useRef<HTMLCanvasElement>(null);
  const camera = useSignal<FlowCamera>({ x: 0, y: 0, scale: 1 });
  const view = useSignal<Size>({ width: 0, height: 0 });
  const hovered = useSignal<{ edge: number; x: number; y: number } | null>(null);
  const move = useRef(0);
  const shownOf = useRef<LaidOutFlow | null>(null);
  const boxOf = useMemo(() => new Map(of.model.boxes.map((box, index) => [box.block.block, index])), [of]);
  const geometry = useMemo(() => describeGeometry(of), [of]);
  const picture = { width: of.layout.width, height: of.layout.height };
  const look = (to: FlowCamera) => {
    cancelAnimationFrame(move.current);
    camera.value = keepInSight(to, picture, view.peek());
  };
  const goTo = (box: number) => {
    const { widths, heights } = of.model.input;
    const to = centre(
      { x: of.layout.x[box] + widths[box] / 2, y: of.layout.y[box] + Math.min(heights[box], 200) / 2 },
      Math.max(camera.peek().scale, 0.6),
      view.peek(),
    );
    glide(camera.peek(), to, look, move);
  };

  useLayoutEffect(() => {
    const element = canvas.current!;
    const measure = () => (view.value = { width: element.clientWidth, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);

  // A function that was not shown before starts at its entry, or at the block that is selected. What was laid out anew
  // stays where it was looked at.
  useLayoutEffect(() => {
    const before = shownOf.current;
    shownOf.current = of;
    const selected = boxOf.get(selectedBlock.peek()) ?? -1;
    if (before?.model.code.function !== of.model.code.function) {
      const box = selected >= 0 ? selected : of.model.input.entry;
      const x = of.layout.x[box] + of.model.input.widths[box] / 2;
      look(startAt({ x, y: of.layout.y[box] }, picture, view.peek()));
    } else {
      const { x, y, scale } = camera.peek();
      const middle = { x: x + view.peek().width / 2 / scale, y: y + view.peek().height / 2 / scale };
      const box = selected >= 0 ? selected : nearestBox(before, middle.x, middle.y);
      const shift = (layout: LaidOutFlow) => layout.layout.x[box] + layout.model.input.widths[box] / 2;
      look({ x: x + shift(of) - shift(before), y: y + of.layout.y[box] - before.layout.y[box], scale });
    }
  }, [of]);

  useEffect(
    () =>
      effect(() => {
        const box = boxOf.get(selectedBlock.value) ?? -1;
        if (box >= 0 && !isInSight(of, box, camera.peek(), view.peek())) {
          goTo(box);
        }
      }),
    [of],
  );

  useEffect(
    () =>
      effect(() => {
        const box = settings.value.followsReplay ? (boxOf.get(newestBlock.value) ?? -1) : -1;
        if (box >= 0 && !isInSight(of, box, camera.peek(), view.peek())) {
          goTo(box);
        }
      }),
    [of],
  );

  useEffect(() => {
    let frame = 0;
    let marks: Marks = NO_MARKS;
    const pictures = showFlowPicture(of, canvas.current!, {
      camera: () => camera.peek(),
      view: () => view.peek(),
      marks: () => marks,
    });
    const stop = effect(() => {
      settings.value.theme;
      marks = {
        selected: boxOf.get(selectedBlock.value) ?? -1,
        recent: boxOf.get(newestBlock.value) ?? -1,
        hoveredEdge: hovered.value?.edge ?? -1,
      };
      const [at, size] = [camera.value, view.value];
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        const element = canvas.current;
        const context = element?.getContext("2d");
        if (element && context && size.width > 0) {
          const ratio = devicePixelRatio || 1;
          element.width = Math.round(size.width * ratio);
          element.height = Math.round(size.height * ratio);
          paintFlow(context, of, at, size, ratio, readTheme(element), marks);
          element.dataset.scale = String(at.scale);
          element.dataset.x = String(at.x);
          element.dataset.y = String(at.y);
          element.dataset.selected = String(marks.selected);
          element.dataset.newest = String(marks.recent);
          pictures.afterFrame();
        }
      });
    });
    return () => {
      stop();
      pictures.end();
      cancelAnimationFrame(frame);
    };
  }, [of]);

  const select = (box: number) => subject.select(of.model.boxes[box].block.block);
  const point = (event: MouseEvent) => {
    const at = camera.peek();
    return { x: at.x + event.offsetX / at.scale, y: at.y + event.offsetY / at.scale };
  };
  const onHover = (event: PointerEvent) => {
    const at = point(event);
    const edge = boxAt(of, at.x, at.y) >= 0 ? -1 : edgeAt(of, at.x, at.y, EDGE_REACH / camera.peek().scale);
    hovered.value = edge >= 0 ? { edge, x: event.offsetX, y: event.offsetY } : null;
  };
  const openCall = (box: number) => {
    const to = of.model.boxes[box].lines.at(-1)?.leadsTo ?? -1;
    if (to >= 0) {
      subject.openFunction(to);
    }
  };
  const zoom = (factor: number, at = { x: view.peek().width / 2, y: view.peek().height / 2 }) =>
    look(zoomAt(camera.peek(), factor, at));
  const fit = () => glide(camera.peek(), fitAll(picture, view.peek()), look, move);
  const onKeyDown = (event: KeyboardEvent) => {
    const current = boxOf.get(selectedBlock.peek()) ?? -1;
    const { entry } = of.model.input;
    const pan = (way: Direction) => {
      const { x, y, scale } = camera.peek();
      const step = PAN_STEP / scale;
      const [dx, dy] = { up: [0, -step], down: [0, step], left: [-step, 0], right: [step, 0] }[way];
      look({ x: x + dx, y: y + dy, scale });
    };
    const go = (way: Direction) => select(current < 0 ? entry : nextBox(of, current, way));
    pressKey(event, { current, go, pan, zoom, fit, goToEntry: () => select(entry), openCall });
  };
  useEffect(
    () =>
      followPointers(canvas.current!, {
        camera: () => camera.peek(),
        look,
        click: (x, y) => {
          const at = camera.peek();
          const box = boxAt(of, at.x + x / at.scale, at.y + y / at.scale);
          if (box >= 0) {
            select(box);
          }
        },
      }),
    [of],
  );

  return (
    <div class="flow-picture">
      <canvas
        ref={canvas}
        class="flow-canvas"
        role="application"
        tabIndex={0}
        aria-label={`Control flow of ${of.model.code.name}: ${of.model.boxes.length} blocks. Arrows go from block to block, Enter into what it calls, + and - enlarge, 0 shows all. The table of blocks has the same.`}
        data-flow-canvas
        data-layout-ms={of.layoutMs.toFixed(1)}
        onPointerMove={onHover}
        onPointerLeave={() => (hovered.value = null)}
        onDblClick={(event) => {
          const at = point(event);
          const box = boxAt(of, at.x, at.y);
          if (box >= 0) {
            openCall(box);
          }
        }}
        onKeyDown={onKeyDown}
      />
      <div hidden data-flow-geometry={geometry} />
      {hovered.value && <EdgeTip of={of} {...hovered.value} />}
      <div class="flow-zoom">
        <button type="button" aria-label="Larger" title="Larger (+)" onClick={() => zoom(KEY_ZOOM)}>
          +
        </button>
        <button type="button" aria-label="Smaller" title="Smaller (-)" onClick={() => zoom(1 / KEY_ZOOM)}>
          −
        </button>
        <button type="button" title="Show all of it (0)" onClick={fit}>
          Fit
        </button>
      </div>
      <Minimap of={of} camera={camera} view={view} onLook={look} />
    </div>
  );
}

function EdgeTip({ of, edge, x, y }: { of: LaidOutFlow; edge: number; x: number; y: number }) {
  const { source, target } = of.model.edges[edge];
  const address = (box: number) => of.model.boxes[box].block.address;
  return (
    <div class="flow-tip" role="tooltip" style={{ left: `${x + 14}px`, top: `${y + 14}px` }}>
      <span class="mono">
        {address(source)} → {address(target)}
      </span>
      <span>{describeEdge(of.model.edges[edge], of.model.isCounted)}</span>
    </div>
  );
}

/** Where everything is, for who can't see the picture and for tests: boxes and edges in units of the picture. */
function describeGeometry(of: LaidOutFlow): string {
  const { layout, model } = of;
  return JSON.stringify({
    width: layout.width,
    height: layout.height,
    boxes: model.boxes.map((box, index) => ({
      block: box.block.block,
      x: layout.x[index],
      y: layout.y[index],
      width: model.input.widths[index],
      height: model.input.heights[index],
    })),
    edges: model.edges.map((edge, index) => ({
      source: model.boxes[edge.source].block.block,
      target: model.boxes[edge.target].block.block,
      kind: edge.kinds.join(","),
      executions: edge.executions,
      points: Array.from(layout.points.subarray(2 * layout.first[index], 2 * layout.first[index + 1])),
    })),
  });
}

function isInSight(of: LaidOutFlow, box: number, camera: FlowCamera, view: Size): boolean {
  const left = (of.layout.x[box] - camera.x) * camera.scale;
  const top = (of.layout.y[box] - camera.y) * camera.scale;
  const right = left + of.model.input.widths[box] * camera.scale;
  return right > 40 && left < view.width - 40 && top > -10 && top < view.height - 40;
}

function glide(from: FlowCamera, to: FlowCamera, look: (camera: FlowCamera) => void, move: { current: number }): void {
  if (prefersReducedMotion()) {
    look(to);
    return;
  }
  const start = performance.now();
  const step = (now: number) => {
    const t = Math.min(Math.max((now - start) / MOVE_MS, 0), 1);
    const part = t * t * (3 - 2 * t);
    const between = (a: number, b: number) => a + (b - a) * part;
    look({ x: between(from.x, to.x), y: between(from.y, to.y), scale: between(from.scale, to.scale) });
    if (t < 1) {
      move.current = requestAnimationFrame(step);
    }
  };
  move.current = requestAnimationFrame(step);
}
