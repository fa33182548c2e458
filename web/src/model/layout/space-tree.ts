// What many bodies do to one: a quadtree or an octree, in which far groups count as one body in their middle (Barnes and Hut).
// Places are x, y, z one after the other; in two dimensions z is left out of account.

/** A cell this small is not split again: bodies in it lie on one spot, and are chained. */
const MOST_LEVELS = 48;

export class SpaceTree {
  private readonly stride: number;
  /** By cell and part of it: 0 for none, a cell, or -1 - body. */
  private parts: Int32Array;
  private charge: Float64Array;
  private middle: Float64Array;
  private size: Float64Array;
  /** Of bodies on one spot the next, or -1. */
  private readonly chain: Int32Array;
  private readonly stack = new Int32Array(8 * MOST_LEVELS + 8);
  private nCells = 0;

  constructor(
    private readonly n: number,
    private readonly dimensions: 2 | 3,
  ) {
    this.stride = 1 << dimensions;
    const capacity = Math.max(16, n);
    this.parts = new Int32Array(capacity * this.stride);
    this.charge = new Float64Array(capacity);
    this.middle = new Float64Array(3 * capacity);
    this.size = new Float64Array(capacity);
    this.chain = new Int32Array(n);
  }

  /** Make the tree of bodies at these places, with these charges. */
  build(places: Float64Array, charges: Float64Array): void {
    this.chain.fill(-1);
    const least = [Infinity, Infinity, Infinity];
    const most = [-Infinity, -Infinity, -Infinity];
    for (let i = 0; i < 3 * this.n; i++) {
      least[i % 3] = Math.min(least[i % 3], places[i]);
      most[i % 3] = Math.max(most[i % 3], places[i]);
    }
    const size = Math.max(1e-6, ...most.slice(0, this.dimensions).map((end, axis) => end - least[axis]));
    this.nCells = 0;
    const center = [0, 1, 2].map((axis) => (least[axis] + most[axis]) / 2);
    this.addCell(size);
    for (let body = 0; body < this.n; body++) {
      this.insert(body, places, center[0], center[1], center[2], size);
    }
    this.sum(places, charges);
  }

  private addCell(size: number): number {
    if (this.nCells === this.size.length) {
      this.grow();
    }
    const cell = this.nCells++;
    this.parts.fill(0, cell * this.stride, (cell + 1) * this.stride);
    this.size[cell] = size;
    return cell;
  }

  private grow(): void {
    const { parts, charge, middle, size } = this;
    const capacity = 2 * size.length;
    this.parts = new Int32Array(capacity * this.stride);
    this.parts.set(parts);
    this.charge = new Float64Array(capacity);
    this.charge.set(charge);
    this.middle = new Float64Array(3 * capacity);
    this.middle.set(middle);
    this.size = new Float64Array(capacity);
    this.size.set(size);
  }

  private insert(body: number, places: Float64Array, x: number, y: number, z: number, size: number): void {
    const { stride } = this;
    const isDeep = this.dimensions === 3;
    let cell = 0;
    // The body that was found where this one goes, and goes down with it.
    let other = -1;
    for (let level = 0; ; level++) {
      const part = this.partOf(body, places, x, y, z);
      const at = cell * stride + part;
      const found = this.parts[at];
      if (other < 0 && found > 0) {
        cell = found;
      } else {
        if (other < 0) {
          if (found === 0) {
            this.parts[at] = -1 - body;
            return;
          }
          other = -1 - found;
          if (level >= MOST_LEVELS) {
            this.chain[body] = other;
            this.parts[at] = -1 - body;
            return;
          }
        } else {
          const otherPart = this.partOf(other, places, x, y, z);
          if (otherPart !== part) {
            this.parts[at] = -1 - body;
            this.parts[cell * stride + otherPart] = -1 - other;
            return;
          }
          if (level >= MOST_LEVELS) {
            this.parts[at] = -1 - body;
            // Whoever is chained to the other stays so.
            this.chain[body] = other;
            return;
          }
        }
        const below = this.addCell(size / 2);
        this.parts[at] = below;
        cell = below;
      }
      size /= 2;
      x += part & 1 ? size / 2 : -size / 2;
      y += part & 2 ? size / 2 : -size / 2;
      if (isDeep) {
        z += part & 4 ? size / 2 : -size / 2;
      }
    }
  }

  private partOf(body: number, places: Float64Array, x: number, y: number, z: number): number {
    const part = (places[3 * body] > x ? 1 : 0) | (places[3 * body + 1] > y ? 2 : 0);
    return this.dimensions === 3 && places[3 * body + 2] > z ? part | 4 : part;
  }

  /** Charges and their middles, from the smallest cells up: a cell is made before those in it. */
  private sum(places: Float64Array, charges: Float64Array): void {
    const { stride, parts, charge, middle, chain } = this;
    for (let cell = this.nCells - 1; cell >= 0; cell--) {
      let total = 0;
      let x = 0;
      let y = 0;
      let z = 0;
      for (let at = cell * stride; at < (cell + 1) * stride; at++) {
        const part = parts[at];
        if (part > 0) {
          const c = charge[part];
          total += c;
          x += c * middle[3 * part];
          y += c * middle[3 * part + 1];
          z += c * middle[3 * part + 2];
        } else if (part < 0) {
          for (let body = -1 - part; body >= 0; body = chain[body]) {
            const c = charges[body];
            total += c;
            x += c * places[3 * body];
            y += c * places[3 * body + 1];
            z += c * places[3 * body + 2];
          }
        }
      }
      charge[cell] = total;
      middle[3 * cell] = x / total;
      middle[3 * cell + 1] = y / total;
      middle[3 * cell + 2] = z / total;
    }
  }

  /**
   * Push all bodies from each other: adds to `velocity` by charge / distance, times `factor`. `theta`: size by distance up
   * to which a cell counts as one body.
   */
  repel(
    places: Float64Array,
    charges: Float64Array,
    velocity: Float64Array,
    { factor, theta, softening }: { factor: number; theta: number; softening: number },
  ): void {
    const { stride, parts, charge, middle, chain, stack, size, n } = this;
    const openness = 1 / (theta * theta);
    for (let body = 0; body < n; body++) {
      const bodyX = places[3 * body];
      const bodyY = places[3 * body + 1];
      const bodyZ = places[3 * body + 2];
      let pushX = 0;
      let pushY = 0;
      let pushZ = 0;
      let depth = 0;
      stack[depth++] = 0;
      while (depth > 0) {
        const cell = stack[--depth];
        for (let at = cell * stride, end = at + stride; at < end; at++) {
          const part = parts[at];
          if (part > 0) {
            const x = bodyX - middle[3 * part];
            const y = bodyY - middle[3 * part + 1];
            const z = bodyZ - middle[3 * part + 2];
            const square = x * x + y * y + z * z;
            if (size[part] * size[part] * openness < square) {
              const push = charge[part] / (square + softening);
              pushX += x * push;
              pushY += y * push;
              pushZ += z * push;
            } else {
              stack[depth++] = part;
            }
          } else if (part < 0) {
            for (let other = -1 - part; other >= 0; other = chain[other]) {
              if (other !== body) {
                const x = bodyX - places[3 * other];
                const y = bodyY - places[3 * other + 1];
                const z = bodyZ - places[3 * other + 2];
                const push = charges[other] / (x * x + y * y + z * z + softening);
                pushX += x * push;
                pushY += y * push;
                pushZ += z * push;
              }
            }
          }
        }
      }
      velocity[3 * body] += pushX * factor;
      velocity[3 * body + 1] += pushY * factor;
      velocity[3 * body + 2] += pushZ * factor;
    }
  }
}
