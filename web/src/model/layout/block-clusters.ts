// The blocks of a function around its middle: in two dimensions as the seeds of a sunflower, in three on shells around the
// first. The rows come from the inside outwards, so that edges are short.
import { rankBlocks } from "./block-rows.ts";
import type { LayoutInput } from "./layout.ts";

export interface Clusters {
  /** By block where it lies from its function's middle: x, y, z. */
  offsets: Float32Array;
  /** By function how much room it takes, half of the distance to neighbouring blocks included. */
  radii: Float64Array;
}

const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
/** Seeds of a sunflower at this times the root of their number are at least one unit apart. */
const SEED_DISTANCE = 0.62;
/** So many on a shell of radius 1 are about one unit apart. */
const SHELL_BLOCKS = 9;

/** Clusters of all functions; without blocks only how large they would be. */
export function makeClusters(input: LayoutInput): Clusters {
  const { nFunctions, firstBlock, hasBlocks, dimensions } = input;
  const radii = new Float64Array(nFunctions);
  const offsets = new Float32Array(hasBlocks ? 3 * input.nBlocks : 0);
  const order = hasBlocks ? rankBlocks(input).order : null;
  for (let f = 0; f < nFunctions; f++) {
    const first = firstBlock[f];
    const n = firstBlock[f + 1] - first;
    radii[f] = (dimensions === 2 ? seedRadius(n - 1, n) : shellOf(n - 1)) + 0.5;
    if (!order) {
      continue;
    }
    for (let i = 0; i < n; i++) {
      if (dimensions === 2) {
        putSeed(i, n, offsets, order[first + i]);
      } else {
        putOnShell(i, n, offsets, order[first + i]);
      }
    }
  }
  return { offsets, radii };
}

/** How far from the middle block number `i` of `n` is; one alone is in it. */
function seedRadius(i: number, n: number): number {
  return n > 1 ? SEED_DISTANCE * Math.sqrt(i + 0.5) : 0;
}

function putSeed(i: number, n: number, offsets: Float32Array, block: number): void {
  const radius = seedRadius(i, n);
  offsets[3 * block] = radius * Math.sin(i * GOLDEN_ANGLE);
  offsets[3 * block + 1] = radius * Math.cos(i * GOLDEN_ANGLE);
}

/** How many blocks the shells up to number `shell` hold, the one in the middle included. */
function shellEnd(shell: number): number {
  return 1 + (SHELL_BLOCKS * shell * (shell + 1) * (2 * shell + 1)) / 6;
}

/** The shell on which block number `i` of a function lies; also its radius. */
function shellOf(i: number): number {
  if (i <= 0) {
    return 0;
  }
  let shell = Math.max(1, Math.floor(Math.cbrt((3 * i) / SHELL_BLOCKS)) - 1);
  while (shellEnd(shell) <= i) {
    shell++;
  }
  return shell;
}

/** Block number `i` of `n`, which are spread evenly over each shell. */
function putOnShell(i: number, n: number, offsets: Float32Array, block: number): void {
  const shell = shellOf(i);
  if (shell === 0) {
    return;
  }
  const start = shellEnd(shell - 1);
  const count = Math.min(n, shellEnd(shell)) - start;
  const height = 1 - (2 * (i - start) + 1) / count;
  const across = Math.sqrt(1 - height * height) * shell;
  const angle = (i - start) * GOLDEN_ANGLE + shell;
  offsets[3 * block] = across * Math.sin(angle);
  offsets[3 * block + 1] = height * shell;
  offsets[3 * block + 2] = across * Math.cos(angle);
}
