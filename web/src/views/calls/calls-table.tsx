// The table of calls, a page at a time. A click, or Enter, selects the block that called and goes where its thread was.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { CallRow } from "../../api/calls.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import { formatArguments, formatResult } from "../../model/calls/call-text.ts";
import { callPage, PAGE_ROWS, pageNumber, showCall } from "../../model/calls/calls.ts";
import { bindKeys } from "../../model/keys.ts";
import { functions } from "../../model/session.ts";
import { type CallSort, calls, updateCalls } from "../../model/view-state.ts";
import { rowKeys, type Rows } from "../shell/row-keys.ts";

/** The row that the keyboard is at. */
const current = signal(-1);
const SCREEN_ROWS = 12;

/** Columns: by what they sort (null: they don't), what they are called, and what tells that. */
const COLUMNS: [CallSort | null, string, string][] = [
  ["time", "Time", "Sort by time"],
  ["thread", "Thread", "Sort by thread"],
  ["name", "Call", "Sort by name"],
  [null, "Arguments", ""],
  [null, "Result", ""],
  ["duration", "Took", "Sort by how long it took"],
  ["block", "Made in", "Sort by the place in the code"],
];

const pressKey = bindKeys<Rows & { row: CallRow | undefined }>(
  "Calls",
  [
    ...rowKeys({
      step: "Previous or next call",
      page: "A screen back or on",
      ends: "To the first or last of the page",
    }),
    {
      key: "Enter",
      what: "Select the block that called, and go to its time",
      when: ({ row }) => row !== undefined,
      run: ({ row }) => showCall(row!),
    },
  ],
  { ignoresModifiers: true },
);

export function CallsTable() {
  const page = callPage.value;
  const box = useRef<HTMLDivElement>(null);
  const rows = page?.rows ?? [];
  useLayoutEffect(() => {
    const at = rows.findIndex((row) => row.call === calls.peek().call);
    current.value = at;
    box.current?.scrollTo({ top: 0 });
    if (at >= 0) {
      box.current?.querySelector(`#call-row-${at}`)?.scrollIntoView({ block: "nearest" });
    }
  }, [page]);
  const moveTo = (row: number) => {
    current.value = Math.min(Math.max(row, 0), rows.length - 1);
    box.current?.querySelector(`#call-row-${current.value}`)?.scrollIntoView({ block: "nearest" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target === event.currentTarget) {
      const at = current.value;
      const move = (by: number) => moveTo(at + by);
      pressKey(event, { count: rows.length, page: SCREEN_ROWS, move, row: rows[at] });
    }
  };
  if (!page) {
    return <p class="waiting">Reading calls …</p>;
  }
  return (
    <>
      <div
        ref={box}
        class="calls-table"
        role="grid"
        aria-label="Calls"
        aria-rowcount={page.total + 1}
        aria-activedescendant={current.value >= 0 ? `call-row-${current.value}` : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        <div role="rowgroup" class="calls-head">
          <div class="calls-row head" role="row" aria-rowindex={1}>
            {COLUMNS.map((column) => (
              <ColumnHead key={column[1]} column={column} />
            ))}
          </div>
        </div>
        <div role="rowgroup">
          {rows.map((row, index) => (
            <Row key={row.call} row={row} index={index} offset={page.offset} isCurrent={index === current.value} />
          ))}
        </div>
        {rows.length === 0 && <p class="waiting">No call is like that.</p>}
      </div>
      <Pages total={page.total} offset={page.offset} />
    </>
  );
}

function Row(properties: { row: CallRow; index: number; offset: number; isCurrent: boolean }) {
  const { row, index, offset, isCurrent } = properties;
  const name = row.function >= 0 ? functions.value?.names[row.function] : undefined;
  return (
    <div
      id={`call-row-${index}`}
      class={`calls-row${isCurrent ? " current" : ""}${row.error !== null ? " failed" : ""}`}
      role="row"
      aria-rowindex={offset + index + 2}
      aria-selected={calls.value.call === row.call}
      data-call={row.call}
      data-block={row.block}
      onClick={() => {
        current.value = index;
        showCall(row);
      }}
    >
      <span role="gridcell" class="number" title={`${formatInteger(row.time)} ns`}>
        {formatDuration(row.time)}
      </span>
      <span role="gridcell" class="number">
        {row.tid ?? "?"}
      </span>
      <span role="gridcell" class="mono name" title={row.library ?? row.kind.replace("_", " ")}>
        <bdi>{row.name}</bdi>
      </span>
      <span role="gridcell" class="mono">
        <bdi>{formatArguments(row.arguments)}</bdi>
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
      class={name === "Time" || name === "Thread" || name === "Took" ? "number" : ""}
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

function Pages({ total, offset }: { total: number; offset: number }) {
  const page = Math.floor(offset / PAGE_ROWS);
  const last = Math.max(Math.ceil(total / PAGE_ROWS) - 1, 0);
  if (last === 0) {
    return null;
  }
  const steps: [string, string, number][] = [
    ["First page", "|◀", 0],
    ["Page before", "◀", page - 1],
    ["Next page", "▶", page + 1],
    ["Last page", "▶|", last],
  ];
  return (
    <div class="calls-pages" role="group" aria-label="Pages of calls">
      {steps.map(([name, sign, to], index) => (
        <button
          key={name}
          type="button"
          aria-label={name}
          title={name}
          disabled={index < 2 ? page === 0 : page >= last}
          onClick={() => (pageNumber.value = to)}
        >
          {sign}
        </button>
      ))}
      <span class="quiet" role="status">
        {formatInteger(offset + 1)} to {formatInteger(Math.min(offset + PAGE_ROWS, total))} of {formatInteger(total)}
      </span>
    </div>
  );
}
