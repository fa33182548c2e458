// The nodes of a picture as they are seen: where they are on the screen, how large, and which is at a place of it.
import { type Eye, type Frame, pixelsPerUnit, projectionMatrix, projectPoint } from "../../base/projection.ts";
import type { EdgeColors } from "../../model/graph/edge-colors.ts";
import { nodePixels, type NodeSize, pickNode, shareInFrame } from "../../model/graph/picking.ts";
import type { LeftOut, PlacedGraph } from "../../model/graph/scene.ts";
import { START_ANGLES } from "./fitting.ts";
import { NO_SIZES, type NodeLook, reachFrom, sizeOfNode } from "./node-sizes.ts";
import type { Look } from "./sight.ts";

/** Colours of everything drawn: four bytes by node, blocks first; and the heat of each node, a byte. */
export interface PictureColors {
  heats: Uint8Array;
  blocks: Uint8Array;
  functions: Uint8Array;
  edges: EdgeColors;
  links: EdgeColors;
  /** What is not drawn; null for nothing. */
  leftOut: LeftOut | null;
}

export class SeenNodes {
  frame: Frame = { width: 1, height: 1 };
  eye: Eye = { ...START_ANGLES, distance: 10, target: [0, 0, 0] };
  placed: PlacedGraph | null = null;
  /** Which drawn functions are drawn by their blocks. */
  isOpen: Uint8Array = new Uint8Array(0);
  nodes: Uint32Array = new Uint32Array(0);
  colors: PictureColors | null = null;
  selectedNode = -1;
  hoveredNode = -1;
  look: Look = { ground: [0, 0, 0], isDark: true, nodeOpacity: 1, countEffect: 1 };

  protected hottest = -1;
  protected sizes = NO_SIZES;

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

  /** The same of a node as if it were neither selected nor pointed at. */
  plainDiameter(node: number, depth: number): number {
    const size = sizeOfNode(this.sizes, node, { ...this.lookOf(node), isFront: false, isChosen: false });
    return nodePixels(size, pixelsPerUnit(this.frame), depth);
  }

  /** The share of the nodes inside the frame, 0 to 1. */
  inFrame(): number {
    return this.placed ? shareInFrame(this.nodes, this.placed.places.positions, this.eye, this.frame) : 0;
  }

  /** How far the eye's target is from what is farthest away from it. */
  get reach(): number {
    return reachFrom(this.sizes, this.eye.target);
  }

  private readonly sizeOf = (node: number): NodeSize => {
    return sizeOfNode(this.sizes, node, this.lookOf(node));
  };

  private lookOf(node: number): NodeLook {
    const isChosen = node === this.selectedNode;
    return {
      heat: (this.colors?.heats[node] ?? 0) / 255,
      countEffect: this.look.countEffect,
      isFront: isChosen || node === this.hoveredNode || node === this.hottest,
      isChosen,
    };
  }
}
