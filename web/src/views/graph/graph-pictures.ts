// What makes files of the graph's picture: painted larger, as SVG, frame by frame.
import type { Signal } from "@preact/signals";
import { paintShapes, type Shape } from "../../base/shapes.ts";
import { type ShownPicture, shownPicture } from "../../model/export/shown-picture.ts";
import { BRANCH_LEGEND, EDGE_LEGEND } from "../../model/graph/edge-colors.ts";
import { type GraphScene, processScene } from "../../model/graph/scene.ts";
import { settings } from "../../model/settings.ts";
import { cursor, mode } from "../../model/view-state.ts";
import { graphSvg } from "./graph-svg.ts";
import { REPLAY_LEGEND, SELECTED_LEGEND } from "./legend.tsx";
import { legendShapes } from "./legend-shapes.ts";
import type { LabelColors, LabelsLayer } from "./labels-layer.ts";
import { countWords } from "./node-facts.ts";
import type { FrameReport, GraphPicture } from "./picture.ts";

const LEGEND_MARGIN = 12;

type Draw = (context: CanvasRenderingContext2D, width: number, height: number) => void;

/** What the picture is drawn with. */
interface Parts {
  canvas: HTMLCanvasElement;
  overlay: HTMLCanvasElement;
  picture: GraphPicture;
  labels: LabelsLayer;
  scene: GraphScene;
  ground: () => string;
  colors: () => LabelColors;
  /** Have both canvases so many pixels by CSS pixel; null for as many as the screen has. */
  setRatio: (ratio: number | null) => void;
}

export class GraphPictures {
  private waiting: { ratio: number; done: (canvas: HTMLCanvasElement) => void; fail: (error: Error) => void } | null =
    null;
  private readonly followers = new Set<(draw: Draw) => void>();
  private readonly shown: ShownPicture;

  constructor(private readonly parts: Parts) {
    this.shown = {
      name: "graph",
      size: () => parts.picture.frame,
      paint: (ratio) => this.paint(ratio),
      svg: () => this.svg(),
      follow: (onFrame) => {
        this.followers.add(onFrame);
        parts.picture.redraw();
        return () => this.followers.delete(onFrame);
      },
    };
    this.place.value = this.shown;
  }

  /** Of a part of a graph who shows all parts knows the picture. */
  private get place(): Signal<ShownPicture | null> {
    return this.parts.scene.part?.shown ?? shownPicture;
  }

  dispose(): void {
    if (this.place.peek() === this.shown) {
      this.place.value = null;
    }
    this.waiting?.fail(new Error("the graph is not shown any more"));
    this.waiting = null;
  }

  /** A frame was drawn, just now: until the task ends the canvas has it. */
  afterFrame(report: FrameReport): void {
    for (const follower of this.followers) {
      follower(this.draw);
    }
    if (this.waiting && report.isWhole) {
      const { ratio, done } = this.waiting;
      this.waiting = null;
      const { width, height } = this.parts.picture.frame;
      const found = document.createElement("canvas");
      [found.width, found.height] = [Math.round(width * ratio), Math.round(height * ratio)];
      const context = found.getContext("2d");
      if (context) {
        this.draw(context, found.width, found.height);
      }
      this.parts.setRatio(null);
      done(found);
    }
  }

  private paint(ratio: number): Promise<HTMLCanvasElement> {
    const { picture } = this.parts;
    if (!picture.placed || !picture.colors || this.waiting) {
      return Promise.reject(new Error("the graph is still being drawn"));
    }
    return new Promise((done, fail) => {
      this.waiting = { ratio, done, fail };
      this.parts.setRatio(ratio);
    });
  }

  private svg(): string {
    const { picture, labels, scene } = this.parts;
    const counts = scene.drawnCounts.peek();
    if (!counts) {
      throw new Error("the graph is still being counted");
    }
    return graphSvg(picture, counts, {
      ground: this.parts.ground(),
      colors: this.parts.colors(),
      labels: labels.shown,
      legend: this.legend(),
      edgeOpacity: settings.peek().edgeOpacity,
      labelSize: labels.fontSize,
      describe: scene.describe ?? countWords,
    });
  }

  private legend(): Shape[] {
    const { scene } = this.parts;
    const legend = scene.nodeColors.peek()?.legend;
    const edges = mode.peek() === "structure" ? EDGE_LEGEND : mode.peek() === "conditionals" ? BRANCH_LEGEND : [];
    const isProcess = scene === processScene;
    const { glow } = this.parts.colors();
    // The mode is that of the process' graph, and so is the place in time.
    const lines = [
      ...(isProcess ? edges : []),
      ...(scene.selection.peek() ? SELECTED_LEGEND : []),
      ...(isProcess && cursor.peek() ? [{ color: glow, label: `ring: ${REPLAY_LEGEND[0]}, glow: before` }] : []),
    ];
    const bottom = this.parts.picture.frame.height - LEGEND_MARGIN;
    return legend && scene.part?.hasLegend !== false
      ? legendShapes(legend, lines, this.parts.colors(), LEGEND_MARGIN, bottom)
      : [];
  }

  private readonly draw: Draw = (context, width, height) => {
    const { canvas, overlay, picture, ground } = this.parts;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = ground();
    context.fillRect(0, 0, width, height);
    context.drawImage(canvas, 0, 0, width, height);
    context.drawImage(overlay, 0, 0, width, height);
    context.setTransform(width / picture.frame.width, 0, 0, height / picture.frame.height, 0, 0);
    paintShapes(context, this.legend());
  };
}
