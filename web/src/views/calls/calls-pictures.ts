// What makes files of the view of calls: painted larger, and as SVG.
import { effect } from "@preact/signals";
import { paintShapes, shapesToSvg } from "../../base/shapes.ts";
import { chartBy, shownChart } from "../../model/calls/calls.ts";
import { type CallsPicture, type CallsTheme, drawCalls } from "../../model/calls/calls-picture.ts";
import { touchGraph } from "../../model/calls/shown-touches.ts";
import { type ShownPicture, shownPicture, svgDocument } from "../../model/export/shown-picture.ts";
import { calls, range } from "../../model/view-state.ts";
import { themeColors } from "../theme-variables.ts";

/** Offer the picture of what `view` shows as long as it shows one; what is returned ends that. */
export function showCallsPicture(view: HTMLElement): () => void {
  const shown: ShownPicture = {
    name: "calls",
    size: () => drawSeen(view),
    paint: (ratio) => Promise.resolve(paint(drawSeen(view), readTheme(view).ground, ratio)),
    svg: () => {
      const { width, height, shapes } = drawSeen(view);
      return svgDocument(width, height, readTheme(view).ground, [shapesToSvg(shapes, "calls")]);
    },
    // Nothing in it moves as a replay goes on.
    follow: null,
  };
  const stop = effect(() => {
    shownPicture.value = shownChart.value || hasTouches() ? shown : null;
  });
  return () => {
    stop();
    if (shownPicture.peek() === shown) {
      shownPicture.value = null;
    }
  };
}

const hasTouches = () => (touchGraph.value?.lines.length ?? 0) > 0;

function drawSeen(view: HTMLElement): CallsPicture {
  const { width, height } = (view.querySelector(".calls-bars") ?? view).getBoundingClientRect();
  const letters = document.createElement("canvas").getContext("2d")!;
  letters.font = "12px sans-serif";
  const { entity } = calls.peek();
  const seen = {
    chart: shownChart.peek(),
    by: chartBy.peek(),
    range: range.peek(),
    touches: hasTouches() ? touchGraph.peek() : null,
    entity,
  };
  return drawCalls(seen, { width, height }, readTheme(view), (text) => letters.measureText(text).width);
}

function paint({ width, height, shapes }: CallsPicture, ground: string, ratio: number): HTMLCanvasElement {
  const found = document.createElement("canvas");
  [found.width, found.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = found.getContext("2d");
  if (context) {
    context.fillStyle = ground;
    context.fillRect(0, 0, found.width, found.height);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintShapes(context, shapes);
  }
  return found;
}

function readTheme(view: HTMLElement): CallsTheme {
  return themeColors(view, ["ground", "panel", "line", "text", "quiet", "accent", "picked", "straight"]);
}
