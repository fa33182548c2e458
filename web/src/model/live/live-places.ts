// Places of what is found while a program runs: what has a place keeps it, and what is new comes next to what led to it. Pure.
import type { LayoutResult } from "../layout/layout.ts";
import type { DrawnGraph } from "../graph/folding.ts";
import type { Numbering } from "../layout/moved-nodes.ts";
import type { LiveStructure } from "./live-picture.ts";

/** Turns that spread points evenly, however many there will be. */
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
/** So many places are tried for a new function until one is free. */
const TRIES = 24;

/** Places by row, which stays what it is while indices change. */
export class LivePlaces {
  private blocks = new Float32Array(0);
  private functions = new Float32Array(0);
  private radii = new Float32Array(0);
  private cylinderRadius = 0;
  private unit = 1;
  /** How many blocks there were when all was laid out. */
  laidOut = 0;

  /** A layout of the graph as `structure` has it: all that it has gets its place from there. */
  adopt(result: LayoutResult, graph: DrawnGraph, structure: LiveStructure): void {
    this.blocks = new Float32Array(3 * structure.blockOfRow.length).fill(NaN);
    this.functions = new Float32Array(3 * structure.functionOfRow.length).fill(NaN);
    this.radii = new Float32Array(structure.functionOfRow.length);
    this.cylinderRadius = result.cylinderRadius;
    this.laidOut = graph.nBlocks;
    this.keep(result, graph, structure);
    this.unit = Math.max(2 * median(result.radii), 1e-3);
  }

  /** A layout of the graph in which what is known is where it was. */
  grow(graph: DrawnGraph, structure: LiveStructure, like: LayoutResult): LayoutResult {
    const [blocks, functions] = [new Float32Array(3 * graph.nBlocks), new Float32Array(3 * graph.nFunctions)];
    const radii = new Float32Array(graph.nFunctions);
    const taken = new Set<string>();
    const fresh: number[] = [];
    for (let of = 0; of < graph.nFunctions; of++) {
      const row = structure.functionRows[graph.functionOf[of]];
      radii[of] = this.radii[row] ?? 0;
      if (read(this.functions, row, functions, of)) {
        taken.add(this.cell(functions, of));
      } else {
        fresh.push(of);
      }
    }
    // A caller comes before whom it calls.
    for (const of of fresh) {
      this.placeFunction(graph, of, functions, taken, like.dimensions);
      radii[of] = this.unit / 2;
    }
    this.placeBlocks(graph, structure, blocks, functions, radii, like.dimensions);
    const result = { ...like, blocks: like.blocks.length > 0 || graph.blocks ? blocks : like.blocks, functions, radii };
    this.keep(result, graph, structure);
    return result;
  }

  /** Bytes of what is kept. */
  get bytes(): number {
    return this.blocks.byteLength + this.functions.byteLength + this.radii.byteLength;
  }

  private keep(result: LayoutResult, graph: DrawnGraph, { functionRows, blockRows }: LiveStructure): void {
    this.functions = reserve(this.functions, 3 * (1 + largest(functionRows)));
    this.radii = reserve(this.radii, 1 + largest(functionRows));
    this.blocks = reserve(this.blocks, 3 * (1 + largest(blockRows)));
    for (let of = 0; of < graph.nFunctions; of++) {
      const row = functionRows[graph.functionOf[of]];
      this.functions.set(result.functions.subarray(3 * of, 3 * of + 3), 3 * row);
      this.radii[row] = result.radii[of];
    }
    for (let block = 0; result.blocks.length > 0 && block < graph.nBlocks; block++) {
      this.blocks.set(result.blocks.subarray(3 * block, 3 * block + 3), 3 * blockRows[graph.blockOf[block]]);
    }
  }

  private placeFunction(
    graph: DrawnGraph,
    of: number,
    functions: Float32Array,
    taken: Set<string>,
    dimensions: 2 | 3,
  ): void {
    const by = graph.caller[of] >= 0 ? graph.caller[of] : of - 1;
    const from = by >= 0 ? functions.subarray(3 * by, 3 * by + 3) : [0, 0, 0];
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      const reach = this.unit * (0.8 + 0.5 * Math.sqrt(attempt));
      const angle = GOLDEN_ANGLE * (of + attempt);
      // Callees are below who calls them.
      const height = -Math.abs(Math.sin(angle));
      functions[3 * of] = from[0] + reach * Math.cos(angle);
      functions[3 * of + 1] = from[1] + reach * height;
      functions[3 * of + 2] = dimensions === 3 ? from[2] + reach * Math.sin(2 * angle) : 0;
      this.toSurface(functions, of);
      if (!taken.has(this.cell(functions, of))) {
        break;
      }
    }
    taken.add(this.cell(functions, of));
  }

  private placeBlocks(
    graph: DrawnGraph,
    structure: LiveStructure,
    blocks: Float32Array,
    functions: Float32Array,
    radii: Float32Array,
    dimensions: 2 | 3,
  ): void {
    for (let of = 0; graph.blocks && of < graph.nFunctions; of++) {
      const [first, last] = [graph.firstBlock[of], graph.firstBlock[of + 1]];
      for (let block = first; block < last; block++) {
        if (read(this.blocks, structure.blockRows[graph.blockOf[block]], blocks, block)) {
          continue;
        }
        const reach = Math.max(radii[of], this.unit / 2) * Math.sqrt((block - first + 0.5) / (last - first));
        const angle = GOLDEN_ANGLE * (block - first);
        blocks[3 * block] = functions[3 * of] + reach * Math.cos(angle);
        blocks[3 * block + 1] = functions[3 * of + 1] + reach * Math.sin(angle);
        blocks[3 * block + 2] = dimensions === 3 ? functions[3 * of + 2] + 0.3 * reach * Math.sin(3 * angle) : 0;
        this.toSurface(blocks, block);
      }
    }
  }

  /** Onto the cylinder, where the layout has one. */
  private toSurface(places: Float32Array, at: number): void {
    const radius = this.cylinderRadius;
    const away = Math.hypot(places[3 * at], places[3 * at + 2]);
    if (radius > 0 && away > 0) {
      places[3 * at] *= radius / away;
      places[3 * at + 2] *= radius / away;
    }
  }

  private cell(places: Float32Array, at: number): string {
    return [0, 1, 2].map((axis) => Math.round(places[3 * at + axis] / this.unit)).join();
  }
}

/** Nodes by what they stand for: blocks by their row, functions by theirs, below zero. */
export function numberByRow(graph: DrawnGraph, structure: LiveStructure, nBlocks: number): Numbering {
  const { blockRows, functionRows, blockOfRow, functionOfRow } = structure;
  return {
    keyOf: (node) =>
      node < nBlocks ? blockRows[graph.blockOf[node]] : -1 - functionRows[graph.functionOf[node - nBlocks]],
    nodeOf: (key) => {
      if (key >= 0) {
        return nBlocks > 0 ? (graph.drawnBlock[blockOfRow[key]] ?? -1) : -1;
      }
      const drawn = graph.drawnFunction[functionOfRow[-1 - key]] ?? -1;
      return drawn < 0 ? -1 : nBlocks + drawn;
    },
  };
}

/** Copies the place of a row, if it has one. */
function read(places: Float32Array, row: number, into: Float32Array, at: number): boolean {
  if (!(3 * row + 2 < places.length) || Number.isNaN(places[3 * row])) {
    return false;
  }
  into.set(places.subarray(3 * row, 3 * row + 3), 3 * at);
  return true;
}

function reserve(places: Float32Array<ArrayBuffer>, length: number): Float32Array<ArrayBuffer> {
  if (length <= places.length) {
    return places;
  }
  const grown = new Float32Array(Math.max(length, Math.ceil(1.5 * places.length))).fill(NaN);
  grown.set(places);
  return grown;
}

function largest(rows: Uint32Array): number {
  let found = -1;
  for (const row of rows) {
    found = Math.max(found, row);
  }
  return found;
}

function median(values: Float32Array): number {
  return values.length > 0 ? values.slice().sort()[values.length >> 1] : 0;
}
