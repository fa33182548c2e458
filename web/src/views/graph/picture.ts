// The picture of a graph: what is in it, from where it is seen, and when it is drawn anew. It is drawn only when something
// changed: coarsely while it moves, and then, edge by edge, in full.
import {
  type Eye,
  type Frame,
  type Padding,
  pixelsPerUnit,
  projectionMatrix,
  projectPoint,
} from "../../base/projection.ts";
import { listEdges, listNodes, nodeOfSelection, openFunctions } from "../../model/graph/detail.ts";
import type { EdgeColors } from "../../model/graph/edge-colors.ts";
import { nodePixels, type NodeSize, pickNode, shareInFrame } from "../../model/graph/picking.ts";
import type { PlacedGraph } from "../../model/graph/scene.ts";
import type { RecentBlock } from "../../model/recent.ts";
import type { Camera, Selection } from "../../model/view-state.ts";
import { edgeStrength, sampleEdges } from "./edge-strength.ts";
import { EyeChange } from "./eye-change.ts";
import { type Corner, fittedEye, isSameEye, START_ANGLES } from "./fitting.ts";
import { FrameLoop } from "./frame-loop.ts";
import { FramePace, MOST_EDGES } from "./frame-pace.ts";
import { findMarkedEdges, findTrail, functionOfSelection, isDrawn, type Neighbour } from "./marked-edges.ts";
import { measureNodes, NO_SIZES, reachFrom, sizeOfNode } from "./node-sizes.ts";
import { GraphRenderer, LEAST_FRONT_PX, type Look, type Sight } from "./renderer.ts";

/** After so long without a movement the picture is at rest. */
const REST_MS = 160;
/** A picture that grows is fitted into the frame anew when the eye has to go so much farther away for it. */
const LEAST_WIDENING = 1.2;

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

export class GraphPicture {
  frame: Frame = { width: 1, height: 1 };
  eye: Eye = { ...START_ANGLES, distance: 10, target: [0, 0, 0] };
  placed: PlacedGraph | null = null;
  /** Which drawn functions are drawn by their blocks. */
  isOpen: Uint8Array = new Uint8Array(0);
  nodes: Uint32Array = new Uint32Array(0);
  colors: PictureColors | null = null;
  selectedNode = -1;
  hoveredNode = -1;
  /** Where the edges at what is selected lead and come from. */
  neighbours: readonly Neighbour[] = [];
  isMoving = false;

  /** How much of the lower left corner something lies over, in CSS pixels; null for nothing. */
  corner: () => Corner | null = () => null;

  private readonly renderer: GraphRenderer;
  private ratio = 1;
  private look: Look = { ground: [0, 0, 0], isDark: true };
  private opacity = 1;
  private padding: Padding = { top: 0, right: 0, bottom: 0, left: 0 };
  private selection: Selection | null = null;
  private recent: readonly RecentBlock[] | null = null;
  private hottest = -1;
  private sizes = NO_SIZES;
  private readonly pace = new FramePace();
  private change: EyeChange | null = null;
  private isFitted = true;
  private lastMove = -Infinity;
  private readonly loop: FrameLoop;
  private restTimer = 0;
  private listsAre: "none" | "moving" | "rest" = "none";
  private drawnEdges = 0;
  private edgeCount = 0;
  /** Of the edges that the picture at rest has. */
  private edgeSample = sampleEdges(new Uint32Array(0));
  private mustDrawEdges = true;
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly onFrame: (report: FrameReport) => void,
    /** The reader moved the camera, and let go. */
    private readonly onCamera: (camera: Camera) => void,
    private readonly isStill: () => boolean,
  ) {
    this.renderer = new GraphRenderer(canvas);
    this.loop = new FrameLoop(
      (now) => this.draw(now),
      () => this.renderer.isBusy,
      (frameMs) => this.adaptPace(frameMs),
    );
  }

  dispose(): void {
    this.loop.dispose();
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
      this.eye = this.fitted();
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
    const isGrown = before !== null && placed.isGrown === true;
    if (!isSameGraph) {
      this.isOpen = new Uint8Array(placed.graph.nFunctions);
      this.colors = null;
      this.hottest = -1;
      this.hoveredNode = -1;
    }
    this.isFitted = camera === null;
    if (isGrown) {
      // What was looked at stays where it is; only when much more is there than fits is all shown again.
      const fitted = this.fitted();
      if (this.isFitted && fitted.distance > LEAST_WIDENING * (this.change?.to ?? this.eye).distance) {
        this.goTo(fitted, !this.isStill(), false);
      }
    } else if (!isOnTheWay || camera === null) {
      this.goTo(camera ?? this.fitted(), moves, moves);
    }
    this.listsAre = "none";
    this.redraw();
  }

  setColors(colors: PictureColors, hottest: number): void {
    const isFirst = this.colors === null;
    this.colors = colors;
    this.hottest = hottest;
    if (isFirst && this.isFitted) {
      this.eye = this.fitted();
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
      this.loop.want();
    }
  }

  /** The nodes that were executed just before the cursor as they are drawn, the last first. */
  trail(): { node: number; weight: number }[] {
    const { placed, recent, isOpen } = this;
    return placed && recent ? findTrail(placed, isOpen, recent) : [];
  }

  setHovered(node: number): void {
    if (node !== this.hoveredNode) {
      this.hoveredNode = node;
      this.markEdges();
      this.loop.want();
    }
  }

  /** The state's camera changed: null for everything in the frame. */
  setCamera(camera: Camera | null): void {
    this.isFitted = camera === null;
    const eye = camera ?? this.fitted();
    const isThere = camera !== null && isSameEye(eye, this.change?.to ?? this.eye);
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
    this.loop.want();
  }

  get selected(): Selection | null {
    return this.selection;
  }

  /** The node at a place of the canvas, in CSS pixels; -1 for none. */
  pick(x: number, y: number): number {
    const { placed, nodes, eye, frame } = this;
    // What the pointer is on already is in front as well, but would keep what lies within it from being reached.
    const inFront = new Set([this.hottest, this.selectedNode]);
    return placed ? pickNode(nodes, placed.places.positions, this.sizeOf, eye, frame, x, y, inFront) : -1;
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
    return nodePixels(this.sizeOf(node), pixelsPerUnit(this.frame), depth);
  }

  /** The share of the nodes inside the frame, 0 to 1. */
  inFrame(): number {
    return this.placed ? shareInFrame(this.nodes, this.placed.places.positions, this.eye, this.frame) : 0;
  }

  /** How far the eye's target is from what is farthest away from it. */
  get reach(): number {
    return reachFrom(this.sizes, this.eye.target);
  }

  /** Draw all anew, at rest. */
  redraw(): void {
    this.mustDrawEdges = true;
    this.loop.want();
  }

  private adaptPace(frameMs: number): void {
    if (this.pace.adapt(frameMs, this.isMoving)) {
      this.listsAre = "none";
    }
  }

  private draw(now: number): void {
    const { placed, colors } = this;
    if (this.renderer.isLost || this.frame.width < 2) {
      return;
    }
    if (!placed || !colors) {
      this.renderer.clear();
      return;
    }
    const started = performance.now();
    this.advance(now);
    this.isMoving = this.change !== null || started - this.lastMove < REST_MS;
    this.makeLists(placed, colors);
    const { eye, frame, ratio, reach } = this;
    const sight: Sight = { eye, frame, ratio, reach, between: this.change?.between ?? 1 };
    const wanted = this.edgeCount;
    const opacity = this.opacity * edgeStrength(this.edgeSample, placed.places.positions, eye, frame);
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
    this.loop.began(started);
    const { frameMs } = this.loop;
    const isWhole = !this.isMoving && this.drawnEdges >= wanted;
    this.onFrame({ isMoving: this.isMoving, isWhole, nodes: this.nodes.length, edges: this.drawnEdges, frameMs });
    if (this.change || (!this.isMoving && !isWhole)) {
      this.loop.want();
    }
  }

  private advance(now: number): void {
    const { change } = this;
    if (change) {
      change.advance(now);
      this.eye = change.eye;
      if (change.isAtEnd) {
        this.finishChange();
      }
    }
  }

  private finishChange(): void {
    if (this.change) {
      this.eye = this.change.to;
      this.change = null;
      this.mustDrawEdges = true;
    }
  }

  private goTo(eye: Eye, isGradual: boolean, movesNodes: boolean): void {
    this.finishChange();
    if (isGradual) {
      this.change = new EyeChange(this.eye, eye, movesNodes);
    } else {
      this.eye = eye;
    }
    this.redraw();
  }

  /** The lists of nodes and edges, as far as they are others than those of the frame before. */
  private makeLists(placed: PlacedGraph, colors: PictureColors): void {
    const { graph, places } = placed;
    const eye = this.change?.to ?? this.eye;
    const always = functionOfSelection(placed, this.selection);
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
      if (!this.isMoving || isOther || this.edgeSample.count === 0) {
        this.edgeSample = sampleEdges(list.ends);
      }
      this.renderer.setEdges(list.ends, list.colors);
      this.mustDrawEdges = true;
      this.selectedNode = nodeOfSelection(graph, places.nBlocks, this.isOpen, this.selection);
      this.markEdges();
    }
    this.listsAre = quality;
  }

  /** The edges at what is selected and what is under the pointer stand out, and both are in front of the rest. */
  private markEdges(): void {
    const { placed } = this;
    if (!placed) {
      return;
    }
    const whole = this.selection?.kind === "function" ? functionOfSelection(placed, this.selection) : -1;
    const { ends, colors, neighbours } = findMarkedEdges(
      placed,
      this.isOpen,
      this.selectedNode,
      this.hoveredNode,
      whole,
    );
    this.renderer.setMarkedEdges(ends, colors);
    this.neighbours = neighbours;
    const front = new Set([this.hottest, this.hoveredNode, this.selectedNode]);
    this.renderer.setFront([...front].filter((node) => isDrawn(placed, this.isOpen, node)));
  }

  private fitted(): Eye {
    const { placed, hottest, frame, padding } = this;
    return placed ? fittedEye(placed, hottest, frame, padding, this.corner()) : this.eye;
  }

  private readonly sizeOf = (node: number): NodeSize => {
    const size = sizeOfNode(this.sizes, node);
    const isFront = node === this.selectedNode || node === this.hoveredNode || node === this.hottest;
    return isFront ? { ...size, least: Math.max(size.least, LEAST_FRONT_PX) } : size;
  };
}
