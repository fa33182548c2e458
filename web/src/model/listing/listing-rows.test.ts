import fc from "fast-check";
import { expect, test } from "vitest";
import type { ListingIndex } from "../../api/code.ts";
import { ListingRows } from "./listing-rows.ts";

const listings: fc.Arbitrary<ListingIndex> = fc
  .array(fc.record({ flags: fc.nat(7), gap: fc.nat(3), rows: fc.integer({ min: 1, max: 9 }), key: fc.double() }), {
    minLength: 1,
    maxLength: 60,
  })
  .map((places) => {
    const shuffled = places.map((_, i) => i).sort((a, b) => places[a].key - places[b].key || a - b);
    return {
      block: Uint32Array.from(shuffled),
      flags: Uint8Array.from(places, (place) => place.flags),
      gapBytes: Float64Array.from(places, (place) => place.gap),
      nRows: Uint32Array.from(places, (place) => place.rows),
    };
  });

test("rows go through all places and instructions, in order", () => {
  fc.assert(
    fc.property(listings, (index) => {
      const rows = new ListingRows(index);
      const instructions: string[] = [];
      let heads = 0;
      for (let row = 0; row < rows.count; row++) {
        const { kind, place, instruction } = rows.at(row);
        if (kind === "instruction") {
          instructions.push(`${place}.${instruction}`);
          expect(rows.rowOf(place, instruction)).toBe(row);
        } else {
          heads++;
          expect(rows.firstRowOf(place)).toBeLessThanOrEqual(row);
        }
      }
      const expected = Array.from(index.nRows, (n, place) =>
        Array.from({ length: n }, (_, i) => `${place}.${i}`),
      ).flat();
      expect(instructions).toEqual(expected);
      const gaps = index.gapBytes.filter((bytes) => bytes > 0).length;
      const images = index.flags.filter((flags) => flags & 1).length;
      const others = index.flags.filter((flags) => flags & 6).length;
      expect(heads).toBe(gaps + images + others);
      index.block.forEach((block, place) => expect(rows.placeOf(block)).toBe(place));
    }),
  );
});
