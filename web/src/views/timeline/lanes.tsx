// The lanes of threads in one canvas, of which only those in sight are drawn; pointer and wheel on them.
import { computed, effect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { wordsOfGap } from "../../api/timeline.ts";
import { Fingers, type Pinch } from "../../base/fingers.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import { zoomSpan } from "../../base/time-axis.ts";
import { bookmarks } from "../../model/bookmarks.ts";
import { barAt, callLanes } from "../../model/calls/call-lanes.ts";
import { formatArguments, formatResult } from "../../model/calls/call-text.ts";
import { goToCall } from "../../model/calls/calls.ts";
import { hereCall } from "../../model/calls/near-calls.ts";
import { pointAt, pointedCall } from "../../model/calls/pointed-call.ts";
import { bindKeys } from "../../model/keys.ts";
import { currentThread, goToTime } from "../../model/replay.ts";
import { hasCode, processId } from "../../model/session.ts";
import { settings } from "../../model/settings.ts";
import { binsWanted, shownTimeline, showSpan, span, timeOf, wholeSpan, wholeTimeline } from "../../model/timeline.ts";
import { calls, cursor, range, update } from "../../model/view-state.ts";
import { drawLanes } from "./lane-drawing.ts";
import { AXIS_HEIGHT, type Colors, depthAt, GUTTER, laneHeight, NEW_CODE_HEIGHT, timeAtX, xOf } from "./lane-scene.ts";
import { themeColors } from "../theme-variables.ts";

const BOX_HEIGHT = 158;
const MOVED_PX = 4;
const NEAR_PX = 6;
const BAR_NEAR_PX = 3;
const ZOOM = 1.0018;
const KEY_ZOOM = 1.5;
/** Of what is shown. */
const KEY_SHIFT = 1 / 8;

/** How many calls are below one another in the lanes. */
const lanesDeep = computed(() => callLanes.value?.deep ?? 0);
const cursorThread = computed(() => cursor.value?.thread ?? -1);

export function Lanes() {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hint, setHint] = useState<Hint | null>(null);
  const n = wholeTimeline.value?.threads.length ?? 0;
  const deep = lanesDeep.value;
  const lane = laneHeight(n, BOX_HEIGHT, deep);
  const content = AXIS_HEIGHT + n * lane + NEW_CODE_HEIGHT;
  useEffect(() => watchCanvas(box.current!, canvas.current!), []);
  const drag = useRef<{
    x: number;
    kind: "cursor" | "new" | "range";
    time: number;
    before: ReturnType<typeof range.peek>;
  } | null>(null);
  const fingers = useRef(new Fingers());

  const placeOf = (event: PointerEvent) => {
    const bounds = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    const deep = lanesDeep.peek();
    const height = laneHeight(wholeTimeline.peek()?.threads.length ?? 0, BOX_HEIGHT, deep);
    const inside = y - AXIS_HEIGHT + box.current!.scrollTop;
    const lane = Math.floor(inside / height);
    const time = timeAtX({ span: span.peek(), width: bounds.width }, Math.max(x, GUTTER));
    const depth = x > GUTTER ? depthAt(inside - lane * height, height, deep) : -1;
    return { x, y, lane: y > AXIS_HEIGHT ? lane : -1, depth, time, width: bounds.width };
  };
  const leave = () => {
    pointAt(-1);
    setHint(null);
  };
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0) {
      return;
    }
    const { x, y, time, width } = placeOf(event);
    fingers.current.put(event.pointerId, { x, y });
    if (fingers.current.count > 1) {
      // What the first finger began was no range: the second one makes it a pinch.
      if (drag.current?.kind === "range") {
        update({ range: drag.current.before });
      }
      drag.current = null;
      canvas.current!.setPointerCapture(event.pointerId);
      return;
    }
    const thread = currentThread.peek();
    const at = cursor.peek();
    const lineAt = thread && at ? xOf({ span: span.peek(), width }, timeOf(at.thread, at.position) ?? -1) : -100;
    canvas.current!.setPointerCapture(event.pointerId);
    drag.current = { x, kind: Math.abs(x - lineAt) <= NEAR_PX ? "cursor" : "new", time, before: range.peek() };
  };
  const onPointerMove = (event: PointerEvent) => {
    const { x, y, lane, depth, time, width } = placeOf(event);
    const held = drag.current;
    if (fingers.current.placeOf(event.pointerId)) {
      const pinch = fingers.current.move(event.pointerId, { x, y });
      if (pinch) {
        pinchTime(pinch, width);
      }
    }
    if (!held) {
      const bar = barUnder(lane, depth, time, width);
      const { call, calls: numbers } = callLanes.peek() ?? { call: [], calls: [] };
      pointAt(bar >= 0 && numbers[bar] === 1 ? call[bar] : -1);
      setHint(bar >= 0 ? { x: Math.min(x + 10, width - 260), words: tellBar(bar) } : describe(lane, time, x, width));
      return;
    }
    leave();
    if (held.kind === "cursor") {
      const thread = currentThread.peek();
      if (thread) {
        goToTime(thread.tid, time);
      }
    } else if (held.kind === "range" || Math.abs(x - held.x) > MOVED_PX) {
      held.kind = "range";
      const ends = [held.time, time].map((one) => Math.max(Math.round(one), 0)).sort((a, b) => a - b);
      update({ range: ends[0] < ends[1] ? [ends[0], ends[1]] : null });
    }
  };
  const onPointerUp = (event: PointerEvent) => {
    const held = drag.current;
    drag.current = null;
    fingers.current.lift(event.pointerId);
    if (event.type === "pointercancel") {
      return;
    }
    if (held?.kind === "new") {
      const { lane, depth, time, x, width } = placeOf(event);
      const bar = barUnder(lane, depth, time, width);
      const thread = wholeTimeline.peek()?.threads[lane] ?? currentThread.peek();
      if (bar >= 0) {
        void goToCall(callLanes.peek()!.call[bar]);
      } else if (thread) {
        goToTime(thread.tid, x <= GUTTER ? thread.started : time);
      }
    }
  };
  return (
    <div ref={box} class="lanes" style={{ height: `${Math.min(content, BOX_HEIGHT)}px` }} onPointerLeave={leave}>
      <canvas
        ref={canvas}
        data-timeline-canvas
        tabIndex={0}
        role="img"
        aria-label={`Lanes of ${n} ${n === 1 ? "thread" : "threads"} over time; the tables behind have the same. Arrows move in time and from thread to thread, plus and minus zoom.`}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerCancel={onPointerUp}
        onKeyDown={(event) => pressKey(event, null)}
      />
      <div class="lanes-space" style={{ height: `${Math.max(content - BOX_HEIGHT, 0)}px` }} />
      {hint && <HintBox {...hint} />}
    </div>
  );
}

interface Hint {
  x: number;
  words: string;
}

/** What is under the pointer; of a call what it was given and what came of it, once that is known. */
function HintBox({ x, words }: Hint) {
  const box = useRef<HTMLDivElement>(null);
  const call = pointedCall.value;
  useLayoutEffect(() => {
    // However long the words are, they stay in sight.
    const room = box.current!.parentElement!.clientWidth - box.current!.offsetWidth - 4;
    box.current!.style.transform = `translate(${Math.max(Math.min(x, room), 0)}px, 0)`;
  });
  const result = call ? formatResult(call) : "";
  const told = call && [formatArguments(call.arguments), result && `= ${result}`].filter((part) => part !== "");
  return (
    <div ref={box} class="lanes-hint" data-pointed={call?.call} aria-hidden="true">
      {words}
      {told && told.length > 0 && <span class="told">{told.join(" ")}</span>}
    </div>
  );
}

/** Two fingers: time goes with their middle, and is zoomed as their distance grows. */
function pinchTime({ x, dx, factor }: Pinch, width: number): void {
  const [from, to] = span.peek();
  const by = (dx / (width - GUTTER)) * (to - from);
  const moved: [number, number] = [from - by, to - by];
  const center = timeAtX({ span: moved, width }, Math.max(x, GUTTER));
  showSpan(zoomSpan(moved, center, factor, wholeSpan.peek()));
}

/** The bar of calls under the pointer, of the lane's thread; -1 for none. */
function barUnder(lane: number, depth: number, time: number, width: number): number {
  const [lanes, thread] = [callLanes.peek(), shownTimeline.peek()?.threads[lane]];
  if (!lanes || !thread || depth < 0) {
    return -1;
  }
  const [from, to] = span.peek();
  return barAt(lanes, thread.tid, depth, time, (BAR_NEAR_PX * (to - from)) / Math.max(width - GUTTER, 1));
}

/** `openat, 3 µs`; of several calls how many, and which took the longest. */
function tellBar(bar: number): string {
  const { names, named, calls: numbers, failed, from, to } = callLanes.peek()!;
  const [name, n] = [names[named[bar]], numbers[bar]];
  // What took no time was not called: a place that the program came to.
  const took = to[bar] > from[bar] ? [formatDuration(to[bar] - from[bar])] : [];
  const told = n === 1 ? [name, ...took] : [`${formatInteger(n)} calls, longest ${name}`];
  if (failed[bar] > 0) {
    told.push(n === 1 ? "failed" : `${formatInteger(failed[bar])} failed`);
  }
  return [formatDuration(from[bar]), ...told].join(" · ");
}

/** What is under the pointer, in words. */
function describe(lane: number, time: number, x: number, width: number): { x: number; words: string } | null {
  const timeline = shownTimeline.peek();
  const thread = timeline?.threads[lane];
  if (!timeline || x < GUTTER) {
    return null;
  }
  const words = [formatDuration(time)];
  if (thread) {
    const bin = Math.floor(((time - timeline.from) / (timeline.to - timeline.from)) * timeline.bins);
    const near = ((timeline.to - timeline.from) / timeline.bins) * 3;
    const gap = thread.gaps.find((one) => time >= one.from && time <= one.to);
    const calls = thread.ticks
      .filter((tick) => Math.abs(tick.time - time) <= near)
      .reduce((sum, t) => sum + t.count, 0);
    words.push(`${thread.name} ${thread.tid}`);
    if (time < thread.started || time > thread.ended) {
      words.push("not alive");
    } else if (timeline.unit && thread.density[bin] > 0.5) {
      words.push(`${formatInteger(Math.round(thread.density[bin]))} ${timeline.unit}s`);
    }
    if (gap) {
      words.push(wordsOfGap(gap.reason));
    }
    if (calls > 0) {
      words.push(`${calls} system calls or signals`);
    }
  }
  return { x: Math.min(x + 10, width - 260), words: words.join(" · ") };
}

/** The cursor to the next thread above or below that has an order, at the same time. */
function goToLane(by: 1 | -1): void {
  const at = cursor.peek();
  const threads = wholeTimeline.peek()?.threads ?? [];
  const time = at && timeOf(at.thread, at.position);
  let lane = threads.findIndex((thread) => thread.tid === at?.thread) + by;
  while (threads[lane] && !(threads[lane].isOrdered && threads[lane].length > 0)) {
    lane += by;
  }
  if (threads[lane] && time != null) {
    goToTime(threads[lane].tid, time);
  }
}

const hasCursor = () => cursor.peek() !== null;
const pressKey = bindKeys<null>(
  "Lanes of the timeline",
  [
    { key: "ArrowLeft", what: "Earlier or later", run: () => shiftSpan(-KEY_SHIFT) },
    { key: "ArrowRight", what: "Earlier or later", run: () => shiftSpan(KEY_SHIFT) },
    { key: "ArrowUp", what: "Cursor to the thread above or below", when: hasCursor, run: () => goToLane(-1) },
    { key: "ArrowDown", what: "Cursor to the thread above or below", when: hasCursor, run: () => goToLane(1) },
    { key: "+", what: "Nearer", run: () => zoomInMiddle(KEY_ZOOM) },
    { key: "-", what: "Farther", run: () => zoomInMiddle(1 / KEY_ZOOM) },
  ],
  { ignoresModifiers: true },
);

/** Show what is earlier or later by so much of what is shown. */
function shiftSpan(by: number): void {
  const [from, to] = span.peek();
  const shift = (to - from) * by;
  showSpan([from + shift, to + shift]);
}

function zoomInMiddle(factor: number): void {
  const [from, to] = span.peek();
  showSpan(zoomSpan([from, to], (from + to) / 2, factor, wholeSpan.peek()));
}

/** Draw whenever something changes; zoom by the wheel. */
function watchCanvas(box: HTMLElement, canvas: HTMLCanvasElement): () => void {
  const context = canvas.getContext("2d")!;
  let frame = 0;
  let [width, height] = [0, 0];
  const draw = () => {
    const timeline = shownTimeline.peek() ?? wholeTimeline.peek();
    if (!timeline || width <= GUTTER) {
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    const size = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== size[0] || canvas.height !== size[1]) {
      [canvas.width, canvas.height] = size;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const laneOf = (tid: number) => timeline.threads.findIndex((thread) => thread.tid === tid);
    const at = cursor.peek();
    const time = at && timeOf(at.thread, at.position);
    const marks = bookmarks.peek().filter((mark) => mark.process === processId.peek() && laneOf(mark.thread) >= 0);
    drawLanes(
      context,
      {
        width,
        height,
        laneHeight: laneHeight(timeline.threads.length, BOX_HEIGHT, lanesDeep.peek()),
        scroll: box.scrollTop,
        span: span.peek(),
        timeline,
        hasCode: hasCode.peek(),
        range: range.peek(),
        calls: callLanes.peek()?.deep ? callLanes.peek() : null,
        markedCall: calls.peek().call ?? hereCall.peek(),
        cursor: at && time != null ? { lane: laneOf(at.thread), time } : null,
        bookmarks: marks.map((mark) => ({ lane: laneOf(mark.thread), time: mark.time })),
      },
      readColors(canvas),
    );
  };
  const schedule = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(draw);
  };
  const observer = new ResizeObserver(() => {
    [width, height] = [canvas.clientWidth, canvas.clientHeight];
    binsWanted.value = Math.max(Math.round((width - GUTTER) / 50) * 50, 100);
    schedule();
  });
  observer.observe(canvas);
  const stop = effect(() => {
    shownTimeline.value;
    wholeTimeline.value;
    span.value;
    range.value;
    cursor.value;
    bookmarks.value;
    settings.value;
    callLanes.value;
    calls.value;
    hereCall.value;
    schedule();
  });
  const stopFollowing = effect(() => {
    // A cursor that was put on another thread has its lane in sight.
    const timeline = wholeTimeline.value;
    const lane = timeline?.threads.findIndex((thread) => thread.tid === cursorThread.value) ?? -1;
    if (timeline && lane >= 0) {
      const height = laneHeight(timeline.threads.length, BOX_HEIGHT, lanesDeep.value);
      const [top, room] = [lane * height, BOX_HEIGHT - AXIS_HEIGHT];
      box.scrollTop = Math.min(Math.max(box.scrollTop, top + height - room), top);
    }
  });
  const onWheel = (event: WheelEvent) => {
    event.preventDefault();
    if (event.shiftKey) {
      // Browsers take it for sideways.
      box.scrollTop += event.deltaY || event.deltaX;
      return;
    }
    const view = { span: span.peek(), width };
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = (event.deltaX / (width - GUTTER)) * (view.span[1] - view.span[0]);
      showSpan([view.span[0] + by, view.span[1] + by]);
      return;
    }
    const x = event.clientX - canvas.getBoundingClientRect().left;
    showSpan(zoomSpan(view.span, timeAtX(view, Math.max(x, GUTTER)), ZOOM ** -event.deltaY, wholeSpan.peek()));
  };
  canvas.addEventListener("wheel", onWheel, { passive: false });
  box.addEventListener("scroll", schedule);
  return () => {
    stop();
    stopFollowing();
    observer.disconnect();
    canvas.removeEventListener("wheel", onWheel);
    box.removeEventListener("scroll", schedule);
    cancelAnimationFrame(frame);
  };
}

function readColors(element: Element): Colors {
  const names = ["text", "quiet", "line", "ground", "panel", "lane", "accent", "warning", "picked"] as const;
  const { lane: raised, ...others } = themeColors(element, names);
  return { raised, ...others };
}
