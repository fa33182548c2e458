// A call in words: its arguments on one line, and what it returned.
import type { CallArgument, CallRow } from "../../api/calls.ts";

const MOST = 300;

/** The arguments on one line, as much as there is room for. */
export function formatArguments(given: readonly CallArgument[] = []): string {
  const text = tellArguments(given);
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text;
}

/** `path=/etc/passwd, flags=0x80000`: what an argument means where that is known, else its value. */
export function tellArguments(given: readonly CallArgument[]): string {
  return given.map(formatArgument).join(", ");
}

function formatArgument({ name, value, text }: CallArgument): string {
  const told = text === undefined ? (value ?? "?") : text;
  return name === undefined ? told : `${name}=${told}`;
}

/** `3`; `-1 ENOENT`; empty where nothing was returned. What a result means may name the error itself. */
export function formatResult({ result, error }: Pick<CallRow, "result" | "error">): string {
  const isNamed = error !== null && result !== null && result.split(/\s/).includes(error);
  return [result, isNamed ? null : error].filter((part) => part !== null).join(" ");
}

/** `openat(filename="/etc/passwd") = 3`. */
export function tellCall(row: Pick<CallRow, "name" | "arguments" | "result" | "error">): string {
  const result = formatResult(row);
  return `${row.name}(${formatArguments(row.arguments)})${result ? ` = ${result}` : ""}`;
}

/** Seconds with as many digits as tell calls apart: 1.234567. */
export function formatCallTime(ns: number): string {
  return (ns / 1e9).toFixed(6);
}
