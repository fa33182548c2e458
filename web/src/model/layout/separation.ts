// Moves discs or balls of different sizes until none overlaps another: those that do push each other apart, and where there
// is no room for that all places move away from the middle a little.

/** Overlaps up to this share of the distance wanted are none. */
const TOLERANCE = 0.02;
const PASSES = 6;
const INFLATION = 1.06;
const MOST_ROUNDS = 400;

/** Move `places` (x, y, z one after the other; z stays in two dimensions) until all are as far apart as their radii say. */
export function separate(places: Float64Array, radii: Float64Array, dimensions: 2 | 3): void {
  const grid = new LevelGrid(radii, dimensions);
  for (let round = 0; round < MOST_ROUNDS; round++) {
    for (let pass = 0; pass < PASSES; pass++) {
      if (grid.pushApart(places) === 0) {
        return;
      }
    }
    for (let i = 0; i < places.length; i++) {
      places[i] *= INFLATION;
    }
  }
}

/** Grids of cells, one by size of body, each twice as coarse as the one before; a body lies in the cell of its middle. */
class LevelGrid {
  private readonly n: number;
  private readonly level: Uint8Array;
  private readonly levels: number[];
  private readonly cellSize: Float64Array;
  private readonly cell: Int32Array;
  private readonly bucketStart: Uint32Array;
  private readonly inBuckets: Uint32Array;
  private readonly bucketOf: Uint32Array;
  private readonly mask: number;
  /** Neighbours of a cell: all, and of each pair of opposite ones one. */
  private readonly around: Int8Array;
  private readonly half: Int8Array;

  constructor(
    private readonly radii: Float64Array,
    private readonly dimensions: 2 | 3,
  ) {
    this.n = radii.length;
    const least = radii.reduce((found, radius) => Math.min(found, radius), Infinity);
    this.level = Uint8Array.from(radii, (radius) => Math.ceil(Math.log2(radius / least) - 1e-9));
    this.levels = [...new Set(this.level)].sort((a, b) => a - b);
    // Two bodies of a level touch at most at twice the largest radius in it.
    this.cellSize = Float64Array.from({ length: 256 }, (_, level) => 2 * least * 2 ** level * (1 + 1e-9));
    this.cell = new Int32Array(3 * this.n);
    let size = 16;
    while (size < 2 * this.n) {
      size *= 2;
    }
    this.mask = size - 1;
    this.bucketStart = new Uint32Array(size + 1);
    this.inBuckets = new Uint32Array(this.n);
    this.bucketOf = new Uint32Array(this.n);
    const around: number[] = [];
    const half: number[] = [];
    const depth = dimensions === 3 ? 1 : 0;
    for (let x = -1; x <= 1; x++) {
      for (let y = -1; y <= 1; y++) {
        for (let z = -depth; z <= depth; z++) {
          around.push(x, y, z);
          if (x > 0 || (x === 0 && (y > 0 || (y === 0 && z >= 0)))) {
            half.push(x, y, z);
          }
        }
      }
    }
    this.around = Int8Array.from(around);
    this.half = Int8Array.from(half);
  }

  /** Push every two that overlap apart; how many did. */
  pushApart(places: Float64Array): number {
    this.fill(places);
    let overlaps = 0;
    for (let i = 0; i < this.n; i++) {
      for (const level of this.levels) {
        if (level >= this.level[i]) {
          overlaps += this.pushFrom(i, level, places);
        }
      }
    }
    return overlaps;
  }

  private fill(places: Float64Array): void {
    const { cell, level, cellSize, bucketStart, bucketOf, inBuckets } = this;
    bucketStart.fill(0);
    for (let i = 0; i < this.n; i++) {
      const size = cellSize[level[i]];
      const x = (cell[3 * i] = Math.floor(places[3 * i] / size));
      const y = (cell[3 * i + 1] = Math.floor(places[3 * i + 1] / size));
      const z = (cell[3 * i + 2] = this.dimensions === 3 ? Math.floor(places[3 * i + 2] / size) : 0);
      const bucket = this.bucket(level[i], x, y, z);
      bucketOf[i] = bucket;
      bucketStart[bucket]++;
    }
    let end = 0;
    for (let bucket = 0; bucket <= this.mask; bucket++) {
      end += bucketStart[bucket];
      bucketStart[bucket] = end;
    }
    bucketStart[this.mask + 1] = end;
    for (let i = this.n - 1; i >= 0; i--) {
      inBuckets[--bucketStart[bucketOf[i]]] = i;
    }
  }

  private bucket(level: number, x: number, y: number, z: number): number {
    let mixed =
      Math.imul(x, 0x8da6b343) ^ Math.imul(y, 0xd8163841) ^ Math.imul(z, 0xcb1ab31f) ^ Math.imul(level, 0x165667b1);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
    return (mixed ^ (mixed >>> 13)) & this.mask;
  }

  /** Push body `i` and those that overlap it of `level`, which is its own or a coarser one. */
  private pushFrom(i: number, level: number, places: Float64Array): number {
    const { cell, radii, bucketStart, inBuckets } = this;
    const isOwn = level === this.level[i];
    const size = this.cellSize[level];
    const ownX = isOwn ? cell[3 * i] : Math.floor(places[3 * i] / size);
    const ownY = isOwn ? cell[3 * i + 1] : Math.floor(places[3 * i + 1] / size);
    const ownZ = isOwn ? cell[3 * i + 2] : this.dimensions === 3 ? Math.floor(places[3 * i + 2] / size) : 0;
    const steps = isOwn ? this.half : this.around;
    let overlaps = 0;
    for (let s = 0; s < steps.length; s += 3) {
      const x = ownX + steps[s];
      const y = ownY + steps[s + 1];
      const z = ownZ + steps[s + 2];
      const bucket = this.bucket(level, x, y, z);
      const isSame = isOwn && x === ownX && y === ownY && z === ownZ;
      for (let at = bucketStart[bucket]; at < bucketStart[bucket + 1]; at++) {
        const j = inBuckets[at];
        // Cells of other places may share the bucket. Of two in one cell only one pushes.
        const isThere = cell[3 * j] === x && cell[3 * j + 1] === y && cell[3 * j + 2] === z && this.level[j] === level;
        if (isThere && !(isSame && j <= i) && this.pushPair(i, j, radii[i] + radii[j], places)) {
          overlaps++;
        }
      }
    }
    return overlaps;
  }

  private pushPair(i: number, j: number, wanted: number, places: Float64Array): boolean {
    const { radii } = this;
    let x = places[3 * j] - places[3 * i];
    let y = places[3 * j + 1] - places[3 * i + 1];
    let z = this.dimensions === 3 ? places[3 * j + 2] - places[3 * i + 2] : 0;
    let square = x * x + y * y + z * z;
    const nearest = wanted * (1 - TOLERANCE);
    if (square >= nearest * nearest) {
      return false;
    }
    if (square < 1e-12) {
      // On one spot: any direction will do, as long as not all take the same.
      const angle = i * 2.399963 + j;
      x = Math.cos(angle) * 1e-6;
      y = Math.sin(angle) * 1e-6;
      z = 0;
      square = 1e-12;
    }
    const distance = Math.sqrt(square);
    const push = (wanted - distance) / distance;
    const weight = (radii[i] * radii[i]) / (radii[i] * radii[i] + radii[j] * radii[j]);
    const ofI = push * (1 - weight);
    const ofJ = push * weight;
    places[3 * i] -= x * ofI;
    places[3 * i + 1] -= y * ofI;
    places[3 * i + 2] -= z * ofI;
    places[3 * j] += x * ofJ;
    places[3 * j + 1] += y * ofJ;
    places[3 * j + 2] += z * ofJ;
    return true;
  }
}
