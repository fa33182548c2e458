// The calls of a process in the file that the page is in, and which of them are asked for. Pure.
import type { CallDetails, CallPlaces, CallSummary, EntityPage, EntityRow, Touch } from "./calls.ts";

/** What the file has of the calls of a process. */
export interface TakenCalls {
  /** Of all calls. */
  summary: CallSummary;
  places: CallPlaces;
  /** By index. */
  calls: CallDetails[];
  /** All entities, those with the most calls first; `own`: the process has to do with it. */
  entities: { source: EntityPage["source"]; rows: (EntityRow & { own: boolean })[] };
  /** Entities that are the process (null), or a thread of it. */
  makers: [number, number | null][];
  touches: Touch[];
}

/** Calls that are asked for, in the order of time. */
export function choose(taken: TakenCalls, words: URLSearchParams): CallDetails[] {
  const text = (words.get("text") ?? "").toLowerCase();
  const name = words.get("name");
  const from = words.has("from") ? Number(words.get("from")) : -Infinity;
  const to = words.has("to") ? Number(words.get("to")) : Infinity;
  const [kind, filter] = [words.get("kind"), words.get("filter")];
  const isAbout = words.has("entity") ? aboutEntity(taken, Number(words.get("entity"))) : () => true;
  return taken.calls.filter(
    (call) =>
      call.time >= from &&
      call.time < to &&
      (name === null || call.name === name) &&
      (kind === null || call.kind === kind) &&
      (filter === null || call.filter === filter) &&
      (!words.has("failed") || call.error !== null) &&
      (text === "" || hasText(call, text)) &&
      isAbout(call),
  );
}

/** A part of a name or of what is told of arguments and result; of `fd=3` an argument whose name ends so and that value,
 * of `path=/etc/*` any path. */
function hasText({ name, arguments: given, result, error }: CallDetails, text: string): boolean {
  const told = given.map((one) => {
    const value = one.text ?? one.value ?? "?";
    return one.name === undefined ? value : `${one.name}=${value}`;
  });
  if (name.toLowerCase().includes(text)) {
    return true;
  }
  const asked = text.includes(", ") ? null : /^(\w+)=(\S.*)$/.exec(text.trim());
  if (!asked) {
    return `${told.join(", ")} = ${result ?? ""} ${error ?? ""}`.toLowerCase().includes(text);
  }
  const value = asked[2]
    .replace(/^"+|"+$/g, "")
    .split(/\*+/)
    .map(escape)
    .join('[^"]*');
  const pattern =
    asked[1] === "path"
      ? new RegExp(`="${value}"(?:\\.\\.\\.)?$`, "i")
      : new RegExp(`^\\w*${asked[1]}="?${value}"?(?:\\.\\.\\.)?$`, "i");
  return told.some((one) => pattern.test(one));
}

const escape = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Whether a call has to do with an entity: refers to it, or was made by it. */
function aboutEntity(taken: TakenCalls, entity: number): (call: CallDetails) => boolean {
  const maker = taken.makers.find(([number]) => number === entity);
  return (call) =>
    (maker !== undefined && (maker[1] === null || maker[1] === call.tid)) ||
    call.references.some((one) => one.entity === entity);
}

export function without(words: URLSearchParams, name: string): URLSearchParams {
  const left = new URLSearchParams(words);
  left.delete(name);
  return left;
}

export function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
