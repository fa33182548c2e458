import fc from "fast-check";
import { expect, test } from "vitest";
import { chooseParticles, MOST_PARTICLES } from "./particles.ts";

const heats = fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 2000 });

function choose(of: readonly number[]) {
  const ends = Uint32Array.from({ length: 2 * of.length }, (_, i) => i);
  return chooseParticles(ends, new Uint8Array(4 * of.length), Uint8Array.from(of));
}

/** By edge how many particles it has, and how quickly they go. */
function byEdge(of: readonly number[]): { n: number; speed: number }[] {
  const found = of.map(() => ({ n: 0, speed: 0 }));
  const { count, ends, speeds } = choose(of);
  for (let i = 0; i < count; i++) {
    expect(ends[2 * i + 1]).toBe(ends[2 * i] + 1);
    found[ends[2 * i] / 2].n++;
    found[ends[2 * i] / 2].speed = speeds[i];
  }
  return found;
}

test("there are never more than so many, and none on what was not taken", () => {
  fc.assert(
    fc.property(heats, (of) => {
      const { count, phases } = choose(of);
      expect(count).toBeLessThanOrEqual(MOST_PARTICLES);
      expect(phases.every((phase) => phase >= 0 && phase <= 1)).toBe(true);
      const taken = of.filter((heat) => heat > 0).length;
      const found = byEdge(of);
      expect(found.filter(({ n }) => n > 0).length).toBe(Math.min(taken, MOST_PARTICLES));
      of.forEach((heat, edge) => expect(found[edge].n > 0 && heat === 0).toBe(false));
    }),
  );
});

test("what was taken more often has no fewer, and they are no slower", () => {
  fc.assert(
    fc.property(heats, (of) => {
      const found = byEdge(of);
      const order = [...of.keys()].filter((edge) => of[edge] > 0).sort((a, b) => of[b] - of[a] || a - b);
      for (let i = 1; i < order.length; i++) {
        const [more, less] = [found[order[i - 1]], found[order[i]]];
        expect(more.n).toBeGreaterThanOrEqual(less.n);
        expect(less.n === 0 || more.speed >= less.speed).toBe(true);
      }
    }),
  );
});

test("of a few edges the busiest has five times as many as one that was taken once, and goes more than four times as fast", () => {
  const [once, busy] = byEdge([1, 255]);
  expect([once.n, busy.n]).toEqual([1, 5]);
  expect(busy.speed / once.speed).toBeGreaterThan(4);
});
