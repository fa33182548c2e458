// Draws nodes and edges with WebGL2: given lists of numbers, textures of places and colours, and an eye. It knows nothing of
// traces, and draws only when it is told to.
import { type Frame, type Eye, pixelsPerUnit, projectionMatrix } from "../../base/projection.ts";
import type { Rgb } from "../../base/color.ts";
import {
  disposeList,
  type EdgeList,
  fillEdges,
  fillNodes,
  fillTexture,
  makeEdgeList,
  makeNodeList,
  makeTexture,
  type NodeList,
} from "./gl-lists.ts";
import { EDGE_FRAGMENT, EDGE_VERTEX, NODE_FRAGMENT, NODE_VERTEX } from "./shaders.ts";
import { linkProgram, type Program } from "./gl-program.ts";

/** So few edges that stand out are wide. */
const FEW_MARKED = 80;

/** Diameters of nodes in pixels: least and most of blocks, least and most of functions. */
export const NODE_PIXELS = { leastBlock: 3.2, mostBlock: 30, leastFunction: 5, mostFunction: 34 };

/** The least diameter in pixels of nodes that are drawn over all others. */
export const LEAST_FRONT_PX = 9;

/** Where nodes are: x, y, z and the size in units of space of each; and the radius of the cylinder they are on, or 0. */
export interface Places {
  cells: Float32Array;
  cylinderRadius: number;
}

export interface Look {
  ground: Rgb;
  isDark: boolean;
}

/** What is seen from where. `reach` is how far nodes are from the eye's target at most. */
export interface Sight {
  eye: Eye;
  frame: Frame;
  ratio: number;
  reach: number;
  /** From the places before to those now: 0 to 1. */
  between: number;
}

/** Throws an Error if the canvas has no WebGL2. */
export class GraphRenderer {
  private readonly gl: WebGL2RenderingContext;
  private readonly nodeProgram: Program;
  private readonly edgeProgram: Program;
  private readonly nodes: NodeList;
  private readonly front: NodeList;
  private readonly edges: EdgeList;
  private readonly marked: EdgeList;
  private fromPlaces: WebGLTexture;
  private toPlaces: WebGLTexture;
  private readonly colors: WebGLTexture;
  private readonly edgePicture: WebGLTexture;
  private readonly edgeTarget: WebGLFramebuffer;
  private fromCylinder = 0;
  private toCylinder = 0;
  private pictureSize: [number, number] = [0, 0];
  private fence: WebGLSync | null = null;

  constructor(canvas: HTMLCanvasElement) {
    // The ground is the page's own, behind the canvas: what is drawn first then can stay in front of what comes later.
    const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, powerPreference: "high-performance" });
    if (!gl) {
      throw new Error("this browser has no WebGL2");
    }
    this.gl = gl;
    this.nodeProgram = linkProgram(gl, NODE_VERTEX, NODE_FRAGMENT);
    this.edgeProgram = linkProgram(gl, EDGE_VERTEX, EDGE_FRAGMENT);
    this.nodes = makeNodeList(gl);
    this.front = makeNodeList(gl);
    this.edges = makeEdgeList(gl);
    this.marked = makeEdgeList(gl);
    this.fromPlaces = makeTexture(gl);
    this.toPlaces = makeTexture(gl);
    this.colors = makeTexture(gl);
    this.edgePicture = makeTexture(gl);
    this.edgeTarget = gl.createFramebuffer();
  }

  /** The places that nodes go to; those until now become the ones they come from, where `isMoving`. */
  setPlaces(places: Places, isMoving: boolean): void {
    const [before, cylinder] = [this.toPlaces, this.toCylinder];
    this.toPlaces = this.fromPlaces;
    this.fromPlaces = before;
    this.fromCylinder = isMoving ? cylinder : places.cylinderRadius;
    this.toCylinder = places.cylinderRadius;
    fillTexture(this.gl, this.toPlaces, places.cells);
  }

  /** Four bytes by node. */
  setColors(colors: Uint8Array): void {
    fillTexture(this.gl, this.colors, colors);
  }

  setNodes(nodes: Uint32Array): void {
    fillNodes(this.gl, this.nodes, nodes);
  }

  /** Nodes that are drawn over all others. */
  setFront(nodes: readonly number[]): void {
    fillNodes(this.gl, this.front, Uint32Array.from(nodes));
  }

  /** Both ends of each edge, and its colour. */
  setEdges(ends: Uint32Array, colors: Uint8Array): void {
    fillEdges(this.gl, this.edges, ends, colors);
  }

  /** Edges that stand out. */
  setMarkedEdges(ends: Uint32Array, colors: Uint8Array): void {
    fillEdges(this.gl, this.marked, ends, colors);
  }

  /**
   * Draw the edges from number `first` on, `count` of them, to the picture of edges that `present` begins with; with
   * `first` 0 it is emptied.
   */
  drawEdges(sight: Sight, look: Look, first: number, count: number, opacity: number): void {
    const { gl } = this;
    this.sizePicture();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.edgeTarget);
    this.runEdgesOnGround(sight, look, first, count, opacity, false);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  /** Show the picture of edges, with the edges that stand out and the nodes over it. */
  present(sight: Sight, look: Look): void {
    const { gl } = this;
    const [width, height] = [gl.drawingBufferWidth, gl.drawingBufferHeight];
    if (this.edges.count === 0) {
      // Of a picture that was emptied, and in which nothing was drawn since, some drivers copy black.
      this.clear();
    } else {
      gl.bindFramebuffer(gl.READ_FRAMEBUFFER, this.edgeTarget);
      gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
      gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.NEAREST);
      gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    }
    this.runNodesAndMarked(sight, look);
  }

  /** Show the first edges, the nodes, and nothing that was there before: quick, with coarser curves. */
  presentAtOnce(sight: Sight, look: Look, count: number, opacity: number): void {
    this.runEdgesOnGround(sight, look, 0, count, opacity, true);
    this.runNodesAndMarked(sight, look);
  }

  /** Nothing. */
  clear(): void {
    const { gl } = this;
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
  }

  private runEdgesOnGround(
    sight: Sight,
    look: Look,
    first: number,
    count: number,
    opacity: number,
    isCoarse: boolean,
  ): void {
    const { gl } = this;
    gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
    if (first === 0) {
      this.clear();
    }
    gl.disable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    // Each behind those before it, the busiest in front: many over one another come to a colour of theirs, and neither to
    // white nor to black.
    gl.blendFunc(gl.ONE_MINUS_DST_ALPHA, gl.ONE);
    this.runEdges(this.edges, sight, look, first, count, { opacity, width: 1, isMarked: false, isCoarse });
  }

  private runNodesAndMarked(sight: Sight, look: Look): void {
    const { gl } = this;
    gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const how = { opacity: 0.95, width: this.marked.count < FEW_MARKED ? 2.4 : 1.6, isMarked: true, isCoarse: false };
    this.runEdges(this.marked, sight, look, 0, this.marked.count, how);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    this.runNodes(this.nodes, sight, look, 0);
    gl.disable(gl.DEPTH_TEST);
    this.runNodes(this.front, sight, look, LEAST_FRONT_PX);
  }

  /**
   * Draw next to nothing with every program, the way it is done later: the graphics process then makes them ready while
   * the page still waits for what is to be drawn.
   */
  warmUp(look: Look): void {
    const { gl } = this;
    const eye: Eye = { yaw: 0, pitch: 0, distance: 1, target: [0, 0, 0] };
    const frame = { width: gl.drawingBufferWidth, height: gl.drawingBufferHeight };
    const sight: Sight = { eye, frame, ratio: 1, reach: 1, between: 1 };
    this.setPlaces({ cells: new Float32Array(4), cylinderRadius: 1 }, false);
    this.setColors(Uint8Array.of(0, 0, 0, 1));
    this.setNodes(Uint32Array.of(0));
    this.setFront([0]);
    this.setEdges(Uint32Array.of(0, 0), new Uint8Array(4));
    this.setMarkedEdges(Uint32Array.of(0, 0), new Uint8Array(4));
    this.drawEdges(sight, look, 0, 1, 0);
    this.present(sight, look);
    this.presentAtOnce(sight, look, 1, 0);
    this.clear();
    gl.flush();
  }

  /** What was drawn so far is a frame: `isBusy` until it is there. */
  endFrame(): void {
    const { gl } = this;
    gl.deleteSync(this.fence);
    this.fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
  }

  /** Whether the last frame is still drawn: another one would queue up behind it. Changes between tasks only. */
  get isBusy(): boolean {
    const { gl, fence } = this;
    if (!fence || gl.isContextLost()) {
      return false;
    }
    if (gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) {
      return true;
    }
    gl.deleteSync(fence);
    this.fence = null;
    return false;
  }

  get isLost(): boolean {
    return this.gl.isContextLost();
  }

  dispose(): void {
    const { gl } = this;
    for (const list of [this.nodes, this.front, this.edges, this.marked]) {
      disposeList(gl, list);
    }
    for (const texture of [this.fromPlaces, this.toPlaces, this.colors, this.edgePicture]) {
      gl.deleteTexture(texture);
    }
    gl.deleteSync(this.fence);
    gl.deleteFramebuffer(this.edgeTarget);
    gl.deleteProgram(this.nodeProgram.program);
    gl.deleteProgram(this.edgeProgram.program);
  }

  private runNodes({ array, count }: NodeList, sight: Sight, look: Look, leastFront: number): void {
    if (count === 0) {
      return;
    }
    const { gl, nodeProgram: program } = this;
    const { leastBlock, mostBlock, leastFunction, mostFunction } = NODE_PIXELS;
    this.useSight(program, sight);
    gl.activeTexture(gl.TEXTURE2);
    gl.bindTexture(gl.TEXTURE_2D, this.colors);
    gl.uniform1i(program.at("colors"), 2);
    gl.uniform1ui(program.at("nBlocks"), this.nBlocks);
    gl.uniform1f(program.at("pixels"), pixelsPerUnit(sight.frame));
    gl.uniform1f(program.at("ratio"), sight.ratio);
    gl.uniform4f(program.at("sizes"), leastBlock, mostBlock, leastFunction, mostFunction);
    gl.uniform1f(program.at("leastFront"), leastFront);
    gl.uniform3f(
      program.at("rim"),
      look.isDark ? look.ground[0] : 0,
      look.isDark ? look.ground[1] : 0.05,
      look.isDark ? look.ground[2] : 0.1,
    );
    gl.uniform1f(program.at("rimShare"), look.isDark ? 0.75 : 0.5);
    gl.bindVertexArray(array);
    gl.drawArrays(gl.POINTS, 0, count);
  }

  /** How many of the nodes are blocks: those behind them are functions. */
  nBlocks = 0;

  private runEdges(
    edges: EdgeList,
    sight: Sight,
    look: Look,
    first: number,
    count: number,
    how: { opacity: number; width: number; isMarked: boolean; isCoarse: boolean },
  ): void {
    const drawn = Math.min(count, edges.count - first);
    if (drawn <= 0) {
      return;
    }
    const { gl, edgeProgram: program } = this;
    const { between } = sight;
    this.useSight(program, sight);
    const radius = this.fromCylinder + (this.toCylinder - this.fromCylinder) * between;
    const surface = (this.fromCylinder > 0 ? 1 - between : 0) + (this.toCylinder > 0 ? between : 0);
    const segments = how.isCoarse ? 5 : surface > 0 ? 14 : 8;
    gl.uniform1f(program.at("segments"), segments);
    gl.uniform1f(program.at("width"), how.width * Math.max(sight.ratio, 1));
    gl.uniform1f(program.at("opacity"), how.opacity);
    gl.uniform1f(program.at("ratio"), sight.ratio);
    gl.uniform1f(program.at("surface"), surface);
    gl.uniform1f(program.at("cylinder"), radius);
    gl.uniform2f(program.at("depths"), sight.eye.distance, sight.reach);
    gl.uniform1f(program.at("isDark"), look.isDark ? 1 : 0);
    gl.uniform1f(program.at("isMarked"), how.isMarked ? 1 : 0);
    gl.bindVertexArray(edges.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, edges.ends);
    gl.vertexAttribIPointer(0, 2, gl.UNSIGNED_INT, 8, 8 * first);
    gl.bindBuffer(gl.ARRAY_BUFFER, edges.colors);
    gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, 4, 4 * first);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 2 * (segments + 1), drawn);
    gl.bindVertexArray(null);
  }

  private useSight(program: Program, { eye, frame, ratio, reach, between }: Sight): void {
    const { gl } = this;
    gl.useProgram(program.program);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.fromPlaces);
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.toPlaces);
    gl.uniform1i(program.at("fromPlaces"), 0);
    gl.uniform1i(program.at("toPlaces"), 1);
    gl.uniform1f(program.at("between"), between);
    gl.uniformMatrix4fv(program.at("matrix"), false, projectionMatrix(eye, frame, reach));
    gl.uniform2f(program.at("viewport"), frame.width * ratio, frame.height * ratio);
  }

  private sizePicture(): void {
    const { gl } = this;
    const size: [number, number] = [gl.drawingBufferWidth, gl.drawingBufferHeight];
    if (size[0] === this.pictureSize[0] && size[1] === this.pictureSize[1]) {
      return;
    }
    this.pictureSize = size;
    gl.bindTexture(gl.TEXTURE_2D, this.edgePicture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, size[0], size[1], 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.edgeTarget);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.edgePicture, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }
}
