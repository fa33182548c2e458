import fc from "fast-check";
import { expect, test } from "vitest";
import { writeDuration } from "./webm-duration.ts";

const HEAD = [0x1a, 0x45, 0xdf, 0xa3, 0x80];
const SEGMENT = [0x18, 0x53, 0x80, 0x67, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
const SCALE = [0x2a, 0xd7, 0xb1, 0x83, 0x0f, 0x42, 0x40];
const DURATION = [0x44, 0x89, 0x84, 0, 0, 0, 0];
const CLUSTER = [0x1f, 0x43, 0xb6, 0x75, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xe7, 0x81, 0];

function info(content: number[]): number[] {
  return [0x15, 0x49, 0xa9, 0x66, 0x80 | content.length, ...content];
}

test("a recording has its duration behind what its head told already", () => {
  const file = Uint8Array.from([...HEAD, ...SEGMENT, ...info(SCALE), ...CLUSTER]);
  const found = writeDuration(file, 1234.5);
  const at = HEAD.length + SEGMENT.length;
  expect([...found.subarray(0, at)]).toEqual([...HEAD, ...SEGMENT]);
  expect([...found.subarray(at, at + 12)]).toEqual([0x15, 0x49, 0xa9, 0x66, 1, 0, 0, 0, 0, 0, 0, SCALE.length + 11]);
  expect([...found.subarray(at + 12, at + 15)]).toEqual([0x44, 0x89, 0x88]);
  expect(new DataView(found.buffer).getFloat64(at + 15)).toBe(1234.5);
  expect([...found.subarray(at + 23)]).toEqual([...SCALE, ...CLUSTER]);
  // A second time there is nothing to do.
  expect(writeDuration(found, 99)).toBe(found);
});

test("times are in the unit that the file has", () => {
  const scale = [0x2a, 0xd7, 0xb1, 0x82, 0x03, 0xe8];
  const found = writeDuration(Uint8Array.from([...HEAD, ...SEGMENT, ...info(scale), ...CLUSTER]), 2);
  expect(new DataView(found.buffer).getFloat64(HEAD.length + SEGMENT.length + 15)).toBe(2000);
});

test("what has a duration, or is something else, stays as it is", () => {
  for (const content of [
    [...HEAD, ...SEGMENT, ...info([...SCALE, ...DURATION])],
    HEAD,
    [...HEAD, ...SEGMENT, ...CLUSTER],
  ]) {
    const file = Uint8Array.from(content);
    expect(writeDuration(file, 5)).toBe(file);
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const file = Uint8Array.from(bytes);
      expect(writeDuration(file, 5).length).toBeGreaterThanOrEqual(file.length);
    }),
  );
});
