// Tables of the view of calls: calls as they are chosen and sorted, where they were made, entities, and who did what with
// them. The server writes them (src/clew/server/call_tables.py); a file's page asks itself for all rows.
import {
  type CallPlaces,
  type CallRow,
  type EntityRow,
  fetchCallPlaces,
  fetchCalls,
  fetchEntities,
  fetchTouches,
  type Touch,
} from "../../api/calls.ts";
import type { Column } from "../../base/csv.ts";
import { tellArguments } from "../calls/call-text.ts";
import { callsPlace } from "../calls/call-processes.ts";
import { type CallTable, wordsOfTable } from "../calls/calls.ts";
import { client, functions, processId, summary } from "../session.ts";
import { viewState } from "../view-state.ts";
import { type TableKind, tableFile } from "./table-file.ts";

/** More rows than any file has. */
const ALL = Number.MAX_SAFE_INTEGER;

/** The table as a file. Rejects with an Error that says why it can't be had. */
export function makeCallTable(of: CallTable, kind: TableKind): Promise<Blob> {
  const process = callsPlace.peek()?.process ?? null;
  return tableFile(of, kind, wordsOfTable(of), process, () => columnsHere(of));
}

async function columnsHere(of: CallTable): Promise<Column[]> {
  const where = { trace: viewState.peek().trace, process: processId.peek() };
  const place = callsPlace.peek() ?? where;
  const words = { ...wordsOfTable(of), count: ALL };
  const names = functions.peek()?.names;
  if (!names) {
    throw new Error("the trace is still being opened");
  }
  switch (of) {
    case "calls":
      return callColumns((await fetchCalls(client(), place, words)).rows, names, findPids());
    case "places":
      return placeColumns((await fetchCallPlaces(client(), where, words)).rows, names);
    case "entities":
      return entityColumns((await fetchEntities(client(), place, words)).rows);
    case "touches":
      return touchColumns((await fetchTouches(client(), where, ALL)).rows, findPids());
  }
}

/** Ids of processes by their numbers in the trace. */
function findPids(): Map<number, number> {
  return new Map(summary.peek()?.processes.map(({ process_id, pid }) => [process_id, pid]));
}

type Cell = string | number | null;

function columnsOf<T>(rows: readonly T[], cells: Record<string, (row: T) => Cell>): Column[] {
  return Object.entries(cells).map(([name, cell]) => ({ name, values: rows.map(cell) }));
}

/** The block that called and its function, by `names`. */
function placeCells(names: readonly string[]): Record<string, (row: { block: number; function: number }) => Cell> {
  return {
    block: (row) => (row.block < 0 ? null : row.block),
    function: (row) => (row.function < 0 ? null : names[row.function]),
  };
}

/** `pids` by the number of a process in the trace. */
export function callColumns(
  rows: readonly CallRow[],
  names: readonly string[],
  pids: ReadonlyMap<number, number>,
): Column[] {
  return columnsOf(rows, {
    call: (row) => row.call,
    process_id: (row) => row.process,
    pid: (row) => pids.get(row.process) ?? null,
    time_ns: (row) => row.time,
    duration_ns: (row) => row.duration,
    tid: (row) => row.tid,
    kind: (row) => row.kind,
    filter: (row) => row.filter,
    name: (row) => row.name,
    library: (row) => row.library,
    arguments: (row) => tellArguments(row.arguments),
    result: (row) => row.result,
    error: (row) => row.error,
    injected: (row) => row.injected.join(",") || null,
    ...placeCells(names),
  });
}

export function placeColumns(rows: CallPlaces["rows"], names: readonly string[]): Column[] {
  return columnsOf(rows, { ...placeCells(names), name: (row) => row.name, calls: (row) => row.calls });
}

export function entityColumns(rows: readonly EntityRow[]): Column[] {
  return columnsOf(rows, {
    entity_id: (row) => row.entity,
    kind: (row) => row.kind,
    name: (row) => row.name,
    process_id: (row) => row.process,
    tid: (row) => row.tid,
    parent_entity_id: (row) => row.parent,
    first_ns: (row) => row.from,
    last_ns: (row) => row.to,
    calls: (row) => row.calls,
    all_calls: (row) => row.all_calls,
    bytes: (row) => row.bytes,
    details: (row) => row.details.map(([name, value]) => `${name}=${value}`).join(", "),
  });
}

/** `pids` by the number of a process in the trace. */
export function touchColumns(rows: readonly Touch[], pids: ReadonlyMap<number, number>): Column[] {
  return columnsOf(rows, {
    process_id: (row) => row.process,
    pid: (row) => pids.get(row.process) ?? null,
    entity_id: (row) => row.entity,
    kind: (row) => row.kind,
    name: (row) => row.name,
    calls: (row) => row.calls,
    roles: (row) => row.roles.map(([role, n]) => `${role} ${n}`).join(", "),
    bytes_read: (row) => row.bytes_read,
    bytes_written: (row) => row.bytes_written,
  });
}
