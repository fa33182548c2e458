// Nodes that the reader put elsewhere: how far from where the layout has them, and the steps that can be taken back. A layout
// that is shown again has them where they were put. In memory only, of one graph at a time.
import { type ReadonlySignal, signal } from "@preact/signals";
import type { Layout } from "../view-state.ts";

export type Offset = readonly [number, number, number];

/** What nodes stand for, where their numbers do not last; -1 for a node that is not there. */
export interface Numbering {
  keyOf: (node: number) => number;
  nodeOf: (key: number) => number;
}

const SAME: Numbering = { keyOf: (node) => node, nodeOf: (key) => key };

const NOWHERE: Offset = [0, 0, 0];
/** So many steps can be taken back. */
const MOST_STEPS = 200;

/** The nodes that were moved in one layout of a graph. */
export class MovedNodes {
  /** By key, as the numbering has it. */
  private readonly offsets = new Map<number, Offset>();
  /** By step what each of its keys had before. */
  private readonly steps: Map<number, Offset | undefined>[] = [];
  private readonly changed = signal({ moved: 0, steps: 0 });
  private numbering = SAME;

  /** How many nodes are not where the layout has them, and how many steps can be taken back. */
  get state(): ReadonlySignal<{ moved: number; steps: number }> {
    return this.changed;
  }

  offsetOf(node: number): Offset {
    return this.offsets.get(this.numbering.keyOf(node)) ?? NOWHERE;
  }

  /** All nodes that are not where the layout has them. */
  nodes(): number[] {
    return this.nodesOf(this.offsets.keys());
  }

  /** Nodes have other numbers from now on: what was moved stays moved, whatever its number is. */
  renumber(numbering: Numbering): void {
    this.numbering = numbering;
    this.tell();
  }

  /** Put nodes elsewhere, by so much from where they are; they stay there. */
  move(nodes: Iterable<number>, by: Offset): void {
    this.take(nodes, (offset) => [offset[0] + by[0], offset[1] + by[1], offset[2] + by[2]]);
  }

  /** Put those of the nodes back that were moved. Returns which. */
  release(nodes: Iterable<number>): number[] {
    const moved = [...nodes].filter((node) => this.offsets.has(this.numbering.keyOf(node)));
    if (moved.length > 0) {
      this.take(moved, () => undefined);
    }
    return moved;
  }

  /** Take the last step back. Returns the nodes that it had moved or released; none if there was no step. */
  undo(): number[] {
    const step = this.steps.pop();
    for (const [key, before] of step ?? []) {
      this.set(key, before);
    }
    this.tell();
    return this.nodesOf(step?.keys() ?? []);
  }

  /** Write where nodes are to `positions`, of what the layout has in `base`: x, y, z by node. */
  write(nodes: Iterable<number>, base: (node: number, axis: number) => number, positions: Float32Array): void {
    for (const node of nodes) {
      const offset = this.offsetOf(node);
      for (let axis = 0; axis < 3; axis++) {
        positions[3 * node + axis] = base(node, axis) + offset[axis];
      }
    }
  }

  private take(nodes: Iterable<number>, change: (offset: Offset) => Offset | undefined): void {
    const step = new Map<number, Offset | undefined>();
    for (const node of nodes) {
      const key = this.numbering.keyOf(node);
      if (!step.has(key)) {
        step.set(key, this.offsets.get(key));
        this.set(key, change(this.offsetOf(node)));
      }
    }
    this.steps.push(step);
    if (this.steps.length > MOST_STEPS) {
      this.steps.shift();
    }
    this.tell();
  }

  private set(key: number, offset: Offset | undefined): void {
    if (offset) {
      this.offsets.set(key, offset);
    } else {
      this.offsets.delete(key);
    }
  }

  private nodesOf(keys: Iterable<number>): number[] {
    return [...keys].map((key) => this.numbering.nodeOf(key)).filter((node) => node >= 0);
  }

  private tell(): void {
    this.changed.value = { moved: this.nodes().length, steps: this.steps.length };
  }
}

/** What was moved in each layout of a graph; of another graph nothing was. */
export class MovedByLayout {
  private graph: object | null = null;
  private readonly found = new Map<string, MovedNodes>();

  /** As if nothing had been moved. */
  forget(): void {
    this.found.clear();
  }

  of(graph: object, layout: Layout, dimensions: 2 | 3): MovedNodes {
    if (this.graph !== graph) {
      this.graph = graph;
      this.found.clear();
    }
    const name = `${layout} ${dimensions}`;
    let moved = this.found.get(name);
    if (!moved) {
      moved = new MovedNodes();
      this.found.set(name, moved);
    }
    return moved;
  }
}
