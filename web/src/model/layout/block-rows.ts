// The blocks of each function in layered rows: a block lies below those that lead to it, loops aside. A strip of rows is
// what a function is drawn as on the cylinder and on the circle.
import { EDGE_KIND } from "../../protocol/generated.ts";
import { type Adjacency, makeAdjacency } from "./adjacency.ts";
import type { LayoutInput } from "./layout.ts";

/** Sizes and places in units of one block. */
export interface Strips {
  width: Uint32Array;
  height: Uint32Array;
  /** Of each block the middle of its cell, to the right of the middle of its function's strip and below its top. */
  x: Float32Array;
  y: Float32Array;
}

export interface RankedBlocks {
  /** By block the number of its row, from 0, before rows are wrapped. */
  rank: Uint32Array;
  /** Blocks by function, row and index. */
  order: Uint32Array;
  /** Edges within functions, but for calls: a function that calls itself is no loop. */
  inside: Adjacency;
}

/** Rows with more blocks are not sorted to shorten edges: they are wrapped, and edges to them cross anyway. */
const WIDEST_SORTED = 32;

/** A block's row: the longest way to it from where its function begins, edges that go back left out. */
export function rankBlocks(input: LayoutInput): RankedBlocks {
  const { nFunctions, nBlocks, firstBlock } = input;
  const inside = takeInside(input);
  const { start, to } = inside;
  const rank = new Uint32Array(nBlocks);
  const order = new Uint32Array(nBlocks);
  const isEntered = new Uint8Array(nBlocks);
  for (const block of to) {
    isEntered[block] = 1;
  }
  const next = start.slice(0, nBlocks);
  const finished = new Uint32Array(nBlocks); // when a block was left, from 1; 0: not yet
  const isVisited = new Uint8Array(nBlocks);
  const path = new Uint32Array(nBlocks);
  const left = new Uint32Array(nBlocks);
  const perRow = new Uint32Array(nBlocks + 1);
  for (let f = 0; f < nFunctions; f++) {
    const first = firstBlock[f];
    const last = firstBlock[f + 1];
    let nLeft = 0;
    // Where nothing inside leads to comes first: that is where the function is entered.
    for (const onlyEntries of [true, false]) {
      for (let root = first; root < last; root++) {
        if (isVisited[root] || (onlyEntries && isEntered[root])) {
          continue;
        }
        let length = 0;
        path[length++] = root;
        isVisited[root] = 1;
        while (length > 0) {
          const block = path[length - 1];
          if (next[block] < start[block + 1]) {
            const successor = to[next[block]++];
            if (!isVisited[successor]) {
              isVisited[successor] = 1;
              path[length++] = successor;
            }
          } else {
            length--;
            left[nLeft++] = block;
            finished[block] = nLeft;
          }
        }
      }
    }
    let nRows = 0;
    for (let i = nLeft - 1; i >= 0; i--) {
      const block = left[i];
      nRows = Math.max(nRows, rank[block] + 1);
      for (let e = start[block]; e < start[block + 1]; e++) {
        if (finished[to[e]] < finished[block] && rank[to[e]] <= rank[block]) {
          rank[to[e]] = rank[block] + 1;
        }
      }
    }
    perRow.fill(0, 0, nRows + 1);
    for (let block = first; block < last; block++) {
      perRow[rank[block] + 1]++;
    }
    for (let row = 0; row < nRows; row++) {
      perRow[row + 1] += perRow[row];
    }
    for (let block = first; block < last; block++) {
      order[first + perRow[rank[block]]++] = block;
    }
  }
  return { rank, order, inside };
}

function takeInside(input: LayoutInput): Adjacency {
  const { nFunctions, nBlocks, firstBlock, edgeSource, edgeTarget, edgeKind } = input;
  const functionOf = new Uint32Array(nBlocks);
  for (let f = 0; f < nFunctions; f++) {
    functionOf.fill(f, firstBlock[f], firstBlock[f + 1]);
  }
  const source = new Uint32Array(edgeSource.length);
  const target = new Uint32Array(edgeSource.length);
  let n = 0;
  for (let e = 0; e < edgeSource.length; e++) {
    const from = edgeSource[e];
    const to = edgeTarget[e];
    if (from >= 0 && to >= 0 && from !== to && functionOf[from] === functionOf[to] && !isCall(edgeKind[e])) {
      source[n] = from;
      target[n++] = to;
    }
  }
  return makeAdjacency(nBlocks, source.subarray(0, n), target.subarray(0, n));
}

function isCall(kind: number): boolean {
  return (
    kind === EDGE_KIND.call ||
    kind === EDGE_KIND.indirect_call ||
    kind === EDGE_KIND.signal ||
    kind === EDGE_KIND.fault ||
    kind === EDGE_KIND.start
  );
}

/**
 * A strip of each function. Rows that are too wide are wrapped; strips that are too high go on beside themselves, as the
 * columns of a newspaper do. Without blocks strips are squares that could hold them.
 */
export function makeStrips(input: LayoutInput): Strips {
  const { nFunctions, nBlocks, firstBlock } = input;
  const width = new Uint32Array(nFunctions);
  const height = new Uint32Array(nFunctions);
  if (!input.hasBlocks) {
    for (let f = 0; f < nFunctions; f++) {
      const side = Math.max(1, Math.ceil(Math.sqrt(firstBlock[f + 1] - firstBlock[f])));
      width[f] = height[f] = side;
    }
    return { width, height, x: new Float32Array(0), y: new Float32Array(0) };
  }
  const ranked = rankBlocks(input);
  const x = new Float32Array(nBlocks);
  const y = new Float32Array(nBlocks);
  const rows = new RowPlaces(ranked, x, y);
  for (let f = 0; f < nFunctions; f++) {
    [width[f], height[f]] = rows.place(firstBlock[f], firstBlock[f + 1]);
  }
  return { width, height, x, y };
}

/** Places the blocks of one function after the other. */
class RowPlaces {
  private readonly sum: Float64Array;
  private readonly known: Uint32Array;
  private rowStart: Uint32Array;

  constructor(
    private readonly ranked: RankedBlocks,
    private readonly x: Float32Array,
    private readonly y: Float32Array,
  ) {
    this.sum = new Float64Array(x.length);
    this.known = new Uint32Array(x.length);
    this.rowStart = new Uint32Array(x.length + 1);
  }

  /** Place the blocks from `first` up to `last`; width and height of their strip. */
  place(first: number, last: number): [number, number] {
    const { x, y, rowStart } = this;
    const { order } = this.ranked;
    const n = last - first;
    if (n === 0) {
      return [1, 1];
    }
    const nRows = this.splitRows(first, last, Math.max(3, Math.ceil(0.7 * Math.sqrt(n))));
    const nColumns = Math.ceil(nRows / Math.max(8, Math.ceil(2.5 * Math.sqrt(n))));
    const height = Math.ceil(nRows / nColumns);
    let width = 0;
    for (let top = 0; top < nRows; top += height) {
      const bottom = Math.min(nRows, top + height);
      let widest = 0;
      for (let row = top; row < bottom; row++) {
        widest = Math.max(widest, rowStart[row + 1] - rowStart[row]);
      }
      for (let row = top; row < bottom; row++) {
        const left = width + (widest - (rowStart[row + 1] - rowStart[row])) / 2;
        this.sortRow(rowStart[row], rowStart[row + 1]);
        for (let i = rowStart[row]; i < rowStart[row + 1]; i++) {
          x[order[i]] = left + (i - rowStart[row]) + 0.5;
          y[order[i]] = row - top + 0.5;
          this.tellSuccessors(order[i]);
        }
      }
      width += widest;
    }
    for (let block = first; block < last; block++) {
      x[block] -= width / 2;
    }
    return [width, height];
  }

  /** Where rows of at most `widest` blocks begin in the order of blocks; how many there are. */
  private splitRows(first: number, last: number, widest: number): number {
    const { rank, order } = this.ranked;
    const { rowStart } = this;
    let nRows = 0;
    for (let start = first; start < last;) {
      let end = start + 1;
      while (end < last && rank[order[end]] === rank[order[start]]) {
        end++;
      }
      // A row that is wrapped becomes rows of about the same width.
      const parts = Math.ceil((end - start) / widest);
      for (let part = 0; part < parts; part++) {
        rowStart[nRows++] = start + Math.floor((part * (end - start)) / parts);
      }
      start = end;
    }
    rowStart[nRows] = last;
    return nRows;
  }

  /** Blocks of a row are sorted by where those lie that lead to them. */
  private sortRow(start: number, end: number): void {
    if (end - start > WIDEST_SORTED) {
      return;
    }
    const { order } = this.ranked;
    for (let i = start + 1; i < end; i++) {
      const block = order[i];
      const wanted = this.wantedX(block);
      let at = i;
      while (at > start && this.wantedX(order[at - 1]) > wanted) {
        order[at] = order[at - 1];
        at--;
      }
      order[at] = block;
    }
  }

  private wantedX(block: number): number {
    return this.known[block] > 0 ? this.sum[block] / this.known[block] : 0;
  }

  private tellSuccessors(block: number): void {
    const { rank, inside } = this.ranked;
    for (let e = inside.start[block]; e < inside.start[block + 1]; e++) {
      const successor = inside.to[e];
      if (rank[successor] > rank[block]) {
        this.sum[successor] += this.x[block];
        this.known[successor]++;
      }
    }
  }
}

/** How far a strip reaches from its middle; of functions that are drawn without blocks a disc that touches no other. */
export function stripRadius({ width, height }: Strips, f: number, hasBlocks: boolean): number {
  return hasBlocks ? Math.hypot(width[f], height[f]) / 2 : Math.max(width[f], height[f]) / 2;
}
