// The picture of a graph: what is in it, from where it is seen, and when it is drawn anew. It is drawn only when something
// changed: coarsely while it moves, and then, edge by edge, in full.
import { CATEGORIES, type Rgb } from "../../base/color.ts";
import {
  type Eye,
  fitEye,
  type Frame,
  mixEyes,
  type Padding,
  pixelsPerUnit,
  projectionMatrix,
  projectPoint,
} from "../../base/projection.ts";
import {
  edgesAt,
  edgesAtFunction,
  listEdges,
  listNodes,
  nodeOfSelection,
  openFunctions,
} from "../../model/graph/detail.ts";
import type { EdgeColors } from "../../model/graph/edge-colors.ts";
import { nodePixels, type NodeSize, pickNode, shareInFrame } from "../../model/graph/picking.ts";
import type { PlacedGraph } from "../../model/graph/scene.ts";
import type { RecentBlock } from "../../model/recent.ts";
import type { Camera, Selection } from "../../model/view-state.ts";
import { FramePace, MOST_EDGES } from "./frame-pace.ts";
import { measureNodes, NO_SIZES, sizeOfNode } from "./node-sizes.ts";
import { GraphRenderer, LEAST_FRONT_PX, type Look, type Sight } from "./renderer.ts";

/** After so long without a movement the picture is at rest. */
const REST_MS = 160;
const CHANGE_MS = 650;
/** Up to so many edges are drawn at their full strength. */
const FULL_EDGES = 12_000;
const MOST_MARKED = 4000;
/** So many nodes that were executed just before the cursor glow. */
const MOST_TRAIL = 16;

export const OUT_COLOR: Rgb = CATEGORIES[0];
export const IN_COLOR: Rgb = CATEGORIES[1];

/** From a little above; and on a cylinder with the hottest block in front, so far to the side. */
const START_ANGLES = { yaw: 0.55, pitch: 0.32 };

/** Colours of everything drawn: four bytes by node, blocks first. */
export interface PictureColors {
  blocks: Uint8Array;
  functions: Uint8Array;
  edges: EdgeColors;
  links: EdgeColors;
}

/** What is told after a frame. */
export interface FrameReport {
  isMoving: boolean;
  /** All edges of this picture are drawn. */
  isWhole: boolean;
  nodes: number;
  edges: number;
  /** How long the last frame took that is there, this one or one before; 0 if none is. */
  frameMs: number;
}

interface Change {
  start: number;
  eyeFrom: Eye;
  eyeTo: Eye;
  movesNodes: boolean;
}

export class GraphPicture {
  frame: Frame = { width: 1, height: 1 };
  eye: Eye = { ...START_ANGLES, distance: 10, target: [0, 0, 0] };
  placed: PlacedGraph | null = null;
  /** Which drawn functions are drawn by their blocks. */
  isOpen: Uint8Array = new Uint8Array(0);
  nodes: Uint32Array = new Uint32Array(0);
  selectedNode = -1;
  hoveredNode = -1;
  isMoving = false;

  /** How much of the lower left corner something lies over, in CSS pixels; null for nothing. */
  corner: () => { width: number; height: number } | null = () => null;

  private readonly renderer: GraphRenderer;
  private ratio = 1;
  private look: Look = { ground: [0, 0, 0], isDark: true };
  private opacity = 1;
  private padding: Padding = { top: 0, right: 0, bottom: 0, left: 0 };
  private colors: PictureColors | null = null;
  private selection: Selection | null = null;
  private recent: readonly RecentBlock[] | null = null;
  private hottest = -1;
  private sizes = NO_SIZES;
  private readonly pace = new FramePace();
  private change: Change | null = null;
  private between = 1;
  private isFitted = true;
  private lastMove = -Infinity;
  private request = 0;
  private restTimer = 0;
  private listsAre: "none" | "moving" | "rest" = "none";
  private drawnEdges = 0;
  private edgeCount = 0;
  /** How many edges the picture at rest has. */
  private allEdges = 0;
  private mustDrawEdges = true;
  /** When the frame began that is not there yet, and whether it moved; and how long the last one took. */
  private running: { start: number; isMoving: boolean } | null = null;
  private frameMs = 0;
  /** Another frame is wanted. */
  private isWanted = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly onFrame: (report: FrameReport) => void,
    /** The reader moved the camera, and let go. */
    private readonly onCamera: (camera: Camera) => void,
    private readonly isStill: () => boolean,
  ) {
    this.renderer = new GraphRenderer(canvas);
  }

  dispose(): void {
    cancelAnimationFrame(this.request);
    clearTimeout(this.restTimer);
    this.renderer.dispose();
  }

  setSize(frame: Frame, ratio: number, padding: Padding): void {
    this.frame = frame;
    this.ratio = ratio;
    this.padding = padding;
    this.canvas.width = Math.max(Math.round(frame.width * ratio), 1);
    this.canvas.height = Math.max(Math.round(frame.height * ratio), 1);
    if (this.isFitted && !this.change) {
      this.eye = this.fittedEye();
    }
    this.redraw();
  }

  setLook(look: Look, opacity: number): void {
    this.look = look;
    this.opacity = opacity;
    if (!this.placed) {
      this.renderer.warmUp(look);
    }
    this.redraw();
  }

  /** Another layout, or another graph. `camera` is the one that the reader set for it, or null. */
  setPlaced(placed: PlacedGraph, camera: Camera | null): void {
    const before = this.placed;
    const isSameGraph = before?.graph === placed.graph;
    // What comes on the way to a layout replaces what was there at once: the next is there before a change would end.
    const isOnTheWay = isSameGraph && !before.isFinal && before.result.layout === placed.result.layout;
    this.placed = placed;
    this.sizes = measureNodes(placed);
    const { nBlocks } = placed.places;
    this.renderer.nBlocks = nBlocks;
    const moves = isSameGraph && !isOnTheWay && !this.isStill();
    this.renderer.setPlaces({ cells: this.sizes.cells, cylinderRadius: placed.result.cylinderRadius }, moves);
    if (!isSameGraph) {
      this.isOpen = new Uint8Array(placed.graph.nFunctions);
      this.colors = null;
      this.hottest = -1;
      this.hoveredNode = -1;
    }
    this.isFitted = camera === null;
    if (!isOnTheWay || camera === null) {
      this.goTo(camera ?? this.fittedEye(), moves, moves);
    }
    this.listsAre = "none";
    this.redraw();
  }

  setColors(colors: PictureColors, hottest: number): void {
    const isFirst = this.colors === null;
    this.colors = colors;
    this.hottest = hottest;
    if (isFirst && this.isFitted) {
      this.eye = this.fittedEye();
    }
    const all = new Uint8Array(colors.blocks.length + colors.functions.length);
    all.set(colors.blocks);
    all.set(colors.functions, colors.blocks.length);
    this.renderer.setColors(all);
    this.listsAre = "none";
    this.redraw();
  }

  setSelection(selection: Selection | null): void {
    this.selection = selection;
    // Its function is drawn by its blocks, which may be others than before.
    this.listsAre = "none";
    this.redraw();
  }

  /** What was executed just before the cursor, the last first; null without a cursor. */
  setRecent(recent: readonly RecentBlock[] | null): void {
    if (this.recent !== recent) {
      this.recent = recent;
      this.requestFrame();
    }
  }

  /** The nodes that were executed just before the cursor as they are drawn, the last first. */
  trail(): { node: number; weight: number }[] {
    const { placed, recent, isOpen } = this;
    const found = new Map<number, number>();
    for (const { block, weight } of placed ? (recent ?? []) : []) {
      const node = nodeOfSelection(placed!.graph, placed!.places.nBlocks, isOpen, { kind: "block", index: block });
      if (node >= 0 && !found.has(node)) {
        found.set(node, weight);
        if (found.size === MOST_TRAIL) {
          break;
        }
      }
    }
    return [...found].map(([node, weight]) => ({ node, weight }));
  }

  setHovered(node: number): void {
    if (node !== this.hoveredNode) {
      this.hoveredNode = node;
      this.markEdges();
      this.requestFrame();
    }
  }

  /** The state's camera changed: null for everything in the frame. */
  setCamera(camera: Camera | null): void {
    this.isFitted = camera === null;
    const eye = camera ?? this.fittedEye();
    const isThere = camera !== null && sameEye(eye, this.change?.eyeTo ?? this.eye);
    if (!isThere) {
      this.goTo(eye, !this.isStill(), false);
    }
  }

  /** Everything in the frame. */
  fit(): void {
    clearTimeout(this.restTimer);
    this.setCamera(null);
  }

  /** The reader moves the camera. */
  move(change: (eye: Eye, frame: Frame) => Eye): void {
    if (!this.placed) {
      return;
    }
    this.finishChange();
    this.isFitted = false;
    this.eye = change(this.eye, this.frame);
    this.lastMove = performance.now();
    clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => {
      this.onCamera({ ...this.eye });
      this.redraw();
    }, REST_MS);
    this.mustDrawEdges = true;
    this.requestFrame();
  }

  /** The node at a place of the canvas, in CSS pixels; -1 for none. */
  pick(x: number, y: number): number {
    const { placed } = this;
    return placed ? pickNode(this.nodes, placed.places.positions, this.sizeOf, this.eye, this.frame, x, y) : -1;
  }

  /** x, y and depth of nodes, in CSS pixels. */
  projector(): (node: number) => [number, number, number] {
    const matrix = projectionMatrix(this.eye, this.frame, 1);
    const positions = this.placed?.places.positions ?? new Float32Array(0);
    const found = [0, 0, 0];
    return (node) => {
      projectPoint(matrix, this.frame, positions, node, found);
      return [found[0], found[1], found[2]];
    };
  }

  /** The diameter of a node in CSS pixels at a depth. */
  diameter(node: number, depth: number): number {
    const isFront = node === this.selectedNode || node === this.hoveredNode || node === this.hottest;
    const found = nodePixels(this.sizeOf(node), pixelsPerUnit(this.frame), depth);
    return isFront ? Math.max(found, LEAST_FRONT_PX) : found;
  }

  /** The share of the nodes inside the frame, 0 to 1. */
  inFrame(): number {
    return this.placed ? shareInFrame(this.nodes, this.placed.places.positions, this.eye, this.frame) : 0;
  }

  /** How far the eye's target is from what is farthest away from it. */
  get reach(): number {
    const { target } = this.eye;
    const { center, radius } = this.sizes;
    return radius + Math.hypot(target[0] - center[0], target[1] - center[1], target[2] - center[2]);
  }

  get isLost(): boolean {
    return this.renderer.isLost;
  }

  /** Draw all anew, at rest. */
  redraw(): void {
    this.mustDrawEdges = true;
    this.requestFrame();
  }

  private requestFrame(): void {
    this.isWanted = true;
    this.request ||= requestAnimationFrame(this.tick);
  }

  /** The frame before has to be there before the next is drawn: else they would queue up behind a moving pointer. */
  private readonly tick = (now: number): void => {
    this.request = 0;
    if (this.running && !this.renderer.isBusy) {
      const { start, isMoving } = this.running;
      this.running = null;
      this.frameMs = performance.now() - start;
      if (this.pace.adapt(this.frameMs, isMoving)) {
        this.listsAre = "none";
      }
    }
    if (this.isWanted && !this.running) {
      this.isWanted = false;
      this.draw(now);
    }
    if (this.isWanted || this.running) {
      this.request ||= requestAnimationFrame(this.tick);
    }
  };

  private draw(now: number): void {
    const { placed, colors } = this;
    if (this.renderer.isLost || this.frame.width < 2) {
      return;
    }
    if (!placed || !colors) {
      this.renderer.clear(this.look);
      return;
    }
    const started = performance.now();
    this.advance(now);
    this.isMoving = this.change !== null || started - this.lastMove < REST_MS;
    this.makeLists(placed, colors);
    const sight = this.sight();
    const wanted = this.edgeCount;
    // Few edges may be strong; of many each must be faint, or all would be one cloud.
    const opacity = this.opacity * Math.min(Math.max((FULL_EDGES / Math.max(this.allEdges, 1)) ** 0.7, 0.15), 1);
    if (this.isMoving) {
      this.renderer.presentAtOnce(sight, this.look, wanted, opacity);
      this.drawnEdges = wanted;
      this.mustDrawEdges = true;
    } else {
      const first = this.mustDrawEdges ? 0 : this.drawnEdges;
      const slice = Math.min(this.pace.sliceEdges, wanted - first);
      if (this.mustDrawEdges || slice > 0) {
        this.renderer.drawEdges(sight, this.look, first, slice, opacity);
      }
      this.drawnEdges = first + slice;
      this.mustDrawEdges = false;
      this.renderer.present(sight, this.look);
    }
    this.renderer.endFrame();
    this.running = { start: started, isMoving: this.isMoving };
    const { frameMs } = this;
    const isWhole = !this.isMoving && this.drawnEdges >= wanted;
    this.onFrame({ isMoving: this.isMoving, isWhole, nodes: this.nodes.length, edges: this.drawnEdges, frameMs });
    if (this.change || (!this.isMoving && !isWhole)) {
      this.requestFrame();
    }
  }

  private sight(): Sight {
    return { eye: this.eye, frame: this.frame, ratio: this.ratio, reach: this.reach, between: this.between };
  }

  private advance(now: number): void {
    const { change } = this;
    if (!change) {
      return;
    }
    const t = Math.min(Math.max((now - change.start) / CHANGE_MS, 0), 1);
    const smooth = t * t * (3 - 2 * t);
    this.eye = t >= 1 ? change.eyeTo : mixEyes(change.eyeFrom, change.eyeTo, smooth);
    this.between = change.movesNodes ? smooth : 1;
    if (t >= 1) {
      this.finishChange();
    }
  }

  private finishChange(): void {
    if (this.change) {
      this.eye = this.change.eyeTo;
      this.between = 1;
      this.change = null;
      this.mustDrawEdges = true;
    }
  }

  private goTo(eye: Eye, isGradual: boolean, movesNodes: boolean): void {
    this.finishChange();
    if (isGradual) {
      this.between = movesNodes ? 0 : 1;
      this.change = { start: performance.now(), eyeFrom: this.eye, eyeTo: eye, movesNodes };
    } else {
      this.eye = eye;
      this.between = 1;
    }
    this.redraw();
  }

  /** The lists of nodes and edges, as far as they are others than those of the frame before. */
  private makeLists(placed: PlacedGraph, colors: PictureColors): void {
    const { graph, places } = placed;
    const eye = this.change ? this.change.eyeTo : this.eye;
    const always = this.functionOfSelection();
    const isOther = openFunctions(places, eye, this.frame, always, this.isOpen);
    const quality = this.isMoving ? "moving" : "rest";
    if (isOther || this.listsAre === "none") {
      this.nodes = listNodes(graph, places.nBlocks, this.isOpen);
      this.renderer.setNodes(this.nodes);
    }
    if (isOther || this.listsAre !== quality) {
      const most = this.isMoving ? this.pace.movingEdges : MOST_EDGES;
      const list = listEdges(graph, places.nBlocks, this.isOpen, colors.edges, colors.links, most);
      this.edgeCount = list.count;
      if (!this.isMoving || this.allEdges === 0) {
        this.allEdges = list.count;
      }
      this.renderer.setEdges(list.ends, list.colors);
      this.mustDrawEdges = true;
      this.selectedNode = nodeOfSelection(graph, places.nBlocks, this.isOpen, this.selection);
      this.markEdges();
    }
    this.listsAre = quality;
  }

  private functionOfSelection(): number {
    const { selection, placed } = this;
    if (!selection || !placed) {
      return -1;
    }
    const { graph } = placed;
    if (selection.kind === "function") {
      return graph.drawnFunction[selection.index] ?? -1;
    }
    const drawn = graph.drawnBlock[selection.index] ?? -1;
    return drawn >= 0 ? graph.functionOfBlock[drawn] : -1;
  }

  /** The edges at what is selected and what is under the pointer stand out, and both are in front of the rest. */
  private markEdges(): void {
    const { placed } = this;
    if (!placed) {
      return;
    }
    const ends: number[] = [];
    const colors: number[] = [];
    const front = [...new Set([this.hottest, this.hoveredNode, this.selectedNode])].filter((node) => node >= 0);
    for (const node of new Set([this.selectedNode, this.hoveredNode])) {
      if (node < 0) {
        continue;
      }
      const of = node === this.selectedNode && this.selection?.kind === "function" ? this.functionOfSelection() : -1;
      const isByBlocks = of >= 0 && this.isOpen[of] === 1;
      const { graph, places } = placed;
      const found = isByBlocks
        ? edgesAtFunction(graph, places.nBlocks, this.isOpen, of)
        : edgesAt(graph, places.nBlocks, this.isOpen, node);
      for (const [list, color] of [
        [found.out, OUT_COLOR],
        [found.in, IN_COLOR],
      ] as const) {
        for (let i = 0; i < list.length && ends.length < 2 * MOST_MARKED; i += 2) {
          ends.push(list[i], list[i + 1]);
          colors.push(...color.map((part) => Math.round(255 * part)), 255);
        }
      }
    }
    this.renderer.setMarkedEdges(Uint32Array.from(ends), Uint8Array.from(colors));
    this.renderer.setFront(front.filter((node) => this.isDrawn(node)));
  }

  private isDrawn(node: number): boolean {
    const { graph, places } = this.placed!;
    return node < places.nBlocks ? this.isOpen[graph.functionOfBlock[node]] === 1 : !this.isOpen[node - places.nBlocks];
  }

  private startAngles(): { yaw: number; pitch: number } {
    const { placed, hottest } = this;
    if (!placed || placed.result.dimensions === 2) {
      return { yaw: 0, pitch: 0 };
    }
    if (placed.result.cylinderRadius === 0 || hottest < 0) {
      return START_ANGLES;
    }
    const { positions } = placed.places;
    return { ...START_ANGLES, yaw: Math.atan2(positions[3 * hottest], positions[3 * hottest + 2]) - START_ANGLES.yaw };
  }

  private fittedEye(): Eye {
    const { placed } = this;
    const angles = this.startAngles();
    if (!placed) {
      return this.eye;
    }
    const { frame, padding } = this;
    const fitted = (inside: Padding) => fitEye(placed.places.positions, angles.yaw, angles.pitch, frame, inside);
    const corner = placed.result.dimensions === 2 ? this.corner() : null;
    const eye = fitted(padding);
    if (!corner || !this.reachesInto(eye, corner)) {
      return eye;
    }
    // A plane fills the whole frame: it moves aside or up, whatever leaves it larger.
    const aside = fitted({ ...padding, left: Math.max(padding.left, corner.width) });
    const above = fitted({ ...padding, bottom: Math.max(padding.bottom, corner.height) });
    return aside.distance < above.distance ? aside : above;
  }

  /** Whether a node is within the lower left corner of the frame. */
  private reachesInto(eye: Eye, corner: { width: number; height: number }): boolean {
    const { frame } = this;
    const positions = this.placed!.places.positions;
    const matrix = projectionMatrix(eye, frame, 1);
    const found = [0, 0, 0];
    for (let node = 0; node < positions.length / 3; node++) {
      projectPoint(matrix, frame, positions, node, found);
      if (found[0] < corner.width && found[1] > frame.height - corner.height) {
        return true;
      }
    }
    return false;
  }

  private readonly sizeOf = (node: number): NodeSize => sizeOfNode(this.sizes, node);
}

/** Whether two eyes are the same but for what the address rounds off. */
function sameEye(a: Eye, b: Eye): boolean {
  const near = (x: number, y: number, size: number) => Math.abs(x - y) <= 1e-4 * size;
  return (
    near(a.yaw, b.yaw, 1) &&
    near(a.pitch, b.pitch, 1) &&
    near(a.distance, b.distance, a.distance) &&
    a.target.every((value, i) => near(value, b.target[i], a.distance + Math.abs(value)))
  );
}
