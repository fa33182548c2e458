import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Container } from "./container.ts";

// What src/clew/server/container.py made of
//   encode_container("golden", {"n": 3, "name": "é"},
//       {"a": u8 [1, 2, 255], "b": i16 [-1, 300], "c": u64 [0, 2^64 - 1], "d": f64 [0.5, -1e300], "empty": u32 []}
//       | pack_texts("t", ["main", "", "größe", "\0<b>"])).
const GOLDEN = readFileSync(new URL("./golden-container.bin", import.meta.url));

function open(content: Uint8Array): Container {
  return new Container(Uint8Array.from(content).buffer);
}

test("what Python wrote is read", () => {
  const found = open(GOLDEN);
  expect(found.kind).toBe("golden");
  expect(found.meta).toEqual({ n: 3, name: "é" });
  expect([...found.get("a", "u8")]).toEqual([1, 2, 255]);
  expect([...found.get("b", "i16")]).toEqual([-1, 300]);
  expect([...found.get("c", "u64")]).toEqual([0n, 0xffffffffffffffffn]);
  expect([...found.get("d", "f64")]).toEqual([0.5, -1e300]);
  expect(found.get("empty", "u32")).toHaveLength(0);
  expect(found.texts("t")).toEqual(["main", "", "größe", "\0<b>"]);
});

test("arrays lie in the buffer that was received", () => {
  const content = Uint8Array.from(GOLDEN);
  const found = new Container(content.buffer);
  expect(found.get("a", "u8").buffer).toBe(content.buffer);
  expect(found.get("d", "f64").byteOffset % 8).toBe(0);
});

test("an array is of its name and type, or an error", () => {
  const found = open(GOLDEN);
  expect(found.has("a")).toBe(true);
  expect(found.has("z")).toBe(false);
  expect(() => found.get("z", "u8")).toThrow("no array z of type u8");
  expect(() => found.get("a", "i8")).toThrow("no array a of type i8");
});

test("what is no container of this version is refused", () => {
  expect(() => open(new Uint8Array(0))).toThrow("no container");
  expect(() => open(new Uint8Array(64))).toThrow("no container");
  const other = Uint8Array.from(GOLDEN);
  other[8] = 2;
  expect(() => open(other)).toThrow("another version");
});

test("what was cut off is an error, wherever it was", () => {
  fc.assert(
    fc.property(fc.nat(GOLDEN.length - 1), (length) => {
      const found = () => {
        const container = open(GOLDEN.subarray(0, length));
        container.texts("t");
      };
      expect(found).toThrow();
    }),
  );
});
