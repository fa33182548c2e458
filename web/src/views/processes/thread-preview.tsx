// The small picture of what a thread, or a whole process, executed: across by how many calls deep a function is, down by
// when it was discovered, as coloured as it was busy; thin lines lead to it from the function that called it first.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { heatColor, heatOf, toHex } from "../../base/color.ts";
import { formatInteger } from "../../base/format.ts";
import { instructionsByFunction, type Preview } from "../../model/previews.ts";
import { settings } from "../../model/settings.ts";
import { themeVariables } from "../theme-variables.ts";

const WIDTH = 132;
const HEIGHT = 38;
const MARGIN = 3;
/** Depths are drawn closer the deeper they are; most is at the outer ones. */
const DEPTH_POWER = 0.75;
const COLOR_STEPS = 24;
const MOST_LINES = 4000;
/** Heat from which colours are too pale for a light ground. */
const PALE_FROM = 0.7;

export function ThreadPreview({ of, tid, name }: { of: Preview; tid: number | null; name: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const executed = useMemo(() => instructionsByFunction(of, tid), [of, tid]);
  const { ran, hottest } = useMemo(() => summarize(executed), [executed]);
  const { theme } = settings.value;
  useLayoutEffect(() => draw(canvas.current!, of, executed, theme === "light"), [of, executed, theme]);
  const label =
    ran === 0
      ? `${name}: executed nothing`
      : `${name}: ${formatInteger(ran)} functions, most in ${of.functions.names[hottest]}`;
  return (
    <canvas
      ref={canvas}
      class="thread-preview"
      role="img"
      aria-label={label}
      title={label}
      data-ran={ran}
      style={{ width: `${WIDTH}px`, height: `${HEIGHT}px` }}
    />
  );
}

function summarize(executed: Float64Array): { ran: number; hottest: number } {
  let ran = 0;
  let hottest = 0;
  for (let i = 0; i < executed.length; i++) {
    ran += executed[i] > 0 ? 1 : 0;
    hottest = executed[i] > executed[hottest] ? i : hottest;
  }
  return { ran, hottest };
}

function draw(canvas: HTMLCanvasElement, { functions: of }: Preview, executed: Float64Array, isLight: boolean): void {
  const scale = Math.max(window.devicePixelRatio, 1);
  canvas.width = Math.round(WIDTH * scale);
  canvas.height = Math.round(HEIGHT * scale);
  const context = canvas.getContext("2d");
  if (!context) {
    return;
  }
  context.scale(scale, scale);
  const deepest = Math.max(
    of.depth.reduce((a, b) => Math.max(a, b), 0),
    1,
  );
  const most = executed.reduce((a, b) => Math.max(a, b), 0);
  const x = (i: number) => MARGIN + (WIDTH - 2 * MARGIN) * (of.depth[i] / deepest) ** DEPTH_POWER;
  const y = (i: number) => MARGIN + ((HEIGHT - 2 * MARGIN) * i) / Math.max(of.count - 1, 1);
  const ran: number[] = [];
  for (let i = 0; i < of.count; i++) {
    if (executed[i] > 0) {
      ran.push(i);
    }
  }
  const read = themeVariables(canvas);
  context.strokeStyle = read("--straight");
  context.globalAlpha = 0.16;
  context.lineWidth = 0.5;
  context.beginPath();
  for (const i of ran.slice(0, MOST_LINES)) {
    const caller = of.caller[i];
    if (caller >= 0 && executed[caller] > 0) {
      context.moveTo(x(caller), y(caller));
      context.lineTo(x(i), y(i));
    }
  }
  context.stroke();
  context.globalAlpha = 1;
  const rim = read("--quiet");
  // The busiest last, so that nothing lies on them.
  ran.sort((a, b) => executed[a] - executed[b]);
  for (const i of ran) {
    const heat = heatOf(executed[i], most);
    context.fillStyle = COLORS[Math.round(heat * (COLOR_STEPS - 1))];
    const size = 1 + 1.8 * heat ** 3;
    if (isLight && heat > PALE_FROM) {
      // The hottest are pale: a rim sets them off.
      context.fillStyle = rim;
      context.fillRect(x(i) - size / 2 - 0.6, y(i) - size / 2 - 0.6, size + 1.2, size + 1.2);
      context.fillStyle = COLORS[Math.round(heat * (COLOR_STEPS - 1))];
    }
    context.fillRect(x(i) - size / 2, y(i) - size / 2, size, size);
  }
}

const COLORS = Array.from({ length: COLOR_STEPS }, (_, step) => toHex(heatColor(step / (COLOR_STEPS - 1))));
