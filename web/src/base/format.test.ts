import fc from "fast-check";
import { expect, test } from "vitest";
import { formatAddress, formatBytes, formatDuration, formatInteger, formatShare, formatShort } from "./format.ts";

test("integers are told exactly", () => {
  fc.assert(
    fc.property(fc.nat(Number.MAX_SAFE_INTEGER), (n) => {
      expect(Number(formatInteger(n).replaceAll(",", ""))).toBe(n);
    }),
  );
  expect(formatInteger(1234567)).toBe("1,234,567");
});

const UNITS: Record<string, number> = { "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };

test("short numbers are right within half of their last digit", () => {
  fc.assert(
    fc.property(fc.nat(Number.MAX_SAFE_INTEGER), (n) => {
      const found = /^(\d+(?:\.\d)?)([kMGTP]?)$/.exec(formatShort(n));
      expect(found).not.toBeNull();
      const [, digits, unit] = found!;
      const last = n < 1000 ? 0 : (digits.includes(".") ? 0.1 : 1) * UNITS[unit];
      expect(Math.abs(Number(digits) * UNITS[unit] - n)).toBeLessThanOrEqual(last / 2 + n * 1e-12);
      expect(formatShort(n).length).toBeLessThanOrEqual(4);
    }),
  );
});

test("short numbers rise as numbers do", () => {
  const value = (n: number) => {
    const [, digits, unit] = /^([\d.]+)([kMGTP]?)$/.exec(formatShort(n))!;
    return Number(digits) * UNITS[unit];
  };
  fc.assert(
    fc.property(fc.nat(1e15), fc.nat(1e15), (a, b) => {
      const [low, high] = a < b ? [a, b] : [b, a];
      expect(value(low)).toBeLessThanOrEqual(value(high));
    }),
  );
});

test.each([
  [0, "0"],
  [999, "999"],
  [1000, "1.0k"],
  [9949, "9.9k"],
  [9950, "10k"],
  [999_499, "999k"],
  [999_500, "1.0M"],
  [34_000_000, "34M"],
])("%d is %s in short", (n, text) => {
  expect(formatShort(n)).toBe(text);
});

test("addresses are hexadecimal, however high they are", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (address) => {
      expect(BigInt(formatAddress(address))).toBe(address);
    }),
  );
});

test.each([
  [0, "0 ns"],
  [999, "999 ns"],
  [1500, "1.50 µs"],
  [2_345_678, "2.35 ms"],
  [12_345_678_900, "12.35 s"],
])("%d ns is %s", (ns, text) => {
  expect(formatDuration(ns)).toBe(text);
});

test("shares are of the whole, and of nothing 0", () => {
  expect(formatShare(1, 0)).toBe("0.0 %");
  expect(formatShare(0, 7)).toBe("0.0 %");
  expect(formatShare(1, 8)).toBe("12.5 %");
  expect(formatShare(3, 10_000)).toBe("0.030 %");
  expect(formatShare(7, 7)).toBe("100.0 %");
  expect(formatBytes(4_200_000)).toBe("4.2MB");
});

test.each([
  [1, 2500, "0.040 %"],
  [4, 124_148_462, "< 0.001 %"],
])("%d of %d is %s", (part, whole, text) => {
  expect(formatShare(part, whole)).toBe(text);
});

test("a share is short, and as large as it says", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 50 }), fc.double({ min: 0, max: 1, noNaN: true }), (whole, t) => {
      const part = Math.floor(whole * t);
      const text = formatShare(part, whole);
      expect(text.length).toBeLessThanOrEqual(9);
      if (!text.startsWith("<")) {
        expect(Math.abs(parseFloat(text) - (100 * part) / whole)).toBeLessThanOrEqual(
          Math.max((5 * part) / whole, 0.05),
        );
      }
    }),
  );
});
