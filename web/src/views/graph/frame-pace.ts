// How much of the picture is drawn at a time: as many edges as the machine draws quickly enough, told by how long frames took.

/** Edges that are drawn at rest, at most; and while moving, within these bounds. */
export const MOST_EDGES = 150_000;
const MOVING_EDGES = { least: 500, most: 24_000 };
/** A moving frame should take so long: slower, and fewer edges are drawn. */
const FRAME_MS = { slow: 70, quick: 36 };
/** How long the drawing of edges at rest may take at a time, so that there is room for the pointer. */
const SLICE_MS = 60;

export class FramePace {
  /** Edges of a frame while moving. */
  movingEdges = 8000;
  /** Edges that are drawn at a time at rest. */
  sliceEdges = 4000;

  /** A frame took so long. Returns whether moving frames have other edges from now on. */
  adapt(frameMs: number, isMoving: boolean): boolean {
    if (!isMoving) {
      const by = Math.min(Math.max(SLICE_MS / Math.max(frameMs, 1), 0.5), 2);
      this.sliceEdges = Math.min(Math.max(Math.round(this.sliceEdges * by), 1000), MOST_EDGES);
      return false;
    }
    if (frameMs <= FRAME_MS.slow && frameMs >= FRAME_MS.quick) {
      return false;
    }
    const by = frameMs > FRAME_MS.slow ? 0.6 : 1.3;
    const before = this.movingEdges;
    this.movingEdges = Math.min(Math.max(Math.round(before * by), MOVING_EDGES.least), MOVING_EDGES.most);
    return this.movingEdges !== before;
  }
}
