import fc from "fast-check";
import { expect, test } from "vitest";
import { orderByCalls } from "./call-order.ts";

const links = fc
  .integer({ min: 1, max: 12 })
  .chain((n) =>
    fc.tuple(fc.constant(n), fc.array(fc.tuple(fc.nat(n - 1), fc.nat(n - 1)), { minLength: 0, maxLength: 2 * n })),
  );

/** Who can be come to from whom, the slow way. */
function reach(n: number, pairs: readonly (readonly [number, number])[]): boolean[][] {
  const found = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => i === j));
  pairs.forEach(([from, to]) => (found[from][to] = true));
  for (let by = 0; by < n; by++) {
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        found[i][j] ||= found[i][by] && found[by][j];
      }
    }
  }
  return found;
}

test("components are those that call each other, callers come first, and else who was discovered first", () => {
  fc.assert(
    fc.property(links, ([n, pairs]) => {
      const reaches = reach(n, pairs);
      const { order, component } = orderByCalls(
        n,
        pairs.map(([from]) => from),
        pairs.map(([, to]) => to),
      );
      expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: n }, (_, i) => i));
      const isPlaced = new Array<boolean>(n).fill(false);
      for (let i = 0; i < n; i++) {
        const members = Array.from({ length: n }, (_, j) => j).filter((j) => reaches[i][j] && reaches[j][i]);
        expect(component[i]).toBe(members[0]);
      }
      const isOpen = (c: number) =>
        pairs.every(([from, to]) => component[to] !== c || component[from] === c || isPlaced[from]);
      for (let at = 0; at < n;) {
        // Of the components all of whose callers are placed the first, all of it.
        const next = Array.from({ length: n }, (_, i) => i).find(
          (i) => component[i] === i && !isPlaced[i] && isOpen(i),
        );
        const members = Array.from({ length: n }, (_, i) => i).filter((i) => component[i] === next);
        expect([...order.subarray(at, at + members.length)]).toEqual(members);
        members.forEach((i) => (isPlaced[i] = true));
        at += members.length;
      }
    }),
  );
}, 60_000);

test("calls may be as deep as they like", () => {
  const n = 200_000;
  const source = Uint32Array.from({ length: n - 1 }, (_, i) => n - 1 - i);
  const target = source.map((from) => from - 1);
  expect(orderByCalls(n, source, target).order[n - 1]).toBe(0);
}, 60_000);
