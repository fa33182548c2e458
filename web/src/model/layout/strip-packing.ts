// Puts strips down on a surface that is as wide as told and as high as need be, each within the columns of its sector, and
// finds the width with which the surface gets the shape that is wanted.
import type { Strips } from "./block-rows.ts";

/** Free room between strips, in units of a block. */
export const STRIP_GAP = 1;

const MOST_TRIES = 6;
/** Of the width, by less of which it is not worth another try. */
const LEAST_CHANGE = 0.01;
/** Share of the surface that strips fill, for the first try. */
const EXPECTED_USE = 0.5;

/** What is to be packed, and where it may go. */
export interface Packing {
  strips: Strips;
  /** Functions in the order in which they are put down. */
  order: ArrayLike<number>;
  /** Of each function its group; groups lie side by side in the order of their numbers. */
  groupOf: ArrayLike<number>;
  nGroups: number;
  /** Groups share a sector until it has this share of the width, or room for their widest strip. */
  leastSector: number;
  /** Columns left free behind each sector, as a share of the width, and how many at least. */
  sectorGap: number;
  leastSectorGap: number;
  /** Whether a strip may never lie above the one before it; else that holds within each sector. */
  isLevel: boolean;
  leastColumns: number;
  /** Height by width: what is best, and from where to where it is good. */
  shape: readonly [least: number, best: number, most: number];
}

export interface PackedStrips {
  /** By place in the order the left edge and the top of a strip; tops go down from 0. */
  left: Float64Array;
  top: Float64Array;
  height: number;
  columns: number;
}

/** A part of the width, in columns of one unit. */
interface Sector {
  left: number;
  columns: number;
}

/** Pack strips on several widths; of surfaces of a good shape the smallest is best. */
export function packStrips(packing: Packing): PackedStrips {
  const { leastColumns, shape } = packing;
  const [least, wantedShape, most] = shape;
  const groups = measureGroups(packing);
  let wanted = Math.max(leastColumns, Math.sqrt(groups.area / (wantedShape * EXPECTED_USE)));
  let best: PackedStrips | null = null;
  let bestMiss = Infinity;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const packed = packOnWidth(packing, groups, wanted);
    const found = packed.height / packed.columns;
    const isGood = found >= least && found <= most;
    const surface = packed.height * packed.columns;
    // A bad shape is worse than any good one: that misses by less than 0.
    const miss = isGood ? -1 / surface : Math.abs(Math.log(Math.max(found, 1e-9) / wantedShape));
    if (best === null || miss < bestMiss) {
      best = packed;
      bestMiss = miss;
    }
    const next = Math.max(leastColumns, wanted * Math.sqrt(found / wantedShape));
    if (Math.abs(next - wanted) < wanted * LEAST_CHANGE) {
      break;
    }
    wanted = next;
  }
  return best!;
}

interface Groups {
  /** By group and of all the room that strips take. */
  areas: Float64Array;
  area: number;
  /** By group the columns of its widest strip. */
  widest: Uint32Array;
}

function measureGroups({ strips: { width, height }, order, groupOf, nGroups }: Packing): Groups {
  const areas = new Float64Array(nGroups);
  const widest = new Uint32Array(nGroups);
  for (let i = 0; i < order.length; i++) {
    const f = order[i];
    const group = groupOf[f];
    areas[group] += (width[f] + STRIP_GAP) * (height[f] + STRIP_GAP);
    widest[group] = Math.max(widest[group], width[f] + STRIP_GAP);
  }
  return { areas, area: areas.reduce((sum, one) => sum + one, 0), widest };
}

function packOnWidth(packing: Packing, groups: Groups, wanted: number): PackedStrips {
  const { strips, order, groupOf, isLevel } = packing;
  const { sectors, sectorOf, columns } = makeSectors(packing, groups, wanted);
  const left = new Float64Array(order.length);
  const top = new Float64Array(order.length);
  const surfaces = sectors.map((sector) => new Surface(sector.columns));
  let height = 0;
  let level = 0;
  for (let i = 0; i < order.length; i++) {
    const f = order[i];
    const sector = sectorOf[groupOf[f]];
    const surface = surfaces[sector];
    const needed = strips.width[f] + STRIP_GAP;
    if (isLevel) {
      surface.level = level;
    }
    const column = surface.find(needed);
    level = surface.level;
    surface.fill(column, needed, level + strips.height[f] + STRIP_GAP);
    left[i] = sectors[sector].left + column;
    top[i] = level;
    height = Math.max(height, level + strips.height[f]);
  }
  return { left, top, height, columns };
}

/** Sectors of the groups in their order, each as wide as its strips have area, about `wanted` columns together. */
function makeSectors(
  { nGroups, leastSector, sectorGap, leastSectorGap, leastColumns }: Packing,
  { areas, area, widest }: Groups,
  wanted: number,
): { sectors: Sector[]; sectorOf: Uint32Array; columns: number } {
  const gap = Math.max(leastSectorGap, Math.round(wanted * sectorGap));
  const sectorOf = new Uint32Array(nGroups);
  const sectors: Sector[] = [];
  let left = 0;
  let share = 0;
  let least = 0;
  for (let group = 0; group < nGroups; group++) {
    sectorOf[group] = sectors.length;
    share += area > 0 ? (wanted * areas[group]) / area : 0;
    least = Math.max(least, widest[group]);
    const isWide = least > 0 && share >= Math.min(least, wanted * leastSector);
    if (isWide || group === nGroups - 1) {
      const columns = Math.max(Math.round(share), least);
      sectors.push({ left, columns });
      left += columns + gap;
      share = 0;
      least = 0;
    }
  }
  return { sectors, sectorOf, columns: Math.max(left, leastColumns) };
}

/** A sector while it is filled. */
class Surface {
  /** No strip is put down above; goes down only. */
  level = 0;
  /** By column down to where it is taken. */
  private readonly taken: Float64Array;
  /** Where the last strip ended: search begins there, so that what was discovered together lies side by side. */
  private next = 0;
  /** Room for `lower`. */
  private readonly window: Uint32Array;

  constructor(columns: number) {
    this.taken = new Float64Array(columns);
    this.window = new Uint32Array(columns);
  }

  fill(column: number, columns: number, bottom: number): void {
    this.taken.fill(bottom, column, column + columns);
    this.next = column + columns;
  }

  /** The first of so many free columns side by side; the level is lowered until there are. */
  find(columns: number): number {
    let found = this.search(this.next, this.taken.length, columns);
    if (found < 0) {
      found = this.search(0, Math.min(this.taken.length, this.next + columns - 1), columns);
    }
    return found < 0 ? this.lower(columns) : found;
  }

  private search(from: number, to: number, columns: number): number {
    const { taken, level } = this;
    let free = 0;
    for (let column = from; column < to; column++) {
      free = taken[column] <= level ? free + 1 : 0;
      if (free === columns) {
        return column - columns + 1;
      }
    }
    return -1;
  }

  /** Lower the level to where so many columns side by side are free first; the first of them. */
  private lower(columns: number): number {
    const { taken, window } = this;
    // Indices in `window` from head to tail: of taken columns ever less far down, the first of them the window's maximum.
    let head = 0;
    let tail = 0;
    let best = Infinity;
    let found = 0;
    for (let column = 0; column < taken.length; column++) {
      while (tail > head && taken[window[tail - 1]] <= taken[column]) {
        tail--;
      }
      window[tail++] = column;
      if (window[head] <= column - columns) {
        head++;
      }
      if (column >= columns - 1 && taken[window[head]] < best) {
        best = taken[window[head]];
        found = column - columns + 1;
      }
    }
    this.level = Math.max(this.level, best);
    return found;
  }
}
