// The last layouts of a graph, so that going back to one is at once. Bounded: by number, and by the memory they take.
import type { LayoutInput, LayoutResult } from "./layout.ts";

const MOST_KEPT = 4;
const MOST_BYTES = 32 * 2 ** 20;

/** Of one graph at a time: another one puts away those of the one before. */
export class KeptLayouts {
  private graph: object | null = null;
  /** The one used last comes last. */
  private kept: LayoutResult[] = [];

  /** The layout of the graph, if it is kept. */
  find(graph: object, layout: LayoutInput["layout"], dimensions: 2 | 3): LayoutResult | null {
    const found = this.graph === graph ? this.kept.find((one) => isOf(one, layout, dimensions)) : undefined;
    if (!found) {
      return null;
    }
    this.kept = [...this.kept.filter((one) => one !== found), found];
    return found;
  }

  keep(graph: object, result: LayoutResult): void {
    if (this.graph !== graph) {
      this.graph = graph;
      this.kept = [];
    }
    this.kept = [...this.kept.filter((one) => !isOf(one, result.layout, result.dimensions)), result];
    while (this.kept.length > MOST_KEPT || this.kept.reduce((sum, one) => sum + bytesOf(one), 0) > MOST_BYTES) {
      this.kept.shift();
    }
  }
}

function isOf(one: LayoutResult, layout: LayoutInput["layout"], dimensions: 2 | 3): boolean {
  return one.layout === layout && one.dimensions === dimensions;
}

function bytesOf({ blocks, functions, radii }: LayoutResult): number {
  return blocks.byteLength + functions.byteLength + radii.byteLength;
}
