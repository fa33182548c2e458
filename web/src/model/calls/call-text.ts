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

/** `openat(filename="/etc/passwd") = 3`, and behind it what was done to it. */
export function tellCall(row: Pick<CallRow, "name" | "arguments" | "result" | "error" | "injected">): string {
  const [result, marks] = [formatResult(row), markInjected(row.injected)];
  return `${row.name}(${formatArguments(row.arguments)})${result ? ` = ${result}` : ""}${marks ? ` ${marks}` : ""}`;
}

/** What is done to calls: the mark that a line of `clew api` has, and what that means. */
const INJECTIONS: readonly { word: string; mark: string; means: string }[] = [
  { word: "result", mark: "(INJECTED)", means: "a result, instead of making it" },
  { word: "delay_enter", mark: "(DELAYED)", means: "a delay before it" },
  { word: "delay_exit", mark: "(DELAYED)", means: "a delay behind it" },
  { word: "signal", mark: "(SIGNAL)", means: "a signal as it began" },
];

/** `(INJECTED) (DELAYED)`; empty where nothing was done to it. */
export function markInjected(injected: readonly string[] = []): string {
  const marks = INJECTIONS.filter(({ word }) => injected.includes(word)).map(({ mark }) => mark);
  return [...new Set(marks)].join(" ");
}

/** What was done to a call, in words. */
export function tellInjected(injected: readonly string[] = []): string[] {
  return INJECTIONS.filter(({ word }) => injected.includes(word)).map(({ means }) => means);
}

/** Seconds with as many digits as tell calls apart: 1.234567. */
export function formatCallTime(ns: number): string {
  return (ns / 1e9).toFixed(6);
}
