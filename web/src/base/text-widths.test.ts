import { expect, test } from "vitest";
import { MOST_WIDTHS, TextWidths } from "./text-widths.ts";

test("a text is measured once, until letters have another size", () => {
  const measured: string[] = [];
  let perLetter = 6.3;
  const widths = new TextWidths((text) => {
    measured.push(text);
    return perLetter * text.length;
  });
  expect([widths.of("ab"), widths.of("abc"), widths.of("ab")]).toEqual([13, 19, 13]);
  expect(measured).toEqual(["ab", "abc"]);
  perLetter = 9;
  widths.clear();
  expect(widths.of("ab")).toBe(18);
});

test("captions whose counts never stop rising take no more room than some thousand", () => {
  const widths = new TextWidths((text) => text.length);
  let [most, nWrong] = [0, 0];
  for (let count = 0; count < 10 * MOST_WIDTHS; count++) {
    nWrong += Number(widths.of(`spin ×${count}`) !== `spin ×${count}`.length);
    most = Math.max(most, widths.size);
  }
  expect(nWrong).toBe(0);
  expect(most).toBeLessThanOrEqual(MOST_WIDTHS);
});
