// Blocks that push each other away, held together by their edges. They begin where the functions' own layout puts them, so
// that functions stay together.
import { EDGE_KIND } from "../../protocol/generated.ts";
import { makeClusters } from "./block-clusters.ts";
import { placeFunctions, putClusters } from "./force.ts";
import { emptyResult, type LayoutInput, type LayoutResult } from "./layout.ts";
import type { Progress } from "./progress.ts";
import { separate } from "./separation.ts";
import { countSprings, Simulation, type Springs } from "./simulation.ts";

/** How long edges want to be: within a function, and from one to another. */
const EDGE_LENGTH = 1.2;
const CALL_LENGTH = 4;
/** How strongly an edge between functions holds, by one within. */
const CALL_STRENGTH = 0.15;
/** How strongly blocks push each other away: with springs and gravity such that neighbours are about one unit apart. */
const CHARGE = 0.06;
/** Room at the beginning, by that of the functions' layout. */
const ROOM = 1.2;
/** Steps by the number of functions, then of blocks; the first need not be good, only a beginning. */
const FUNCTION_STEP_WORK = 150_000;
const STEP_WORK = 500_000;
const STEPS = [8, 150] as const;
/** How far apart neighbouring blocks are, by the median; and half of how far they are at least. */
const SPACING = 1.15;
const BLOCK_RADIUS = 0.45;
/** So many blocks tell how far apart all are. */
const SAMPLE = 300;

export function layOutBlocks(input: LayoutInput, progress: Progress): LayoutResult {
  const { nFunctions, nBlocks, firstBlock, dimensions } = input;
  const clusters = makeClusters(input);
  const ofFunctions = placeFunctions(input, clusters.radii, FUNCTION_STEP_WORK, (current) => {
    progress(() => putClusters(input, clusters, current));
  });
  const start = putClusters(input, clusters, ofFunctions);
  const emptyFunctions = Uint32Array.from({ length: nFunctions }, (_, f) => f).filter(
    (f) => firstBlock[f] === firstBlock[f + 1],
  );
  // Functions without blocks take part as blocks behind all others.
  const n = nBlocks + emptyFunctions.length;
  const places = new Float64Array(3 * n);
  start.blocks.forEach((place, i) => (places[i] = ROOM * place));
  emptyFunctions.forEach((f, i) => {
    places.set(start.functions.subarray(3 * f, 3 * f + 3), 3 * (nBlocks + i));
  });
  if (n > 1) {
    const charges = new Float64Array(n).fill(CHARGE);
    const simulation = new Simulation({ dimensions, places, charges }, makeSprings(input, n));
    const steps = Math.max(STEPS[0], Math.min(STEPS[1], Math.round(STEP_WORK / n)));
    for (let step = 0; step < steps; step++) {
      simulation.step(step, steps);
      progress(() => readPlaces(input, places, emptyFunctions));
    }
    const scale = SPACING / measureSpacing(places);
    places.forEach((place, i) => (places[i] = scale * place));
    separate(places, new Float64Array(n).fill(BLOCK_RADIUS), dimensions);
  }
  return readPlaces(input, places, emptyFunctions);
}

function makeSprings(input: LayoutInput, n: number): Springs {
  const { edgeSource, edgeTarget, edgeKind, firstBlock, nFunctions } = input;
  const functionOf = new Uint32Array(n);
  for (let f = 0; f < nFunctions; f++) {
    functionOf.fill(f, firstBlock[f], firstBlock[f + 1]);
  }
  const isSpring = edgeSource.map((source, e) =>
    Number(source >= 0 && edgeTarget[e] >= 0 && source !== edgeTarget[e] && edgeKind[e] !== EDGE_KIND.start),
  );
  const source = Uint32Array.from(edgeSource.filter((_, e) => isSpring[e]));
  const target = Uint32Array.from(edgeTarget.filter((_, e) => isSpring[e]));
  const degree = countSprings(n, { source, target });
  const isInside = (i: number) => functionOf[source[i]] === functionOf[target[i]];
  return {
    source,
    target,
    length: Float64Array.from(source, (_, i) => (isInside(i) ? EDGE_LENGTH : CALL_LENGTH)),
    strength: Float64Array.from(source, (from, i) => {
      const least = Math.min(degree[from], degree[target[i]]);
      return isInside(i) ? 1 / Math.sqrt(least) / 2 : CALL_STRENGTH / least;
    }),
  };
}

/** The median distance of blocks to the one nearest to them, of a sample. */
function measureSpacing(places: Float64Array): number {
  const n = places.length / 3;
  const step = Math.max(1, Math.floor(n / SAMPLE));
  const found: number[] = [];
  for (let i = 0; i < n; i += step) {
    let least = Infinity;
    for (let j = 0; j < n; j++) {
      const square = squareTo(places, j, places[3 * i], places[3 * i + 1], places[3 * i + 2]);
      if (square < least && j !== i) {
        least = square;
      }
    }
    found.push(Math.sqrt(least));
  }
  found.sort((a, b) => a - b);
  return Math.max(1e-3, found[found.length >> 1]);
}

/** A function lies where the one of its blocks does that is nearest to the middle of all, so that no two share a spot. */
function readPlaces(input: LayoutInput, places: Float64Array, emptyFunctions: Uint32Array): LayoutResult {
  const result = emptyResult(input);
  const { nFunctions, nBlocks, firstBlock } = input;
  result.blocks.set(places.subarray(0, 3 * nBlocks));
  for (let f = 0; f < nFunctions; f++) {
    const first = firstBlock[f];
    const last = firstBlock[f + 1];
    if (first === last) {
      continue;
    }
    const middle = [0, 0, 0];
    for (let i = 3 * first; i < 3 * last; i++) {
      middle[i % 3] += places[i] / (last - first);
    }
    let nearest = first;
    let nearestSquare = Infinity;
    for (let block = first; block < last; block++) {
      const square = squareTo(places, block, middle[0], middle[1], middle[2]);
      if (square < nearestSquare) {
        nearestSquare = square;
        nearest = block;
      }
    }
    const center = places.subarray(3 * nearest, 3 * nearest + 3);
    let reach = 0;
    for (let block = first; block < last; block++) {
      reach = Math.max(reach, squareTo(places, block, center[0], center[1], center[2]));
    }
    result.functions.set(center, 3 * f);
    result.radii[f] = Math.sqrt(reach) + 0.5;
  }
  emptyFunctions.forEach((f, i) => {
    result.functions.set(places.subarray(3 * (nBlocks + i), 3 * (nBlocks + i) + 3), 3 * f);
    result.radii[f] = 0.5;
  });
  return result;
}

function squareTo(places: Float64Array, i: number, x: number, y: number, z: number): number {
  return (places[3 * i] - x) ** 2 + (places[3 * i + 1] - y) ** 2 + (places[3 * i + 2] - z) ** 2;
}
