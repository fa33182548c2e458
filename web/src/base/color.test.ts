import fc from "fast-check";
import { expect, test } from "vitest";
import { CATEGORIES, COLD, HEAT_TOP, heatColor, heatOf, type Rgb, textOn, toHex } from "./color.ts";

/** Relative luminance as WCAG 2 defines it. */
function luminance(color: Rgb): number {
  const [r, g, b] = color.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

const parts = fc.float({ min: 0, max: 1, noNaN: true });
const shares = fc.double({ min: 0, max: 1, noNaN: true });

test("the ramp of heat gets lighter all the way: its order is seen without colours", () => {
  fc.assert(
    fc.property(shares, shares, (a, b) => {
      const [low, high] = a < b ? [a, b] : [b, a];
      expect(luminance(heatColor(low))).toBeLessThanOrEqual(luminance(heatColor(high)) + 1e-9);
    }),
  );
});

test("the hottest has the top colour, and what is out of range its nearest end", () => {
  expect(heatColor(1)).toEqual(HEAT_TOP);
  expect(heatColor(2)).toEqual(HEAT_TOP);
  expect(heatColor(-1)).toEqual(heatColor(0));
});

test("heat is logarithmic, from 0 for once to 1 for most", () => {
  expect(heatOf(0, 100)).toBe(-1);
  expect(heatOf(1, 100)).toBe(0);
  expect(heatOf(10, 100)).toBeCloseTo(0.5);
  expect(heatOf(100, 100)).toBe(1);
  expect(heatOf(1, 1)).toBe(1);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 50 }), fc.nat(2 ** 50), (n, more) => {
      expect(heatOf(n, n + more)).toBeGreaterThanOrEqual(0);
      expect(heatOf(n, n + more)).toBeLessThanOrEqual(1);
    }),
  );
});

test("text is read on any colour", () => {
  fc.assert(
    fc.property(fc.tuple(parts, parts, parts), (color) => {
      const ink: Rgb = textOn(color) === "#000000" ? [0, 0, 0] : [1, 1, 1];
      expect(contrast(color, ink)).toBeGreaterThanOrEqual(4.5);
    }),
  );
});

test("colours are written as CSS has them", () => {
  expect(toHex([0, 1, 0.5])).toBe("#00ff80");
  for (const color of [COLD, HEAT_TOP, ...CATEGORIES]) {
    expect(toHex(color)).toMatch(/^#[0-9a-f]{6}$/);
  }
});

test("categories differ from one another", () => {
  expect(new Set(CATEGORIES.map(toHex)).size).toBe(CATEGORIES.length);
});
