// The tree of calls: by thread each call with those within it, or those of one name together. Enter and a click go to a
// call; arrows open and close.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { formatDuration, formatInteger, formatShare } from "../../base/format.ts";
import { callTree, listedRow, toggleRow, treeChanged, watchCallTree } from "../../model/calls/call-tree.ts";
import { formatArguments, formatResult } from "../../model/calls/call-text.ts";
import { goToCall } from "../../model/calls/calls.ts";
import { aboveOf, countTree, type ListedRow } from "../../model/calls/tree-rows.ts";
import { bindKeys } from "../../model/keys.ts";
import { process } from "../../model/session.ts";
import { calls, type TREE_SORTS, updateCalls } from "../../model/view-state.ts";
import { useFarScroll } from "../shell/far-scroll.ts";
import { rowKeys, type Rows } from "../shell/row-keys.ts";
import { InjectedMark } from "./injected-mark.tsx";

const ROW_HEIGHT = 22;
const HEAD_HEIGHT = 24;
const INDENT_PX = 16;
const MOST_INDENT = 12;

const current = signal(0);

const COLUMNS: [(typeof TREE_SORTS)[number], string, string][] = [
  ["order", "Call", "Sort by the order in which they were made"],
  ["calls", "Calls", "Sort by how many there are"],
  ["total", "Total", "Sort by how long they took"],
  ["own", "Self", "Sort by how long they took without what is within them"],
];

interface On extends Rows {
  row: ListedRow | null;
  up: () => void;
}

const canOpen = (row: ListedRow | null) =>
  row !== null && row.node === null && (row.kind === "thread" || (row.row?.within ?? 0) > 0);

const pressKey = bindKeys<On>(
  "Tree of calls",
  [
    ...rowKeys({ step: "Previous or next row", page: "A screen back or on" }),
    {
      key: "ArrowRight",
      what: "Show what is in it",
      when: ({ row }) => canOpen(row),
      run: ({ row }) => toggleRow(row!),
    },
    {
      key: "ArrowLeft",
      what: "Hide what is in it, or to what it is in",
      run: ({ row, up }) => (row?.node ? toggleRow(row) : up()),
    },
    { key: "Enter", what: "Go to the call, or open and close", run: ({ row }) => row && open(row) },
  ],
  { ignoresModifiers: true },
);

function open(row: ListedRow): void {
  if (row.kind === "call" && row.row && row.row.path === undefined) {
    void goToCall(row.row.call);
  } else {
    toggleRow(row);
  }
}

export function CallsTree() {
  useEffect(watchCallTree, []);
  const tree = callTree.value;
  treeChanged.value;
  const box = useRef<HTMLDivElement>(null);
  const count = tree ? countTree(tree) : 0;
  const scroll = useFarScroll(box, count, ROW_HEIGHT, HEAD_HEIGHT);
  useEffect(() => {
    current.value = 0;
    scroll.show(0);
  }, [tree]);
  if (!tree) {
    return <p class="waiting">Reading calls …</p>;
  }
  const at = Math.min(current.value, count - 1);
  const whole = tree.threads.reduce((sum, { thread }) => sum + thread.total, 0);
  const moveTo = (row: number) => {
    current.value = Math.min(Math.max(row, 0), count - 1);
    scroll.show(current.value);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target === event.currentTarget) {
      const up = () => {
        const above = aboveOf(tree, at);
        if (above >= 0) {
          moveTo(above);
        }
      };
      pressKey(event, {
        count,
        page: scroll.page,
        move: (by) => moveTo(at + by),
        row: at >= 0 ? listedRow(at) : null,
        up,
      });
    }
  };
  const rows = [];
  for (let index = scroll.first; index < scroll.last; index++) {
    const row = listedRow(index);
    if (row) {
      rows.push(
        <Row
          key={index}
          row={row}
          index={index}
          y={index * ROW_HEIGHT - scroll.top}
          isCurrent={index === at}
          whole={whole}
        />,
      );
    }
  }
  return (
    <>
      <div class="tree-bar">
        <label>
          <input
            type="checkbox"
            checked={calls.value.treeBy === "name"}
            onChange={(event) => updateCalls({ treeBy: event.currentTarget.checked ? "name" : "call" })}
          />{" "}
          Those of one name together
        </label>
      </div>
      <div
        ref={box}
        class="calls-table calls-tree"
        role="treegrid"
        aria-label="Tree of calls"
        aria-rowcount={count + 1}
        aria-activedescendant={at >= scroll.first && at < scroll.last ? `tree-row-${at}` : undefined}
        tabIndex={0}
        data-tree-rows={count}
        onKeyDown={onKeyDown}
        onScroll={scroll.onScroll}
      >
        <div role="rowgroup" class="calls-head">
          <div class="tree-row head" role="row" aria-rowindex={1}>
            {COLUMNS.map((column) => (
              <ColumnHead key={column[0]} column={column} />
            ))}
          </div>
        </div>
        <div role="rowgroup" class="calls-space" style={{ height: `${scroll.space}px` }}>
          <div role="presentation" class="calls-sight" style={{ height: `${Math.min(scroll.height, scroll.space)}px` }}>
            {rows}
          </div>
        </div>
        {count === 0 && <p class="waiting">No call is like that.</p>}
      </div>
    </>
  );
}

function Row(properties: { row: ListedRow; index: number; y: number; isCurrent: boolean; whole: number }) {
  const { row, index, y, isCurrent, whole } = properties;
  const known = row.kind === "thread" ? row.thread : row.row;
  const isOpen = row.node !== null;
  const hasMore = row.kind === "thread" || (row.row?.within ?? 0) > 0;
  const call = row.kind === "call" && row.row?.path === undefined ? row.row?.call : undefined;
  const hasFailed = row.kind === "call" && row.row !== null && row.row.calls === 1 && row.row.failed > 0;
  return (
    <div
      id={`tree-row-${index}`}
      class={`tree-row${isCurrent ? " current" : ""}${hasFailed ? " failed" : ""}`}
      role="row"
      aria-level={row.depth + 1}
      aria-expanded={hasMore ? isOpen : undefined}
      aria-rowindex={index + 2}
      aria-selected={call !== undefined && calls.value.call === call}
      data-tree-call={call}
      data-tree-thread={row.kind === "thread" ? row.thread.tid : undefined}
      data-depth={row.depth}
      style={{ transform: `translateY(${y}px)` }}
      onClick={() => {
        current.value = index;
        open(row);
      }}
    >
      <span
        role="gridcell"
        class="tree-name marked-cell"
        style={{ paddingLeft: `${Math.min(row.depth, MOST_INDENT) * INDENT_PX}px` }}
      >
        <span
          class="twist"
          aria-hidden="true"
          onClick={(event) => {
            event.stopPropagation();
            current.value = index;
            if (hasMore) {
              toggleRow(row);
            }
          }}
        >
          {hasMore ? (isOpen ? "▾" : "▸") : ""}
        </span>
        <Told row={row} />
      </span>
      <span role="gridcell" class="number">
        {known ? formatInteger(known.calls) : ""}
        {known && known.failed > 0 && known.calls > 1 && (
          <span class="failed-number" title={`${formatInteger(known.failed)} failed`}>
            {" "}
            ({formatInteger(known.failed)} failed)
          </span>
        )}
      </span>
      <span role="gridcell" class="number" title={known?.total == null ? "" : formatShare(known.total, whole)}>
        {known?.total == null ? "" : formatDuration(known.total)}
      </span>
      <span role="gridcell" class="number">
        {row.kind === "call" && row.row && row.row.total !== null ? formatDuration(row.row.own) : ""}
      </span>
    </div>
  );
}

function Told({ row }: { row: ListedRow }) {
  if (row.kind === "thread") {
    const name = process.value?.threads.find(({ tid }) => tid === row.thread.tid)?.name;
    return (
      <b>
        <bdi>{name ?? "thread"}</bdi> {row.thread.tid}
      </b>
    );
  }
  if (!row.row) {
    return <span class="quiet">…</span>;
  }
  const { name, path, arguments: given, result = null, error = null, injected } = row.row;
  return (
    <>
      <span class="mono">
        <bdi>{name}</bdi>
        {path === undefined && (
          <>
            <span class="quiet">
              (<bdi>{formatArguments(given)}</bdi>)
            </span>{" "}
            <span class="result">
              <bdi>{formatResult({ result, error })}</bdi>
            </span>
          </>
        )}
      </span>
      <InjectedMark injected={injected} />
    </>
  );
}

function ColumnHead({ column: [by, name, title] }: { column: (typeof COLUMNS)[number] }) {
  const { treeSort, isTreeDescending } = calls.value;
  const isSorted = treeSort === by;
  return (
    <div
      role="columnheader"
      class={by === "order" ? "" : "number"}
      aria-sort={!isSorted ? "none" : isTreeDescending ? "descending" : "ascending"}
    >
      <button
        type="button"
        title={title}
        // Who looks for times looks for long ones.
        onClick={() => updateCalls({ treeSort: by, isTreeDescending: isSorted ? !isTreeDescending : by !== "order" })}
      >
        {name}
        <span aria-hidden="true">{isSorted ? (isTreeDescending ? " ▾" : " ▴") : ""}</span>
      </button>
    </div>
  );
}
