// Graphs for tests: of the shape that programs have, and random ones.
import { EDGE_KIND } from "../../protocol/generated.ts";
import { LAYOUTS } from "../view-state.ts";
import type { LayoutInput } from "./layout.ts";

/** A random number generator: mulberry32, from 0 up to 1. */
export function makeRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

interface Edges {
  source: number[];
  target: number[];
  kind: number[];
}

/** What is told of a graph beyond its functions' sizes; everything may be left out. */
interface Parts {
  links?: readonly (readonly [number, number])[];
  edges?: readonly (readonly [number, number, number])[];
  caller?: readonly number[];
  image?: readonly number[];
}

export function makeInput(
  sizes: readonly number[],
  { links = [], edges = [], caller, image }: Parts = {},
): LayoutInput {
  const nFunctions = sizes.length;
  const firstBlock = new Uint32Array(nFunctions + 1);
  sizes.forEach((size, f) => (firstBlock[f + 1] = firstBlock[f] + size));
  const callers = Int32Array.from({ length: nFunctions }, (_, f) => caller?.[f] ?? -1);
  const depth = new Int32Array(nFunctions);
  callers.forEach((by, f) => (depth[f] = by >= 0 ? depth[by] + 1 : 0));
  return {
    layout: "cylinder",
    dimensions: 3,
    nFunctions,
    nBlocks: firstBlock[nFunctions],
    hasBlocks: true,
    firstBlock,
    caller: callers,
    depth,
    image: Int32Array.from({ length: nFunctions }, (_, f) => image?.[f] ?? 0),
    linkSource: Uint32Array.from(links, ([from]) => from),
    linkTarget: Uint32Array.from(links, ([, to]) => to),
    linkCall: new Uint8Array(links.length).fill(1),
    edgeSource: Int32Array.from(edges, ([from]) => from),
    edgeTarget: Int32Array.from(edges, ([, to]) => to),
    edgeKind: Int8Array.from(edges, ([, , kind]) => kind),
  };
}

/** The same graph without its blocks. */
export function withoutBlocks(input: LayoutInput): LayoutInput {
  const none = new Int32Array(0);
  return { ...input, hasBlocks: false, edgeSource: none, edgeTarget: none, edgeKind: new Int8Array(0) };
}

/** As a program of `nBlocks` blocks is: few large functions, branches and loops, calls mostly to what is known already. */
export function makeProgram(nBlocks: number, meanSize = 10, seed = 1): LayoutInput {
  const random = makeRandom(seed);
  const sizes: number[] = [];
  for (let left = nBlocks; left > 0;) {
    // A power law with this mean.
    const size = Math.min(left, 5000, Math.max(1, Math.floor((meanSize * 0.3) / (random() + 0.0005) ** 0.75)));
    sizes.push(size);
    left -= size;
  }
  const caller = sizes.map((_, f) => {
    const back = Math.floor(f * random() ** 4);
    return f === 0 ? -1 : f - 1 - back;
  });
  const image = sizes.map((_, f) => (f % 97 < 60 ? 0 : 1 + (f % 6)));
  const first: number[] = [0];
  sizes.forEach((size, f) => first.push(first[f] + size));
  const edges: Edges = { source: [], target: [], kind: [] };
  const add = (source: number, target: number, kind: number) => {
    edges.source.push(source);
    edges.target.push(target);
    edges.kind.push(kind);
  };
  const links = new Set<number>();
  sizes.forEach((size, f) => {
    for (let i = 0; i + 1 < size; i++) {
      const block = first[f] + i;
      const chance = random();
      if (chance < 0.45) {
        add(block, block + 1, EDGE_KIND.not_taken);
        const reach = Math.ceil(random() ** 3 * 12);
        const target = chance < 0.08 ? Math.max(0, i - reach) : Math.min(size - 1, i + 1 + reach);
        add(block, first[f] + target, EDGE_KIND.taken);
      } else if (chance < 0.7) {
        const callee = random() < 0.8 ? Math.floor(sizes.length * random() ** 3) : Math.min(sizes.length - 1, f + 1);
        add(block, first[callee], EDGE_KIND.call);
        add(block, block + 1, EDGE_KIND.return);
        links.add(f * sizes.length + callee);
      } else {
        add(block, block + 1, EDGE_KIND.fall_through);
      }
    }
    if (caller[f] >= 0) {
      add(first[caller[f]], first[f], EDGE_KIND.call);
      links.add(caller[f] * sizes.length + f);
    }
  });
  return makeInput(sizes, {
    caller,
    image,
    links: [...links].map((link) => [Math.floor(link / sizes.length), link % sizes.length] as const),
    edges: edges.source.map((from, e) => [from, edges.target[e], edges.kind[e]] as const),
  });
}

/** A small graph of any shape: with recursion, without links, with functions of no block and of many. */
export function makeAnyGraph(seed: number, nFunctions: number): LayoutInput {
  const random = makeRandom(seed);
  const below = (n: number) => Math.floor(n * random());
  const sizes = Array.from({ length: nFunctions }, () => below(random() < 0.7 ? 5 : 60));
  const nBlocks = sizes.reduce((sum, size) => sum + size, 0);
  const nImages = 1 + below(5);
  const input = makeInput(sizes, {
    caller: sizes.map((_, f) => below(f + 1) - 1),
    image: sizes.map(() => below(nImages + 1) - 1),
    links: Array.from({ length: below(2 * nFunctions + 1) }, () => [below(nFunctions), below(nFunctions)] as const),
    edges: Array.from(
      { length: below(200) },
      () => [below(nBlocks + 1) - 1, below(nBlocks + 1) - 1, below(14)] as const,
    ),
  });
  const shown = random() < 0.5 ? input : withoutBlocks(input);
  return { ...shown, layout: LAYOUTS[below(LAYOUTS.length)], dimensions: random() < 0.5 ? 2 : 3 };
}
