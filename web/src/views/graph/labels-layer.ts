// Names over the picture: of what is selected, of what is under the pointer, and of the hottest functions in the frame.
import { type LabelPlace, type LabelWish, placeLabels, type Rectangle } from "../../base/label-placement.ts";
import { type Rgb, toHex } from "../../base/color.ts";
import { TextWidths } from "../../base/text-widths.ts";
import { captionsOf } from "./captions.ts";
import { IN_COLOR, OUT_COLOR } from "./marked-edges.ts";
import type { GraphPicture } from "./picture.ts";

/** A label is so much higher than its letters. */
const PADDING_PX = 7;
const MOST_LETTERS = 34;
/** How many labels there are at rest and while moving, at most. */
const MOST = { rest: 26, moving: 8 };
/** So many labels' heights from its node a caption may be, where there is no room beside it; a line then leads to it. */
const CAPTION_REACH = 4;
/** Beside captions of what is selected so many of the others. */
const MOST_BESIDE_CAPTIONS = 6;
/** One label to so much of the picture: more would hide what they name. */
const AREA_PX = 30_000;
/** Only so many of the hottest functions are looked at. */
const MOST_WISHES = 240;

/** A function that may have a label: its node where it is drawn as one, else the hottest of its blocks. */
export interface LabelledFunction {
  drawn: number;
  name: string;
  /** How often it was entered, in words; empty where it was not counted. */
  entered: string;
  /** How often its hottest block was executed. */
  executions: number;
  hottestBlock: number;
}

export interface LabelColors {
  text: string;
  quiet: string;
  panel: string;
  line: string;
  accent: string;
  /** Of what was executed just before the cursor. */
  glow: string;
}

/** A label as it is drawn, in CSS pixels. */
export interface ShownLabel {
  text: string;
  left: number;
  top: number;
  width: number;
  height: number;
  isMarked: boolean;
  /** The colour of the end of an edge that it is a caption of. */
  end: Rgb | null;
  /** A line from what it is of, where that is away. */
  leader: { x: number; y: number; toX: number; toY: number } | null;
}

export class LabelsLayer {
  /** What was drawn last. */
  shown: readonly ShownLabel[] = [];
  private letters = 12;

  private readonly widths = new TextWidths((text) => this.context?.measureText(text).width ?? 7 * text.length);
  private readonly context: CanvasRenderingContext2D | null;

  constructor(private readonly canvas: HTMLCanvasElement) {
    // Drawn by the processor: text on a graphics processor that is simulated takes many times as long.
    this.context = canvas.getContext("2d", { willReadFrequently: true });
  }

  /** The size of letters, in CSS pixels. */
  get fontSize(): number {
    return this.letters;
  }

  set fontSize(size: number) {
    if (size !== this.letters) {
      this.letters = size;
      this.widths.clear();
    }
  }

  setSize(width: number, height: number, ratio: number): void {
    this.canvas.width = Math.max(Math.round(width * ratio), 1);
    this.canvas.height = Math.max(Math.round(height * ratio), 1);
    this.context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /** `ranked` has the hottest first. Labels keep off `taken`. Gives the captions that are shown. */
  draw(
    picture: GraphPicture,
    ranked: readonly LabelledFunction[],
    byDrawn: ReadonlyMap<number, LabelledFunction>,
    colors: LabelColors,
    isShown: boolean,
    taken: readonly Rectangle[],
  ): string[] {
    const { context } = this;
    const { placed, frame } = picture;
    if (!context || !placed) {
      return [];
    }
    context.clearRect(0, 0, frame.width, frame.height);
    this.shown = [];
    const { nBlocks } = placed.places;
    const project = picture.projector();
    const nodeOf = (one: LabelledFunction) => (picture.isOpen[one.drawn] ? one.hottestBlock : nBlocks + one.drawn);
    const functionOf = (node: number) => (node < nBlocks ? placed.graph.functionOfBlock[node] : node - nBlocks);
    this.drawTrail(picture, project, colors);
    const rings = [...new Set([picture.selectedNode, picture.hoveredNode])].filter((node) => node >= 0);
    for (const node of rings) {
      this.drawRing(picture, node, project(node), colors, node === picture.selectedNode);
    }
    if (!isShown) {
      return [];
    }
    const labelHeight = this.letters + PADDING_PX;
    context.font = `${this.letters}px ui-monospace, "DejaVu Sans Mono", monospace`;
    const wishes: (LabelWish & { text: string; isMarked: boolean; isBehind: boolean; end: Rgb | null })[] = [];
    const wish = (text: string, node: number, isMarked: boolean, end: Rgb | null = null) => {
      const [x, y, depth] = project(node);
      if (depth <= 0) {
        return;
      }
      const isBehind = placed.result.cylinderRadius > 0 && depth > picture.eye.distance + 0.2 * picture.reach;
      const gap = picture.diameter(node, depth) / 2 + 5;
      wishes.push({
        id: wishes.length,
        x,
        y,
        width: this.widths.of(text) + 12,
        height: labelHeight,
        gap,
        text,
        isMarked,
        isBehind,
        end,
        further: end ? CAPTION_REACH * labelHeight : 0,
      });
    };
    const told = (one: LabelledFunction) => (one.entered ? `${shorten(one.name)} ${one.entered}` : shorten(one.name));
    const marked = new Set<number>();
    for (const node of rings) {
      const of = byDrawn.get(functionOf(node));
      if (of && !marked.has(of.drawn)) {
        marked.add(of.drawn);
        wish(told(of), node, true);
      }
    }
    const captions = captionsOf(
      placed.graph,
      picture.neighbours,
      (drawn) => byDrawn.get(drawn)?.executions ?? 0,
      shorten,
    );
    for (const { text, node, drawn, isOut } of captions) {
      marked.add(drawn);
      wish(text, node, false, isOut ? OUT_COLOR : IN_COLOR);
    }
    const before = wishes.length;
    for (const one of ranked.slice(0, MOST_WISHES)) {
      if (!marked.has(one.drawn)) {
        wish(told(one), nodeOf(one), false);
      }
    }
    const room = Math.min(picture.isMoving ? MOST.moving : MOST.rest, (frame.width * frame.height) / AREA_PX);
    const most = captions.length > 0 ? before + (picture.isMoving ? 0 : MOST_BESIDE_CAPTIONS) : room;
    const shown: string[] = [];
    const places = placeLabels(wishes, frame, most, taken, 3);
    this.shown = places.map((place) => {
      const { text, isMarked, end } = wishes[place.id];
      const { left, top, width, height } = place;
      return { text, left, top, width, height, isMarked, end, leader: leaderOf(wishes[place.id], place, end) };
    });
    for (const { leader, end } of this.shown) {
      this.drawLeader(leader, end);
    }
    for (const place of places) {
      const { text, isMarked, isBehind, end } = wishes[place.id];
      // On whole pixels: else thin strokes, like underscores, are smeared.
      const [left, top] = [Math.round(place.left), Math.round(place.top)];
      context.globalAlpha = isBehind && !isMarked && !end ? 0.7 : 1;
      context.fillStyle = colors.panel;
      context.strokeStyle = end ? toHex(end) : isMarked ? colors.accent : colors.line;
      context.lineWidth = 1;
      context.beginPath();
      context.roundRect(left + 0.5, top + 0.5, place.width - 1, place.height - 1, 3);
      context.fill();
      context.stroke();
      context.fillStyle = colors.text;
      context.textBaseline = "middle";
      context.fillText(text, left + 6, Math.round(top + labelHeight / 2));
      if (end) {
        shown.push(text);
      }
    }
    context.globalAlpha = 1;
    return shown;
  }

  /** What was executed just before the cursor: a glow around each, the brighter the later, and a ring around the last. */
  private drawTrail(
    picture: GraphPicture,
    project: (node: number) => [number, number, number],
    colors: LabelColors,
  ): void {
    const { context } = this;
    const trail = picture.trail();
    if (!context) {
      return;
    }
    for (const { node, weight } of trail.toReversed()) {
      const [x, y, depth] = project(node);
      const radius = picture.diameter(node, depth) / 2 + 11;
      if (depth > 0) {
        const glow = context.createRadialGradient(x, y, 1, x, y, radius);
        glow.addColorStop(0, colors.glow);
        // Strong for half the way: on a light ground what fades at once is not seen.
        glow.addColorStop(0.5, `${colors.glow}a0`);
        glow.addColorStop(1, `${colors.glow}00`);
        context.globalAlpha = 0.3 + 0.6 * weight;
        context.fillStyle = glow;
        context.beginPath();
        context.arc(x, y, radius, 0, 2 * Math.PI);
        context.fill();
      }
    }
    context.globalAlpha = 1;
    if (trail.length > 0) {
      const last = trail[0].node;
      const [x, y, depth] = project(last);
      if (depth > 0) {
        for (const [width, color] of [
          [5, colors.panel],
          [2.5, colors.glow],
        ] as const) {
          context.beginPath();
          context.arc(x, y, picture.diameter(last, depth) / 2 + 6, 0, 2 * Math.PI);
          context.lineWidth = width;
          context.strokeStyle = color;
          context.stroke();
        }
      }
    }
  }

  private drawRing(
    picture: GraphPicture,
    node: number,
    [x, y, depth]: [number, number, number],
    colors: LabelColors,
    isSelected: boolean,
  ): void {
    const { context } = this;
    if (!context || depth <= 0) {
      return;
    }
    const radius = picture.diameter(node, depth) / 2;
    for (const [away, width, color] of [
      [radius + 3, 3.5, colors.panel],
      [radius + 3, isSelected ? 2 : 1.2, isSelected ? colors.accent : colors.text],
    ] as const) {
      context.beginPath();
      context.arc(x, y, away, 0, 2 * Math.PI);
      context.lineWidth = width;
      context.strokeStyle = color;
      context.stroke();
    }
  }

  private drawLeader(leader: ShownLabel["leader"], end: Rgb | null): void {
    const { context } = this;
    if (context && leader && end) {
      context.globalAlpha = 1;
      context.strokeStyle = toHex(end);
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(leader.x, leader.y);
      context.lineTo(leader.toX, leader.toY);
      context.stroke();
    }
  }
}

/** A line from the point that a caption is of to its side, if it is away from there. */
function leaderOf({ x, y, gap }: LabelWish, place: LabelPlace, end: Rgb | null): ShownLabel["leader"] {
  const toX = Math.min(Math.max(x, place.left), place.left + place.width);
  const toY = Math.min(Math.max(y, place.top), place.top + place.height);
  return end && Math.hypot(toX - x, toY - y) > gap + 2 ? { x, y, toX, toY } : null;
}

/** Long names lose their middle: of C++ and Rust the end tells most, of others the beginning. */
export function shorten(name: string): string {
  const letters = [...name];
  if (letters.length <= MOST_LETTERS) {
    return name;
  }
  const kept = Math.floor((MOST_LETTERS - 1) / 2);
  return `${letters.slice(0, kept).join("")}…${letters.slice(-kept).join("")}`;
}
