// Rows of the listing by their numbers: which block a row is of, and what it is there. Pure.
import { LABEL, type ListingIndex, NEW_FUNCTION, NEW_IMAGE } from "../../api/code.ts";

export type RowKind = "image" | "gap" | "function" | "label" | "instruction";

export interface ListingRow {
  kind: RowKind;
  /** The place in the listing of the block that the row is of, or in front of which it stands. */
  place: number;
  /** Which of the block's instructions; -1 for other rows. */
  instruction: number;
}

export class ListingRows {
  readonly index: ListingIndex;
  /** Rows in front of each place, and of all. */
  private readonly first: Float64Array;
  private readonly placeOfBlock: Uint32Array;

  constructor(index: ListingIndex) {
    this.index = index;
    const n = index.block.length;
    this.first = new Float64Array(n + 1);
    this.placeOfBlock = new Uint32Array(n);
    for (let place = 0; place < n; place++) {
      this.first[place + 1] = this.first[place] + this.headsOf(place).length + index.nRows[place];
      this.placeOfBlock[index.block[place]] = place;
    }
  }

  get count(): number {
    return this.first[this.index.block.length];
  }

  /** The place of a block. */
  placeOf(block: number): number {
    return this.placeOfBlock[block];
  }

  /** The row of an instruction of the block at a place. */
  rowOf(place: number, instruction = 0): number {
    const heads = this.headsOf(place).length;
    return this.first[place] + heads + Math.min(instruction, this.index.nRows[place] - 1);
  }

  /** The first row that belongs to a place: its head, if it has one. */
  firstRowOf(place: number): number {
    return this.first[place];
  }

  /** What the row with a number from 0 up to `count` is. */
  at(row: number): ListingRow {
    let low = 0;
    let high = this.index.block.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.first[middle] <= row) {
        low = middle;
      } else {
        high = middle;
      }
    }
    const heads = this.headsOf(low);
    const offset = row - this.first[low];
    return offset < heads.length
      ? { kind: heads[offset], place: low, instruction: -1 }
      : { kind: "instruction", place: low, instruction: offset - heads.length };
  }

  private headsOf(place: number): RowKind[] {
    const { flags, gapBytes } = this.index;
    const heads: RowKind[] = [];
    if (flags[place] & NEW_IMAGE) {
      heads.push("image");
    }
    if (gapBytes[place] > 0) {
      heads.push("gap");
    }
    if (flags[place] & NEW_FUNCTION) {
      heads.push("function");
    } else if (flags[place] & LABEL) {
      heads.push("label");
    }
    return heads;
  }
}
