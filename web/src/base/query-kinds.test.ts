import { expect, test } from "vitest";
import { kindsOf } from "./query-kinds.ts";

test.each([
  ["", []],
  ["   ", []],
  ["main", ["symbol", "text"]],
  ["0x401000", ["symbol", "address", "text"]],
  ["7f328de7c010", ["symbol", "address", "bytes", "text"]],
  ["48 8b ?? 05", ["symbol", "bytes", "text"]],
  ["48 8 ?? 05", ["symbol"]],
  ["?? ??", ["symbol"]],
  ["call rax", ["symbol", "text"]],
  ["4", ["symbol"]],
])("%j is %j", (query, kinds) => {
  expect(kindsOf(query)).toEqual(kinds);
});
