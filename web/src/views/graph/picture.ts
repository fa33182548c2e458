// The picture of a graph: from where it is seen, and when it is drawn anew. It is drawn only when something changed: coarsely
// while it moves, and then, edge by edge, in full.
import type { Eye, Frame, Padding } from "../../base/projection.ts";
import type { PlacedGraph } from "../../model/graph/scene.ts";
import type { RecentBlock } from "../../model/recent.ts";
import type { Camera, Selection } from "../../model/view-state.ts";
import { DrawnLists } from "./drawn-lists.ts";
import { edgeStrength } from "./edge-strength.ts";
import { EyeChange } from "./eye-change.ts";
import { type Corner, fittedEye, isSameEye } from "./fitting.ts";
import { FrameLoop } from "./frame-loop.ts";
import { measureNodes, moveSizes } from "./node-sizes.ts";
import { GraphRenderer } from "./renderer.ts";
import type { PictureColors } from "./seen-nodes.ts";
import type { Look, Sight } from "./sight.ts";

/** After so long without a movement the picture is at rest. */
const REST_MS = 160;
/** A picture that grows is fitted into the frame anew when the eye has to go so much farther away for it. */
const LEAST_WIDENING = 1.2;

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

export class GraphPicture extends DrawnLists {
  /** How much of the lower left corner something lies over, in CSS pixels; null for nothing. */
  corner: () => Corner | null = () => null;

  /** The reader moves the camera, and has not let go yet. */
  onEye: (eye: Eye) => void = () => undefined;

  private ratio = 1;
  private opacity = 1;
  private padding: Padding = { top: 0, right: 0, bottom: 0, left: 0 };
  private change: EyeChange | null = null;
  private isFitted = true;
  private lastMove = -Infinity;
  private readonly loop: FrameLoop;
  private restTimer = 0;
  private drawnEdges = 0;
  /** Whether more than the particles has to be drawn. */
  private isStale = true;
  private isParticleFrame = false;
  private isCameraMoved = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly onFrame: (report: FrameReport) => void,
    /** Particles were drawn where they are now, so many; or there are none any more. */
    onParticles: (count: number) => void,
    /** The reader moved the camera, and let go. */
    private readonly onCamera: (camera: Camera) => void,
    private readonly isStill: () => boolean,
  ) {
    super(new GraphRenderer(canvas), onParticles);
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
    if (this.isFitted) {
      // Where a change led to was for another frame.
      this.finishChange();
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
    this.renderer.setColors(all, colors.heats);
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
      this.wantFrame();
    }
  }

  setHovered(node: number): void {
    if (node !== this.hoveredNode) {
      this.hoveredNode = node;
      this.markEdges();
      this.wantFrame();
    }
  }

  /** Whether particles move along the edges at what is under the pointer. */
  setParticles(areWanted: boolean): void {
    this.hasParticles = areWanted;
    this.markEdges();
    this.wantFrame();
  }

  /** Nodes were put elsewhere: `placed.places` has them there. */
  nodesMoved(nodes: readonly number[]): void {
    const { placed } = this;
    if (placed) {
      this.finishChange();
      moveSizes(this.sizes, nodes, placed.places.positions);
      this.renderer.movePlaces(this.sizes.cells, nodes);
      this.isMovedNow();
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
    this.isCameraMoved = false;
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
    this.isCameraMoved = true;
    this.onEye(this.eye);
    this.isMovedNow();
  }

  /** Another picture is moved, which this one goes with. */
  follow(eye: Eye): void {
    this.finishChange();
    this.isFitted = false;
    this.eye = { ...eye };
    this.isCameraMoved = false;
    this.isMovedNow();
  }

  /** Something moves: until it is at rest the picture is drawn coarsely. */
  private isMovedNow(): void {
    this.lastMove = performance.now();
    clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => {
      if (this.isCameraMoved) {
        this.isCameraMoved = false;
        this.onCamera({ ...this.eye });
      }
      this.redraw();
    }, REST_MS);
    this.redraw();
  }

  /** Draw all anew, at rest. */
  redraw(): void {
    this.mustDrawEdges = true;
    this.wantFrame();
  }

  private wantFrame(): void {
    this.isStale = true;
    this.loop.want();
  }

  private adaptPace(frameMs: number): void {
    if (!this.isParticleFrame && this.pace.adapt(frameMs, this.isMoving)) {
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
    this.isParticleFrame = !this.isStale;
    if (this.isParticleFrame) {
      this.drawParticles(now, started);
      return;
    }
    this.isStale = false;
    this.advance(now);
    this.isMoving = this.change !== null || started - this.lastMove < REST_MS;
    this.makeLists(placed, colors, this.change?.to ?? this.eye);
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
    const isWhole = !this.isMoving && this.drawnEdges >= wanted;
    const isFollowed = isWhole && this.particles.count > 0;
    if (isFollowed) {
      this.renderer.keepStill();
    }
    this.renderer.endFrame();
    this.loop.began(started);
    const { frameMs } = this.loop;
    this.onFrame({ isMoving: this.isMoving, isWhole, nodes: this.nodes.length, edges: this.drawnEdges, frameMs });
    if (this.change || (!this.isMoving && !isWhole)) {
      this.wantFrame();
    } else if (isFollowed) {
      this.loop.want();
    }
  }

  /** A frame of the picture as it was, with particles where they are now; and the next. */
  private drawParticles(now: number, started: number): void {
    if (this.particles.count === 0) {
      return;
    }
    const { eye, frame, ratio, reach } = this;
    this.renderer.presentParticles({ eye, frame, ratio, reach, between: 1 }, this.look, (now / 1000) % 1000);
    this.renderer.endFrame();
    this.loop.began(started);
    this.onParticles(this.particles.count);
    this.loop.want();
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

  private fitted(): Eye {
    const { placed, hottest, frame, padding } = this;
    return placed ? fittedEye(placed, hottest, frame, padding, this.corner()) : this.eye;
  }
}
