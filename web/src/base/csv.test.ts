import fc from "fast-check";
import { expect, test } from "vitest";
import { anyCharacter } from "./properties.test-support.ts";
import { formatCsv } from "./csv.ts";

/** Fields as RFC 4180 has them; what is not quoted as it stands. */
function parse(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n)/g)) {
    rows.at(-1)!.push(quoted !== undefined ? quoted.replaceAll('""', '"') : plain);
    if (end === "\n") {
      rows.push([]);
    }
  }
  return rows.slice(0, -1);
}

test("texts are quoted, numbers are not, addresses are hexadecimal, and what there is not is empty", () => {
  const columns = [
    { name: "name", values: ['a "b", c', null] },
    { name: "n", values: [-1, 5] },
    { name: "address", values: [0x7fff_ffff_ffff_fff0n, null] },
  ];
  expect(formatCsv(columns)).toBe('"name","n","address"\n"a ""b"", c",-1,"0x7ffffffffffffff0"\n,5,\n');
});

test("what a spreadsheet takes for a formula is none", () => {
  const values = ["=1+1", "+1", "-1", "@A1", "\t=1", "\r=1", "\uff1d1", "a=1"];
  const cells = parse(formatCsv([{ name: "n", values }])).slice(1);
  expect(cells.map(([cell]) => cell)).toEqual([
    "'=1+1",
    "'+1",
    "'-1",
    "'@A1",
    "'\\x09=1",
    "'\\x0d=1",
    "'\uff1d1",
    "a=1",
  ]);
});

test("a row is a line with a cell for each column, whatever texts are", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string({ unit: anyCharacter, maxLength: 12 }), fc.nat()), { minLength: 1 }),
      (rows) => {
        const text = formatCsv([
          { name: "text", values: rows.map(([one]) => one) },
          { name: "n", values: rows.map(([, n]) => n) },
        ]);
        expect(text.split("\n").length).toBe(rows.length + 2);
        const found = parse(text).slice(1);
        expect(found.map(([, n]) => Number(n))).toEqual(rows.map(([, n]) => n));
        for (const [cell] of found) {
          expect(cell).not.toMatch(/^[=+\-@\t\r\n]/);
        }
      },
    ),
  );
});
