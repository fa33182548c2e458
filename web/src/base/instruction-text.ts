// The text of an instruction in pieces, each of one kind, so that it can be coloured.

export type TokenKind = "mnemonic" | "branch" | "register" | "number" | "name" | "word" | "sign" | "bad";

export interface Token {
  kind: TokenKind;
  text: string;
}

const BRANCH = /^(?:bnd |notrack )?(?:call|ret|j[a-z]+|loop\w*|syscall|int3?|iretq?|hlt|ud2|xbegin)$/;
const PREFIX = /^(?:rep|repe|repne|repz|repnz|lock|bnd|notrack|xacquire|xrelease|data16)$/;
const REGISTER =
  /^(?:[re]?(?:ax|bx|cx|dx|si|di|bp|sp|ip)|[abcd][lh]|(?:si|di|bp|sp)l|r(?:8|9|1[0-5])[bwd]?|[xyz]mm\d+|mm\d|st(?:\(\d\))?|k[0-7]|[c-gs]s|[cd]r\d+)$/;
const WORD = /^(?:byte|word|dword|qword|tbyte|xword|xmmword|ymmword|zmmword|ptr)$/;
const PART = /0x[0-9a-f]+|\d+|[A-Za-z_]\w*(?:\(\d\))?|[^\w]+/g;

/** Pieces that put together are `text`; a `name`, if there is one, stands for the address that a branch leads to. */
export function splitInstruction(text: string, name: string | null = null): Token[] {
  if (text === "(bad)") {
    return [{ kind: "bad", text }];
  }
  const words = text.split(" ");
  let at = 1;
  while (at < words.length && PREFIX.test(words[at - 1])) {
    at++;
  }
  const mnemonic = words.slice(0, at).join(" ");
  const operands = words.slice(at).join(" ");
  const tokens: Token[] = [{ kind: BRANCH.test(words[at - 1]) ? "branch" : "mnemonic", text: mnemonic }];
  if (!operands) {
    return tokens;
  }
  tokens.push({ kind: "sign", text: " " });
  if (name !== null) {
    tokens.push({ kind: "name", text: name });
    return tokens;
  }
  for (const [part] of operands.matchAll(PART)) {
    tokens.push({ kind: kindOf(part), text: part });
  }
  return tokens;
}

function kindOf(part: string): TokenKind {
  if (/^\d/.test(part)) {
    return "number";
  }
  if (REGISTER.test(part)) {
    return "register";
  }
  return WORD.test(part) ? "word" : "sign";
}
