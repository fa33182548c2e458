// What makes files of a function's picture: painted larger, as SVG, frame by frame.
import type { LaidOutFlow } from "../../model/flow/flow-of-function.ts";
import { type ShownPicture, shownPicture } from "../../model/export/shown-picture.ts";
import type { FlowCamera, Size } from "./flow-camera.ts";
import { type Marks, paintFlow } from "./flow-painter.ts";
import { flowSvg } from "./flow-svg.ts";
import { readTheme } from "./flow-theme.tsx";

type Draw = (context: CanvasRenderingContext2D, width: number, height: number) => void;

/** Offer the picture that `canvas` shows. `afterFrame` is to be called when it was painted, `end` when it is gone. */
export function showFlowPicture(
  of: LaidOutFlow,
  canvas: HTMLCanvasElement,
  now: { camera: () => FlowCamera; view: () => Size; marks: () => Marks },
): { afterFrame: () => void; end: () => void } {
  const followers = new Set<(draw: Draw) => void>();
  const draw: Draw = (context, width) => {
    const view = now.view();
    paintFlow(context, of, now.camera(), view, width / Math.max(view.width, 1), readTheme(canvas), now.marks());
  };
  const shown: ShownPicture = {
    name: "function",
    size: now.view,
    paint: (ratio) => {
      const { width, height } = now.view();
      const found = document.createElement("canvas");
      [found.width, found.height] = [Math.round(width * ratio), Math.round(height * ratio)];
      const context = found.getContext("2d");
      if (context) {
        draw(context, found.width, found.height);
      }
      return Promise.resolve(found);
    },
    svg: () => flowSvg(of, readTheme(canvas)),
    follow: (onFrame) => {
      followers.add(onFrame);
      onFrame(draw);
      return () => followers.delete(onFrame);
    },
  };
  shownPicture.value = shown;
  return {
    afterFrame: () => followers.forEach((follower) => follower(draw)),
    end: () => {
      if (shownPicture.peek() === shown) {
        shownPicture.value = null;
      }
    },
  };
}
