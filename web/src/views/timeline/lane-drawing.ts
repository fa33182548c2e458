// Draws the lanes of threads: how much they did, new code, what happened, and where no order was recorded.
import { type Timeline, type TimelineThread, wordsOfGap } from "../../api/timeline.ts";
import type { CallLanes } from "../../api/calls.ts";
import { CATEGORIES, heatColor, type Rgb, textOn, toHex } from "../../base/color.ts";
import { formatInteger } from "../../base/format.ts";
import { GAP_REASON, TICK_KIND } from "../../protocol/generated.ts";
import {
  AXIS_HEIGHT,
  barHeight,
  barsTop,
  type Colors,
  GUTTER,
  NEW_CODE_HEIGHT,
  type Scene,
  xOf,
} from "./lane-scene.ts";
import { drawAxis, drawCursor, drawFlag, drawRange } from "./time-marks.ts";

const LEAST_NAMED_HEIGHT = 11;
const STRIP_TOP = 3;
const STRIP_MARGINS = 7;
const HATCH_STEP = 6;

export function drawLanes(context: CanvasRenderingContext2D, scene: Scene, colors: Colors): void {
  const { width, height, timeline } = scene;
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  const top = AXIS_HEIGHT - scene.scroll;
  const first = Math.max(Math.floor(scene.scroll / scene.laneHeight), 0);
  const last = Math.min(Math.ceil((scene.scroll + height) / scene.laneHeight), timeline.threads.length);
  const most = mostDense(timeline);
  context.save();
  context.beginPath();
  context.rect(0, AXIS_HEIGHT, width, height - AXIS_HEIGHT);
  context.clip();
  for (let lane = first; lane < last; lane++) {
    drawLane(
      context,
      scene,
      colors,
      timeline.threads[lane],
      top + lane * scene.laneHeight,
      scene.cursor?.lane === lane,
      most,
    );
  }
  if (scene.calls) {
    drawCalls(context, scene, scene.calls, colors, top);
  }
  if (scene.hasCode) {
    drawNewCode(context, scene, colors, top + timeline.threads.length * scene.laneHeight);
  }
  for (const { lane, time } of scene.bookmarks) {
    const deep = scene.calls?.deep ?? 0;
    const stripHeight = scene.laneHeight - STRIP_MARGINS - deep * barHeight(scene.laneHeight, deep);
    drawFlag(context, xOf(scene, time), top + lane * scene.laneHeight + STRIP_TOP, stripHeight, colors);
  }
  context.restore();
  drawAxis(context, scene, colors);
  drawRange(context, scene, colors);
  drawCursor(context, scene, colors);
}

function mostDense(timeline: Timeline): number {
  let most = 0;
  for (const thread of timeline.threads) {
    for (const value of thread.density) {
      most = Math.max(most, value);
    }
  }
  return most;
}

function drawLane(
  context: CanvasRenderingContext2D,
  scene: Scene,
  colors: Colors,
  thread: TimelineThread,
  y: number,
  isCurrent: boolean,
  most: number,
): void {
  const { width, timeline, laneHeight: height } = scene;
  const strip = y + STRIP_TOP;
  const deep = scene.calls?.deep ?? 0;
  const stripHeight = height - STRIP_MARGINS - deep * barHeight(height, deep);
  if (isCurrent) {
    context.fillStyle = colors.picked;
    context.fillRect(0, y, GUTTER - 8, height);
  }
  context.fillStyle = colors.text;
  context.textAlign = "left";
  context.fillText(clip(context, thread.name || "thread", 96), 10, y + height / 2);
  context.fillStyle = colors.quiet;
  context.textAlign = "right";
  context.fillText(String(thread.tid), GUTTER - 14, y + height / 2);
  context.save();
  context.beginPath();
  context.rect(GUTTER, y, width - GUTTER, height);
  context.clip();
  const [left, right] = [xOf(scene, thread.started), xOf(scene, thread.ended)];
  context.fillStyle = colors.raised;
  context.fillRect(left, strip, Math.max(right - left, 1), stripHeight);
  const binNs = (timeline.to - timeline.from) / timeline.bins;
  const scale = Math.log(1 + most);
  for (let bin = 0; bin < thread.density.length; bin++) {
    const value = thread.density[bin];
    if (value > 0.5) {
      // From a third on: the darkest of the ramp would not stand out from a lane where nothing runs.
      context.fillStyle = toHex(heatColor(0.12 + 0.88 * (Math.log(1 + value) / scale)));
      const x = xOf(scene, timeline.from + bin * binNs);
      context.fillRect(x, strip, xOf(scene, timeline.from + (bin + 1) * binNs) - x + 0.4, stripHeight);
    }
  }
  for (const gap of thread.gaps) {
    drawGap(context, scene, colors, gap, strip, stripHeight);
  }
  if (timeline.threads.length > 1) {
    context.fillStyle = colors.accent;
    for (let bin = 0; bin < thread.newCode.length; bin++) {
      if (thread.newCode[bin] > 0) {
        context.fillRect(xOf(scene, timeline.from + bin * binNs), strip + stripHeight + 0.5, 1.5, 3);
      }
    }
  }
  for (const tick of thread.ticks) {
    const x = xOf(scene, tick.time);
    if (tick.kind === TICK_KIND.signal || tick.kind === TICK_KIND.fault) {
      context.fillStyle = tick.kind === TICK_KIND.fault ? colors.text : colors.warning;
      context.strokeStyle = colors.ground;
      context.beginPath();
      context.moveTo(x - 5, y);
      context.lineTo(x + 5, y);
      context.lineTo(x, y + 9);
      context.closePath();
      context.fill();
      context.stroke();
    } else {
      context.fillStyle = colors.ground;
      context.fillRect(x - 1, strip - 1, 3, 6);
      context.fillStyle = colors.text;
      context.fillRect(x, strip - 2, 1, 6);
    }
  }
  context.restore();
}

/** A name has the same color whatever else is in view. */
function colorOfName(name: string): Rgb {
  let sum = 0;
  for (let i = 0; i < name.length; i++) {
    sum = (sum * 31 + name.charCodeAt(i)) >>> 0;
  }
  return CATEGORIES[sum % CATEGORIES.length];
}

/** Bars of recorded calls below the strips of their threads, those within others below these. */
function drawCalls(
  context: CanvasRenderingContext2D,
  scene: Scene,
  bars: CallLanes,
  colors: Colors,
  top: number,
): void {
  const { width, laneHeight: height } = scene;
  const bar = barHeight(height, bars.deep);
  const lanes = new Map(scene.timeline.threads.map(({ tid }, lane) => [tid, top + lane * height]));
  const ofName = bars.names.map(colorOfName);
  context.save();
  context.beginPath();
  context.rect(GUTTER, AXIS_HEIGHT, width - GUTTER, scene.height - AXIS_HEIGHT);
  context.clip();
  context.textAlign = "left";
  for (let i = 0; i < bars.tid.length; i++) {
    const lane = lanes.get(bars.tid[i]);
    if (lane === undefined || lane > scene.height || lane + height < 0) {
      continue;
    }
    const y = lane + barsTop(height, bars.deep) + bars.depth[i] * bar;
    const left = Math.max(xOf(scene, bars.from[i]), GUTTER - 1);
    const right = Math.min(Math.max(xOf(scene, bars.to[i]), left + 1), width);
    if (right <= GUTTER || left >= width) {
      continue;
    }
    const color = ofName[bars.named[i]];
    context.fillStyle = toHex(color);
    if (bars.calls[i] === 1 && bars.to[i] === bars.from[i]) {
      drawMoment(context, left, y, bar - 1);
    } else {
      context.fillRect(left, y, Math.max(right - left - (right - left > 3 ? 0.5 : 0), 1), bar - 1);
    }
    if (bars.failed[i] > 0) {
      context.fillStyle = colors.warning;
      context.fillRect(left, y, Math.max(Math.min(right - left, 3), 1.5), bar - 1);
    }
    if (bars.call[i] === scene.markedCall) {
      context.strokeStyle = colors.text;
      context.lineWidth = 1.5;
      context.strokeRect(left - 0.5, y - 0.5, Math.max(right - left, 2) + 1, bar);
    }
    if (bar >= LEAST_NAMED_HEIGHT && right - left > 30) {
      const name = bars.names[bars.named[i]];
      const words = bars.calls[i] > 1 ? `${name} ×${formatInteger(bars.calls[i])}` : name;
      context.fillStyle = textOn(color);
      context.font = "10px system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif";
      context.fillText(clip(context, words, right - left - 6), left + 4, y + bar / 2);
    }
  }
  context.restore();
}

/** What took no time, as a place that the program came to: a line with a head. */
function drawMoment(context: CanvasRenderingContext2D, x: number, y: number, height: number): void {
  const half = Math.min(height / 2, 3);
  context.fillRect(x - 0.5, y, 1.5, height);
  context.beginPath();
  context.moveTo(x + 0.25 - half, y + half);
  context.lineTo(x + 0.25, y);
  context.lineTo(x + 0.25 + half, y + half);
  context.lineTo(x + 0.25, y + 2 * half);
  context.closePath();
  context.fill();
}

/** Hatched as high as its share of time is without order. */
function drawGap(
  context: CanvasRenderingContext2D,
  scene: Scene,
  colors: Colors,
  gap: TimelineThread["gaps"][number],
  strip: number,
  stripHeight: number,
): void {
  const [from, to] = [xOf(scene, gap.from), xOf(scene, gap.to)];
  const share = gap.to > gap.from ? Math.min(Math.max(gap.covers / (gap.to - gap.from), 0.3), 1) : 1;
  const height = Math.round(stripHeight * share);
  const y = strip + stripHeight - height;
  const [left, right] = [Math.max(from, GUTTER), Math.min(Math.max(to, from + 1.5), scene.width)];
  if (right <= left) {
    return;
  }
  context.save();
  context.beginPath();
  context.rect(left, y, right - left, height);
  context.clip();
  context.fillStyle = colors.raised;
  context.fillRect(left, y, right - left, height);
  context.strokeStyle = gap.reason === GAP_REASON.lost ? colors.warning : colors.quiet;
  context.lineWidth = 1.2;
  context.beginPath();
  // Hatching that stays where it is in time's picture when the panel scrolls.
  for (let x = Math.floor((left - height) / HATCH_STEP) * HATCH_STEP; x < right; x += HATCH_STEP) {
    context.moveTo(x, y + height);
    context.lineTo(x + height, y);
  }
  context.stroke();
  const words = wordsOfGap(gap.reason);
  const needed = context.measureText(words).width + 12;
  if (right - left > needed + 16 && height >= 13) {
    const middle = (left + right) / 2;
    context.fillStyle = colors.raised;
    context.fillRect(middle - needed / 2, y, needed, height);
    context.fillStyle = colors.text;
    context.textAlign = "center";
    context.fillText(words, middle, y + height / 2 + 0.5);
  }
  context.restore();
}

function drawNewCode(context: CanvasRenderingContext2D, scene: Scene, colors: Colors, y: number): void {
  const { timeline, width } = scene;
  context.fillStyle = colors.quiet;
  context.textAlign = "left";
  context.fillText("new code", 10, y + NEW_CODE_HEIGHT / 2);
  context.save();
  context.beginPath();
  context.rect(GUTTER, y, width - GUTTER, NEW_CODE_HEIGHT);
  context.clip();
  const scale = Math.log(1 + timeline.newCode.reduce((most, value) => Math.max(most, value), 1));
  const binNs = (timeline.to - timeline.from) / timeline.bins;
  context.fillStyle = colors.accent;
  timeline.newCode.forEach((value, bin) => {
    if (value > 0) {
      const height = 2 + (NEW_CODE_HEIGHT - 6) * (Math.log(1 + value) / scale);
      const x = xOf(scene, timeline.from + bin * binNs);
      const right = xOf(scene, timeline.from + (bin + 1) * binNs);
      context.fillRect(x, y + NEW_CODE_HEIGHT - 2 - height, Math.max(right - x, 1), height);
    }
  });
  context.restore();
}

function clip(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) {
    return text;
  }
  let n = text.length;
  while (n > 1 && context.measureText(`${text.slice(0, n)}…`).width > width) {
    n--;
  }
  return `${text.slice(0, n)}…`;
}
