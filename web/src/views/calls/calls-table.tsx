// The table of calls, of which only the rows in sight are made. A click, or Enter, selects the block that called and goes
// where its thread was.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { CallRow } from "../../api/calls.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import { callAt, callTable, rowsLoaded, shownRow } from "../../model/calls/call-table.ts";
import { formatArguments, formatCallTime, formatResult } from "../../model/calls/call-text.ts";
import { showCall } from "../../model/calls/calls.ts";
import { hereCall } from "../../model/calls/near-calls.ts";
import { bindKeys } from "../../model/keys.ts";
import { functions } from "../../model/session.ts";
import { type CallSort, calls, updateCalls } from "../../model/view-state.ts";
import { useFarScroll } from "../shell/far-scroll.ts";
import { rowKeys, type Rows } from "../shell/row-keys.ts";
import { InjectedMark } from "./injected-mark.tsx";

/** The row that the keyboard is at. */
const current = signal(-1);
const ROW_HEIGHT = 22;
const HEAD_HEIGHT = 24;

/** Columns: by what they sort (null: they don't), what they are called, and what tells that. */
const COLUMNS: [CallSort | null, string, string][] = [
  ["time", "Time (s)", "Sort by time"],
  ["thread", "Thread", "Sort by thread"],
  ["name", "Call", "Sort by name"],
  [null, "Arguments", ""],
  [null, "Result", ""],
  ["duration", "Took", "Sort by how long it took"],
  ["block", "Made in", "Sort by the place in the code"],
];
const NUMBERS = new Set(["Time (s)", "Thread", "Took"]);

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
  const box = useRef<HTMLDivElement>(null);
  const total = table?.total ?? 0;
  const scroll = useFarScroll(box, total, ROW_HEIGHT, HEAD_HEIGHT);
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
  const moveTo = (row: number) => {
    current.value = Math.min(Math.max(row, 0), total - 1);
    scroll.show(current.value);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target === event.currentTarget) {
      const row = at >= 0 && at < total ? callAt(at) : null;
      pressKey(event, { count: total, page: scroll.page, move: (by) => moveTo(at + by), row });
    }
  };
  const rows = [];
  for (let index = scroll.first; index < scroll.last; index++) {
    rows.push(<Row key={index} row={callAt(index)} index={index} y={index * ROW_HEIGHT - scroll.top} />);
  }
  return (
    <div
      ref={box}
      class="calls-table"
      role="grid"
      aria-label="Calls"
      aria-rowcount={total + 1}
      aria-activedescendant={at >= scroll.first && at < scroll.last ? `call-row-${at}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onScroll={scroll.onScroll}
    >
      <div role="rowgroup" class="calls-head">
        <div class="calls-row head" role="row" aria-rowindex={1}>
          {COLUMNS.map((column) => (
            <ColumnHead key={column[1]} column={column} />
          ))}
        </div>
      </div>
      <div role="rowgroup" class="calls-space" style={{ height: `${scroll.space}px` }}>
        <div role="presentation" class="calls-sight" style={{ height: `${Math.min(scroll.height, scroll.space)}px` }}>
          {rows}
        </div>
      </div>
      {total === 0 && <p class="waiting">No call is like that.</p>}
    </div>
  );
}

function Row({ row, index, y }: { row: CallRow | null; index: number; y: number }) {
  const isCurrent = index === current.value;
  const place = { transform: `translateY(${y}px)` };
  if (!row) {
    return (
      <div
        id={`call-row-${index}`}
        class={`calls-row${isCurrent ? " current" : ""}`}
        role="row"
        aria-rowindex={index + 2}
        style={place}
      >
        <span role="gridcell">…</span>
      </div>
    );
  }
  const name = row.function >= 0 ? functions.value?.names[row.function] : undefined;
  return (
    <div
      id={`call-row-${index}`}
      class={`calls-row${isCurrent ? " current" : ""}${row.error !== null ? " failed" : ""}${hereCall.value === row.call ? " here" : ""}`}
      role="row"
      aria-rowindex={index + 2}
      style={place}
      aria-selected={calls.value.call === row.call}
      data-call={row.call}
      data-block={row.block}
      onClick={() => {
        current.value = index;
        showCall(row);
      }}
    >
      <span role="gridcell" class="number" title={`${formatInteger(row.time)} ns`}>
        {formatCallTime(row.time)}
      </span>
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
      <span role="gridcell" class="mono">
        <bdi>{name ?? (row.block >= 0 ? "…" : "")}</bdi>
      </span>
    </div>
  );
}

function ColumnHead({ column: [by, name, title] }: { column: (typeof COLUMNS)[number] }) {
  const { sort, isDescending } = calls.value;
  const isSorted = by !== null && sort === by;
  return (
    <div
      role="columnheader"
      class={NUMBERS.has(name) ? "number" : ""}
      aria-sort={by === null ? undefined : !isSorted ? "none" : isDescending ? "descending" : "ascending"}
    >
      {by === null ? (
        name
      ) : (
        <button
          type="button"
          title={title}
          // Who looks for how long calls took looks for long ones.
          onClick={() => updateCalls({ sort: by, isDescending: isSorted ? !isDescending : by === "duration" })}
        >
          {name}
          <span aria-hidden="true">{isSorted ? (isDescending ? " ▾" : " ▴") : ""}</span>
        </button>
      )}
    </div>
  );
}
