import fc from "fast-check";
import { expect, test } from "vitest";
import { matchName, rankNames } from "./names.ts";

const NAMES = ["malloc", "realloc", "my_alloc", "_int_malloc", "alloc", "hash_table_alloc", "free"];

test("better matches come first", () => {
  const found = rankNames(NAMES, "alloc", () => 0, 10).map((index) => NAMES[index]);
  expect(found).toEqual(["alloc", "my_alloc", "hash_table_alloc", "malloc", "realloc", "_int_malloc"]);
});

test("of equally good ones the heavier comes first", () => {
  expect(rankNames(["xa", "xb"], "x", (index) => index, 10)).toEqual([1, 0]);
});

test("letters may have others between, first letters of words are better", () => {
  expect(matchName("hash_table_alloc", "hta")).toBe(2);
  expect(matchName("realloc", "rlc")).toBe(1);
  expect(matchName("realloc", "clr")).toBe(0);
});

const word = fc.stringMatching(/^[a-d_]{0,8}$/);

test("a name is found exactly if its letters are in it in order", () => {
  fc.assert(
    fc.property(word, fc.stringMatching(/^[a-d_]{1,4}$/), (name, query) => {
      const pattern = new RegExp([...query].join(".*"));
      expect(matchName(name, query) > 0).toBe(pattern.test(name));
      expect(matchName(name, query) >= 3).toBe(name.includes(query));
    }),
  );
});

test("no more than were asked for", () => {
  fc.assert(
    fc.property(fc.array(word), fc.nat(5), (names, limit) => {
      expect(rankNames(names, "a", () => 0, limit).length).toBe(
        Math.min(limit, names.filter((name) => name.includes("a")).length),
      );
    }),
  );
});
