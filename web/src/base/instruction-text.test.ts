import fc from "fast-check";
import { expect, test } from "vitest";
import { splitInstruction } from "./instruction-text.ts";

test("pieces put together are the text", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z]{1,8}( [a-z0-9,+\-*[\]()_]{1,12}){0,6}$/), (text) => {
      expect(
        splitInstruction(text)
          .map((token) => token.text)
          .join(""),
      ).toBe(text);
    }),
  );
});

test("kinds", () => {
  const kinds = (text: string) => splitInstruction(text).map((token) => `${token.kind}:${token.text}`);
  expect(kinds("mov rax, qword ptr [rip + 0x42]")).toEqual([
    "mnemonic:mov",
    "sign: ",
    "register:rax",
    "sign:, ",
    "word:qword",
    "sign: ",
    "word:ptr",
    "sign: [",
    "register:rip",
    "sign: + ",
    "number:0x42",
    "sign:]",
  ]);
  expect(kinds("rep movsb byte ptr [rdi], byte ptr [rsi]")[0]).toBe("mnemonic:rep movsb");
  expect(kinds("ret")).toEqual(["branch:ret"]);
  expect(kinds("jne 0x40")).toEqual(["branch:jne", "sign: ", "number:0x40"]);
  expect(kinds("(bad)")).toEqual(["bad:(bad)"]);
});

test("a name stands for the address", () => {
  expect(splitInstruction("call 0x1234", "puts@plt").map((token) => token.text)).toEqual(["call", " ", "puts@plt"]);
});
