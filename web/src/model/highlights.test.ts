import fc from "fast-check";
import { expect, test } from "vitest";
import { addHighlight, functionColors, highlights, parseHighlights, removeHighlight } from "./highlights.ts";

test("what was stored comes back", () => {
  addHighlight("first", { functions: [1, 2] });
  addHighlight("second", { functions: [2, 3], blocks: [7] });
  expect(parseHighlights(JSON.stringify(highlights.value), 4, 8)).toEqual(highlights.value);
});

test("sets have different colours, and of two with one function the first colours it", () => {
  const [first, second] = highlights.value;
  expect(first.color).not.toEqual(second.color);
  expect(functionColors.value.get(2)).toBe(first);
  removeHighlight(0);
  expect(functionColors.value.get(2)).toBe(second);
  addHighlight("third", {});
  expect(highlights.value[1].color).toEqual(first.color);
});

test("what names nothing is left out", () => {
  const stored = JSON.stringify([{ name: "a", color: [0, 1, 0.5], functions: [0, 4, -1, 1.5, "x"], blocks: null }]);
  expect(parseHighlights(stored, 4, 8)).toEqual([{ name: "a", color: [0, 1, 0.5], functions: [0], blocks: [] }]);
});

test("any text gives sets of colours and indices", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      for (const set of parseHighlights(text, 3, 3)) {
        expect([...set.functions, ...set.blocks].every((index) => index >= 0 && index < 3)).toBe(true);
        expect(set.color.length).toBe(3);
      }
    }),
  );
  expect(parseHighlights('[null, 1, {"name": "x", "color": [2, 0, 0]}]', 3, 3)).toEqual([]);
});
