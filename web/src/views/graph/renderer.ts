// Draws nodes and edges with WebGL2: given lists of numbers, textures of places and colours, and an eye. It knows nothing of
// traces, and draws only when it is told to.
import type { Eye } from "../../base/projection.ts";
import {
  disposeList,
  type EdgeContent,
  type EdgeList,
  fillCells,
  fillEdges,
  fillNodes,
  fillTexture,
  makeEdgeList,
  makeNodeList,
  makeTexture,
  type NodeList,
} from "./gl-lists.ts";
import type { Particles } from "../../model/graph/particles.ts";
import { ParticleLayer } from "./particle-layer.ts";
import { EDGE_FRAGMENT, EDGE_VERTEX, FADE_FRAGMENT, NODE_FRAGMENT, NODE_VERTEX, WHOLE_VERTEX } from "./shaders.ts";
import { linkProgram, type Program } from "./gl-program.ts";
import { type Look, type Places, setSight, type Sight } from "./sight.ts";

/** So few edges that stand out are wide. */
const FEW_MARKED = 80;
/** Of so few edges the curves are finer: then loops are round. */
const FEW_EDGES = 20_000;

/** So much of the strength is left of what is no neighbour of what is pointed at. */
const FADED = { edges: 0.25, nodes: 0.3 };

/** Throws an Error if the canvas has no WebGL2. */
export class GraphRenderer {
  private readonly gl: WebGL2RenderingContext;
  private readonly nodeProgram: Program;
  private readonly edgeProgram: Program;
  private readonly fadeProgram: Program;
  private readonly nodes: NodeList;
  private readonly front: NodeList;
  private readonly near: NodeList;
  private readonly edges: EdgeList;
  private readonly marked: EdgeList;
  private fromPlaces: WebGLTexture;
  private toPlaces: WebGLTexture;
  private readonly colors: WebGLTexture;
  private readonly heats: WebGLTexture;
  private readonly edgePicture: WebGLTexture;
  private readonly edgeTarget: WebGLFramebuffer;
  private fromCylinder = 0;
  private toCylinder = 0;
  private pictureSize: [number, number] = [0, 0];
  private fence: WebGLSync | null = null;
  /** Made when it is needed first. */
  private particles: ParticleLayer | null = null;

  constructor(canvas: HTMLCanvasElement) {
    // The ground is the page's own, behind the canvas: what is drawn first then can stay in front of what comes later.
    const gl = canvas.getContext("webgl2", { alpha: true, antialias: false, powerPreference: "high-performance" });
    if (!gl) {
      throw new Error("this browser has no WebGL2");
    }
    this.gl = gl;
    this.nodeProgram = linkProgram(gl, NODE_VERTEX, NODE_FRAGMENT);
    this.edgeProgram = linkProgram(gl, EDGE_VERTEX, EDGE_FRAGMENT);
    this.fadeProgram = linkProgram(gl, WHOLE_VERTEX, FADE_FRAGMENT);
    this.nodes = makeNodeList(gl);
    this.front = makeNodeList(gl);
    this.near = makeNodeList(gl);
    this.edges = makeEdgeList(gl);
    this.marked = makeEdgeList(gl);
    this.fromPlaces = makeTexture(gl);
    this.toPlaces = makeTexture(gl);
    this.colors = makeTexture(gl);
    this.heats = makeTexture(gl);
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

  /** Some nodes are elsewhere from now on, at once; `cells` has all of them. */
  movePlaces(cells: Float32Array, nodes: readonly number[]): void {
    fillCells(this.gl, this.toPlaces, cells, nodes);
  }

  /** Four bytes by node, and its heat. */
  setColors(colors: Uint8Array, heats: Uint8Array): void {
    fillTexture(this.gl, this.colors, colors);
    const cells = new Uint8Array(4 * heats.length);
    heats.forEach((heat, node) => (cells[4 * node] = heat));
    fillTexture(this.gl, this.heats, cells);
  }

  setNodes(nodes: Uint32Array): void {
    fillNodes(this.gl, this.nodes, nodes);
  }

  /** Nodes that are drawn over all others. */
  setFront(nodes: readonly number[]): void {
    fillNodes(this.gl, this.front, Uint32Array.from(nodes));
  }

  /** Nodes that are drawn over all others but those; and whether all the rest fades. */
  setNear(nodes: readonly number[], isRestFaded: boolean): void {
    fillNodes(this.gl, this.near, Uint32Array.from(nodes));
    this.isRestFaded = isRestFaded;
  }

  /** Both ends of each edge, its colour and its heat. */
  setEdges(edges: EdgeContent): void {
    fillEdges(this.gl, this.edges, edges);
  }

  /** Edges that stand out. */
  setMarkedEdges(edges: EdgeContent): void {
    fillEdges(this.gl, this.marked, edges);
  }

  /** What moves along edges from now on. */
  setParticles(particles: Particles): void {
    if (particles.count > 0) {
      this.particles ??= new ParticleLayer(this.gl);
    }
    this.particles?.set(particles);
  }

  /** Keep what was just presented, for `presentParticles`. */
  keepStill(): void {
    this.particles?.keepStill();
  }

  /** Show what was kept, and the particles where they are at a time. */
  presentParticles(sight: Sight, look: Look, seconds: number): void {
    const { gl, particles } = this;
    if (particles) {
      gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
      particles.showStill();
      this.useSight(particles.program, sight, look);
      particles.draw(seconds, look.isDark);
    }
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
    if (this.isRestFaded) {
      this.fadeEdges();
    }
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const how = { opacity: 0.95, width: this.marked.count < FEW_MARKED ? 2.4 : 1.6, isMarked: true, isCoarse: false };
    this.runEdges(this.marked, sight, look, 0, this.marked.count, how);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    this.runNodes(this.nodes, sight, look, false, this.isRestFaded ? FADED.nodes : 1);
    gl.disable(gl.DEPTH_TEST);
    this.runNodes(this.near, sight, look, false, 1);
    this.runNodes(this.front, sight, look, true, 1);
  }

  /** What is drawn so far becomes fainter. */
  private fadeEdges(): void {
    const { gl, fadeProgram } = this;
    gl.useProgram(fadeProgram.program);
    gl.uniform1f(fadeProgram.at("share"), FADED.edges);
    gl.disable(gl.DEPTH_TEST);
    gl.blendFunc(gl.ZERO, gl.SRC_ALPHA);
    gl.bindVertexArray(null);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
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
    this.setColors(Uint8Array.of(0, 0, 0, 1), Uint8Array.of(0));
    this.setNodes(Uint32Array.of(0));
    this.setFront([0]);
    const edge = { ends: Uint32Array.of(0, 0), colors: new Uint8Array(4), heat: new Uint8Array(1) };
    this.setEdges(edge);
    this.setMarkedEdges(edge);
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
    this.particles?.dispose();
    for (const list of [this.nodes, this.front, this.near, this.edges, this.marked]) {
      disposeList(gl, list);
    }
    for (const texture of [this.fromPlaces, this.toPlaces, this.colors, this.heats, this.edgePicture]) {
      gl.deleteTexture(texture);
    }
    gl.deleteSync(this.fence);
    gl.deleteFramebuffer(this.edgeTarget);
    gl.deleteProgram(this.nodeProgram.program);
    gl.deleteProgram(this.edgeProgram.program);
    gl.deleteProgram(this.fadeProgram.program);
  }

  private runNodes({ array, count }: NodeList, sight: Sight, look: Look, isFront: boolean, share: number): void {
    if (count === 0 || look.nodeOpacity === 0) {
      return;
    }
    const { gl, nodeProgram: program } = this;
    this.useSight(program, sight, look);
    gl.uniform1f(program.at("isFront"), isFront ? 1 : 0);
    gl.uniform1f(program.at("opacity"), look.nodeOpacity * share);
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
  /** The nodes that are selected and under the pointer, or -1. */
  chosen = -1;
  pointed = -1;
  private isRestFaded = false;

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
    this.useSight(program, sight, look);
    const surface = this.surfaceAt(between);
    const segments = how.isCoarse ? 5 : surface > 0 || edges.count < FEW_EDGES ? 14 : 8;
    gl.uniform1f(program.at("segments"), segments);
    gl.uniform1f(program.at("width"), how.width * Math.max(sight.ratio, 1));
    gl.uniform1f(program.at("opacity"), how.opacity);
    gl.uniform1f(program.at("isDark"), look.isDark ? 1 : 0);
    gl.uniform1f(program.at("isMarked"), how.isMarked ? 1 : 0);
    gl.bindVertexArray(edges.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, edges.ends);
    gl.vertexAttribIPointer(0, 2, gl.UNSIGNED_INT, 8, 8 * first);
    gl.bindBuffer(gl.ARRAY_BUFFER, edges.colors);
    gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, 4, 4 * first);
    gl.bindBuffer(gl.ARRAY_BUFFER, edges.heats);
    gl.vertexAttribPointer(2, 1, gl.UNSIGNED_BYTE, true, 1, first);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 2 * (segments + 1), drawn);
    gl.bindVertexArray(null);
  }

  /** How much edges follow the surface of a cylinder. */
  private surfaceAt(between: number): number {
    return (this.fromCylinder > 0 ? 1 - between : 0) + (this.toCylinder > 0 ? between : 0);
  }

  private useSight(program: Program, sight: Sight, look: Look): void {
    setSight(this.gl, program, sight, look, {
      fromPlaces: this.fromPlaces,
      toPlaces: this.toPlaces,
      colors: this.colors,
      heats: this.heats,
      nBlocks: this.nBlocks,
      chosen: this.chosen,
      pointed: this.pointed,
      surface: this.surfaceAt(sight.between),
      cylinder: this.fromCylinder + (this.toCylinder - this.fromCylinder) * sight.between,
    });
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
