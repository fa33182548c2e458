// Nodes that are dragged: which go together, how far they go, and what takes that back. Where they were put the model keeps.
import { axesOf, pixelsPerUnit } from "../../base/projection.ts";
import { blocksOfFunction, nodesOfGroup } from "../../model/graph/node-groups.ts";
import { basePlaces, type PlacedGraph } from "../../model/graph/scene.ts";
import type { Offset } from "../../model/layout/moved-nodes.ts";
import { functionOfSelection } from "./marked-edges.ts";
import type { GraphPicture } from "./picture.ts";

/** Smaller nodes are not taken along by a pointer that means the whole picture, unless they are selected. */
const GRAB_PX = 10;

export class NodeDrag {
  private dragged: { placed: PlacedGraph; nodes: number[]; depth: number; by: [number, number, number] } | null = null;

  constructor(private readonly picture: GraphPicture) {}

  /**
   * Take hold of what is at a place of the picture; whether there is something. `isAny` takes the smallest, too, and
   * `isWhole` all of its function.
   */
  grab(x: number, y: number, isAny: boolean, isWhole: boolean): boolean {
    const { picture } = this;
    const { placed } = picture;
    const node = placed ? picture.pick(x, y) : -1;
    if (!placed || node < 0) {
      return false;
    }
    const depth = picture.projector()(node)[2];
    const isLarge = picture.plainDiameter(node, depth) >= GRAB_PX;
    if (!isAny && !isLarge && node !== picture.selectedNode) {
      return false;
    }
    this.dragged = { placed, nodes: this.groupOf(placed, node, isWhole), depth, by: [0, 0, 0] };
    return true;
  }

  /** What was taken goes by some pixels. */
  drag(dx: number, dy: number): void {
    const { dragged, picture } = this;
    if (!dragged || picture.placed !== dragged.placed) {
      return;
    }
    const step = this.stepOf(dx, dy, dragged.depth);
    const { positions } = dragged.placed.places;
    for (const node of dragged.nodes) {
      for (let axis = 0; axis < 3; axis++) {
        positions[3 * node + axis] += step[axis];
      }
    }
    step.forEach((value, axis) => (dragged.by[axis] += value));
    picture.nodesMoved(dragged.nodes);
  }

  /** It stays there. */
  drop(): void {
    const { dragged } = this;
    this.dragged = null;
    if (dragged && dragged.by.some((value) => value !== 0)) {
      dragged.placed.moved.move(dragged.nodes, dragged.by);
      this.show(dragged.placed, dragged.nodes);
    }
  }

  /** Put what is selected elsewhere, by some pixels. Whether anything is. */
  nudge(dx: number, dy: number): boolean {
    const { picture } = this;
    const { placed, selectedNode } = picture;
    if (!placed || selectedNode < 0) {
      return false;
    }
    const nodes = this.groupOf(placed, selectedNode, false);
    placed.moved.move(nodes, this.stepOf(dx, dy, picture.projector()(selectedNode)[2]));
    this.show(placed, nodes);
    return true;
  }

  /** Take the last of all this back. Returns how many nodes that changed. */
  undo(): number {
    const { placed } = this.picture;
    return placed ? this.show(placed, placed.moved.undo()) : 0;
  }

  /** Have what is selected where the layout has it, or with `isAll` everything. Returns how many nodes that changed. */
  release(isAll: boolean): number {
    const { placed, selectedNode } = this.picture;
    if (!placed || (!isAll && selectedNode < 0)) {
      return 0;
    }
    const nodes = isAll ? placed.moved.nodes() : this.groupOf(placed, selectedNode, false);
    return this.show(placed, placed.moved.release(nodes));
  }

  private show(placed: PlacedGraph, nodes: number[]): number {
    placed.moved.write(nodes, basePlaces(placed.result), placed.places.positions);
    if (nodes.length > 0 && this.picture.placed === placed) {
      this.picture.nodesMoved(nodes);
    }
    return nodes.length;
  }

  /** A function goes with its blocks, and so does a block whose function is selected as a whole. */
  private groupOf(placed: PlacedGraph, node: number, isWhole: boolean): number[] {
    const { selected } = this.picture;
    const whole = selected?.kind === "function" ? functionOfSelection(placed, selected) : -1;
    return nodesOfGroup(placed, node, isWhole || (whole >= 0 && blocksOfFunction(placed, whole).includes(node)));
  }

  /** Pixels in units of space, on a plane at a depth that faces the eye. */
  private stepOf(dx: number, dy: number, depth: number): Offset {
    const { eye, frame } = this.picture;
    const { right, up } = axesOf(eye.yaw, eye.pitch);
    const unit = depth / pixelsPerUnit(frame);
    const along = (axis: number) => (right[axis] * dx - up[axis] * dy) * unit;
    return [along(0), along(1), along(2)];
  }
}
