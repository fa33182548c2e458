import fc from "fast-check";
import { expect, test } from "vitest";
import { fitAll, keepInSight, startAt, zoomAt } from "./flow-camera.ts";

const size = fc.record({ width: fc.integer({ min: 50, max: 40000 }), height: fc.integer({ min: 50, max: 40000 }) });
const view = fc.record({ width: fc.integer({ min: 100, max: 3000 }), height: fc.integer({ min: 100, max: 2000 }) });

test("all of a picture is in the view that shows all of it", () => {
  fc.assert(
    fc.property(size, view, (picture, of) => {
      const { x, y, scale } = fitAll(picture, of);
      fc.pre(scale > 0.002);
      expect(x * scale).toBeLessThanOrEqual(1e-6);
      expect(y * scale).toBeLessThanOrEqual(1e-6);
      expect((picture.width - x) * scale).toBeLessThanOrEqual(of.width + 1e-6);
      expect((picture.height - y) * scale).toBeLessThanOrEqual(of.height + 1e-6);
    }),
  );
});

test("what is under the pointer stays there", () => {
  const at = fc.record({ x: fc.nat(2000), y: fc.nat(2000) });
  const camera = fc.record({ x: fc.nat(9000), y: fc.nat(9000), scale: fc.double({ min: 0.02, max: 3, noNaN: true }) });
  fc.assert(
    fc.property(camera, at, fc.double({ min: 0.2, max: 5, noNaN: true }), (from, point, factor) => {
      const to = zoomAt(from, factor, point);
      expect(to.x + point.x / to.scale).toBeCloseTo(from.x + point.x / from.scale, 4);
      expect(to.y + point.y / to.scale).toBeCloseTo(from.y + point.y / from.scale, 4);
    }),
  );
});

test("one starts where text can be read, with the point in the view", () => {
  fc.assert(
    fc.property(size, view, (picture, of) => {
      const point = { x: picture.width / 3, y: picture.height / 3 };
      const { x, scale } = startAt(point, picture, of);
      expect(scale).toBeGreaterThanOrEqual(0.8 - 1e-9);
      expect((point.x - x) * scale).toBeGreaterThanOrEqual(0);
      expect((point.x - x) * scale).toBeLessThanOrEqual(of.width);
    }),
  );
});

test("the picture can't be pushed out of sight", () => {
  const camera = fc.record({ x: fc.integer(), y: fc.integer(), scale: fc.double({ min: 0.02, max: 3, noNaN: true }) });
  fc.assert(
    fc.property(camera, size, view, (from, picture, of) => {
      const { x, y, scale } = keepInSight(from, picture, of);
      expect(x * scale).toBeLessThan(picture.width * scale);
      expect((x + of.width / scale) * scale).toBeGreaterThan(0);
      expect(y).toBeLessThan(picture.height);
    }),
  );
});
