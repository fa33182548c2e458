// The text of an instruction, each kind of word in its colour.
import type { Instruction } from "../../api/code.ts";
import { splitInstruction } from "../../base/instruction-text.ts";

export function InstructionTokens({ of }: { of: Instruction }) {
  return (
    <>
      {splitInstruction(of.text, of.target?.name ?? null).map(({ kind, text }, at) => (
        <span key={at} class={`code-${kind}`}>
          {text}
        </span>
      ))}
    </>
  );
}
