// Rows of the list of entities: by kind, each kind under a heading with its number.
import type { EntityPage, EntityRow } from "../../api/calls.ts";

const ORDER = [
  ...["process", "thread", "file", "directory", "socket", "pipe", "device", "epoll", "eventfd", "timer", "memfd"],
  ...["pidfd", "other", "memory"],
];
const HEADINGS: Record<string, string | undefined> = {
  process: "Processes",
  thread: "Threads",
  file: "Files",
  socket: "Sockets",
  pipe: "Pipes",
  device: "Devices",
  epoll: "Epoll",
  eventfd: "Eventfds",
  timer: "Timers",
  memfd: "Memfds",
  pidfd: "Pidfds",
  memory: "Memory",
  other: "Others",
};

/** A heading, or an entity below one. */
export type ListRow = { kind: string; heading: string; count: number } | { entity: EntityRow };

/** What a kind is called; one that is not known as the trace has it. */
export function headingOf(kind: string): string {
  return HEADINGS[kind] ?? kind;
}

/** Kinds in the order of the list: those known first, then by name. */
export function sortKinds(kinds: readonly string[]): string[] {
  const rank = (kind: string) => (ORDER.includes(kind) ? ORDER.indexOf(kind) : ORDER.length);
  return [...kinds].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0));
}

/** The rows of a page of entities; within a kind they stay in their order. */
export function listEntities(page: EntityPage): ListRow[] {
  const shown = sortKinds([...new Set(page.rows.map((row) => row.kind))]);
  return shown.flatMap((kind): ListRow[] => [
    { kind, heading: headingOf(kind), count: page.kinds[kind] ?? 0 },
    ...page.rows.filter((row) => row.kind === kind).map((entity) => ({ entity })),
  ]);
}
