// The table of calls. A click, or Enter, selects the block that called and goes where its thread was.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { CallRow } from "../../api/calls.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import { callAt, callTable, rowsLoaded, shownRow } from "../../model/calls/call-table.ts";
import { formatArguments, formatCallTime, formatResult } from "../../model/calls/call-text.ts";
import { isOfAll, processName, processTitle } from "../../model/calls/call-processes.ts";
import { showCall } from "../../model/calls/calls.ts";
import { hereCall } from "../../model/calls/near-calls.ts";
import { bindKeys } from "../../model/keys.ts";
import { functions, processId } from "../../model/session.ts";
import { type CallSort, calls, updateCalls } from "../../model/view-state.ts";
import { rowKeys, type Rows } from "../shell/row-keys.ts";
import { CallsGrid, type Column, GridRow, type GridScroll, useGridScroll } from "./calls-grid.tsx";
import { InjectedMark } from "./injected-mark.tsx";

/** The row that the keyboard is at. */
const current = signal(-1);

const COLUMNS: readonly Column<CallSort>[] = [
  { sort: "time", name: "Time (s)", title: "Sort by time", isNumber: true },
  { sort: "thread", name: "Thread", title: "Sort by thread", isNumber: true },
  { sort: "name", name: "Call", title: "Sort by name" },
  { sort: null, name: "Arguments" },
  { sort: null, name: "Result" },
  // Who looks for how long calls took looks for long ones.
  { sort: "duration", name: "Took", title: "Sort by how long it took", isNumber: true, isLargestFirst: true },
  { sort: "block", name: "Made in", title: "Sort by the place in the code" },
];

/** Of all processes: which one it is, and not the place in the code, which is told of the process that is looked at. */
const COLUMNS_OF_ALL: readonly Column<CallSort>[] = [
  COLUMNS[0],
  { sort: "process", name: "Process", title: "Sort by process" },
  ...COLUMNS.slice(1, -1),
];

const pressKey = bindKeys<Rows & { row: CallRow | null }>(
  "Calls",
  [
    ...rowKeys({ step: "Previous or next call", page: "A screen back or on", ends: "To the first or last call" }),
    {
      key: "Enter",
      what: "Select the block that called, and go to its time",
      when: ({ row }) => row !== null,
      run: ({ row }) => showCall(row!),
    },
  ],
  { ignoresModifiers: true },
);

export function CallsTable() {
  const table = callTable.value;
  const total = table?.total ?? 0;
  const scroll = useGridScroll(total);
  rowsLoaded.value;
  useEffect(() => {
    // Of other calls the first is looked at, or the one that is chosen.
    current.value = shownRow.peek();
    scroll.show(Math.max(shownRow.peek(), 0));
  }, [table?.wanted]);
  const shown = shownRow.value;
  useEffect(() => {
    if (shown >= 0) {
      current.value = shown;
      scroll.show(shown);
    }
  }, [shown]);
  useEffect(() => {
    // What opens below leaves less room.
    if (current.peek() >= 0) {
      scroll.show(current.peek());
    }
  }, [scroll.height]);
  if (!table) {
    return <p class="waiting">Reading calls …</p>;
  }
  const at = current.value;
  return (
    <CallsGrid
      scroll={scroll}
      role="grid"
      label="Calls"
      class={`calls-table${isOfAll.value ? " of-all" : ""}`}
      columns={isOfAll.value ? COLUMNS_OF_ALL : COLUMNS}
      sorted={calls.value}
      onSort={updateCalls}
      at={at}
      onMove={(row) => {
        current.value = row;
        scroll.show(row);
      }}
      onKey={(event, rows) => pressKey(event, { ...rows, row: at >= 0 && at < total ? callAt(at) : null })}
      row={(index) => <Row key={index} row={callAt(index)} index={index} scroll={scroll} />}
    />
  );
}

function Row({ row, index, scroll }: { row: CallRow | null; index: number; scroll: GridScroll }) {
  const place = { scroll, of: "grid" as const, index, isCurrent: index === current.value };
  if (!row) {
    return (
      <GridRow {...place}>
        <span role="gridcell">…</span>
      </GridRow>
    );
  }
  const isLookedAt = row.process === processId.value;
  const name = row.function >= 0 ? functions.value?.names[row.function] : undefined;
  return (
    <GridRow
      {...place}
      hasFailed={row.error !== null}
      isHere={isLookedAt && hereCall.value === row.call}
      aria-selected={isLookedAt && calls.value.call === row.call}
      data-call={row.call}
      data-process={row.process}
      data-block={row.block}
      onClick={() => {
        current.value = index;
        showCall(row);
      }}
    >
      <span role="gridcell" class="number" title={`${formatInteger(row.time)} ns`}>
        {formatCallTime(row.time)}
      </span>
      {isOfAll.value && (
        <span role="gridcell" class="process" title={processTitle.value(row.process)}>
          <bdi>{processName.value(row.process)}</bdi>
        </span>
      )}
      <span role="gridcell" class="number">
        {row.tid ?? "?"}
      </span>
      <span role="gridcell" class="mono name" title={row.library ?? row.kind.replace("_", " ")}>
        <bdi>{row.name}</bdi>
      </span>
      <span role="gridcell" class="mono marked-cell">
        <bdi>{formatArguments(row.arguments)}</bdi>
        <InjectedMark injected={row.injected} />
      </span>
      <span role="gridcell" class="mono result">
        <bdi>{formatResult(row)}</bdi>
      </span>
      <span role="gridcell" class="number">
        {row.duration === null ? "" : formatDuration(row.duration)}
      </span>
      {!isOfAll.value && (
        <span role="gridcell" class="mono">
          <bdi>{name ?? (row.block >= 0 ? "…" : "")}</bdi>
        </span>
      )}
    </GridRow>
  );
}
