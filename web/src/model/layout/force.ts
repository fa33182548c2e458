// Functions that push each other away, held together by what leads from one to another; the blocks of each lie inside of it.
import { type Clusters, makeClusters } from "./block-clusters.ts";
import { emptyResult, type LayoutInput, type LayoutResult } from "./layout.ts";
import type { Progress } from "./progress.ts";
import { separate } from "./separation.ts";
import { countSprings, Simulation, type Springs } from "./simulation.ts";

/** Free room between functions, and how much longer a link wants to be than the radii at its ends. */
const FUNCTION_GAP = 1;
const LINK_LENGTH = 2.5;
/** How strongly functions push each other away, by their size squared. */
const CHARGE = 0.05;
/** Steps of the simulation: so many by the number of functions, within bounds. */
const STEP_WORK = 350_000;
const STEPS = [10, 220] as const;

export function layOutForce(input: LayoutInput, progress: Progress): LayoutResult {
  const clusters = makeClusters(input);
  const places = placeFunctions(input, clusters.radii, STEP_WORK, (current) => {
    progress(() => putClusters(input, clusters, current));
  });
  return putClusters(input, clusters, places);
}

/**
 * Places of the functions, none of which overlap another one. `work` is the number of functions times that of steps;
 * `onStep` is told of places on the way, to be copied.
 */
export function placeFunctions(
  input: LayoutInput,
  radii: Float64Array,
  work: number,
  onStep: (places: Float64Array) => void,
): Float64Array {
  const { nFunctions, dimensions } = input;
  const places = placeByCaller(input, radii);
  if (nFunctions < 2) {
    return places;
  }
  const charges = radii.map((radius) => CHARGE * (2 * radius + LINK_LENGTH) ** 2);
  const simulation = new Simulation({ dimensions, places, charges }, makeSprings(input, radii));
  const steps = Math.max(STEPS[0], Math.min(STEPS[1], Math.round(work / nFunctions)));
  for (let step = 0; step < steps; step++) {
    simulation.step(step, steps);
    onStep(places);
  }
  separate(
    places,
    radii.map((radius) => radius + FUNCTION_GAP / 2),
    dimensions,
  );
  return places;
}

/** Springs along the links; what has few of them is held the strongest. */
function makeSprings({ nFunctions, linkSource, linkTarget }: LayoutInput, radii: Float64Array): Springs {
  const isSpring = linkSource.map((source, i) => Number(source !== linkTarget[i]));
  const source = linkSource.filter((_, i) => isSpring[i]);
  const target = linkTarget.filter((_, i) => isSpring[i]);
  const degree = countSprings(nFunctions, { source, target });
  return {
    source,
    target,
    length: Float64Array.from(source, (from, i) => radii[from] + radii[target[i]] + LINK_LENGTH),
    strength: Float64Array.from(source, (from, i) => 1 / Math.min(degree[from], degree[target[i]])),
  };
}

/**
 * Places to begin with, from the tree of first callers: what was called by the same function lies in the same direction,
 * the further out the deeper.
 */
function placeByCaller(input: LayoutInput, radii: Float64Array): Float64Array {
  const { nFunctions, caller, dimensions } = input;
  const parent = caller.map((by, f) => (by >= 0 && by < f ? by : -1));
  const weight = radii.map((radius) => radius + FUNCTION_GAP);
  const depth = new Uint32Array(nFunctions);
  let deepest = 0;
  let room = 0;
  for (let f = 0; f < nFunctions; f++) {
    room += weight[f] ** dimensions;
    depth[f] = parent[f] >= 0 ? depth[parent[f]] + 1 : 0;
    deepest = Math.max(deepest, depth[f]);
  }
  const subtree = weight.slice();
  let whole = 0;
  for (let f = nFunctions - 1; f >= 0; f--) {
    if (parent[f] >= 0) {
      subtree[parent[f]] += subtree[f];
    } else {
      whole += subtree[f];
    }
  }
  // Where in the order of the tree the subtree of the next function begins, by its caller; at the end for those without.
  const next = new Float64Array(nFunctions + 1);
  const places = new Float64Array(3 * nFunctions);
  const reach = 2 * room ** (1 / dimensions);
  const turns = Math.sqrt(nFunctions);
  for (let f = 0; f < nFunctions; f++) {
    const above = parent[f] >= 0 ? parent[f] : nFunctions;
    const start = next[above];
    next[above] += subtree[f];
    next[f] = start + weight[f];
    const share = (start + subtree[f] / 2) / whole;
    const radius = reach * ((depth[f] + 0.5) / (deepest + 1)) ** (1 / dimensions);
    const height = dimensions === 3 ? 1 - 2 * share : 0;
    const across = dimensions === 3 ? radius * Math.sqrt(1 - height * height) : radius;
    const angle = 2 * Math.PI * share * (dimensions === 3 ? turns : 1);
    places[3 * f] = across * Math.sin(angle);
    places[3 * f + 1] = dimensions === 3 ? radius * height : across * Math.cos(angle);
    places[3 * f + 2] = dimensions === 3 ? across * Math.cos(angle) : 0;
  }
  return places;
}

/** The result with functions at `places`, their blocks around them. */
export function putClusters(input: LayoutInput, { offsets, radii }: Clusters, places: Float64Array): LayoutResult {
  const result = emptyResult(input);
  result.functions.set(places);
  result.radii.set(radii);
  if (input.hasBlocks) {
    for (let f = 0; f < input.nFunctions; f++) {
      for (let i = 3 * input.firstBlock[f]; i < 3 * input.firstBlock[f + 1]; i++) {
        result.blocks[i] = places[3 * f + (i % 3)] + offsets[i];
      }
    }
  }
  return result;
}
