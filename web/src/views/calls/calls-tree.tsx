// The tree of calls: by thread each call with those within it, or those of one name together. Enter and a click go to a
// call; arrows open and close.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatDuration, formatInteger, formatShare } from "../../base/format.ts";
import { callTree, listedRow, toggleRow, treeChanged, watchCallTree } from "../../model/calls/call-tree.ts";
import { formatArguments, formatResult } from "../../model/calls/call-text.ts";
import { isOfAll, processName, processTitle } from "../../model/calls/call-processes.ts";
import { goToCall } from "../../model/calls/calls.ts";
import { aboveOf, countTree, type ListedRow } from "../../model/calls/tree-rows.ts";
import { bindKeys } from "../../model/keys.ts";
import { processId, summary } from "../../model/session.ts";
import { calls, type TREE_SORTS, updateCalls } from "../../model/view-state.ts";
import { rowKeys, type Rows } from "../shell/row-keys.ts";
import { CallsGrid, type Column, GridRow, type GridScroll, useGridScroll } from "./calls-grid.tsx";
import { InjectedMark } from "./injected-mark.tsx";

const INDENT_PX = 16;
const MOST_INDENT = 12;

const current = signal(0);

type TreeSort = (typeof TREE_SORTS)[number];

/** Who looks for numbers looks for large ones. */
const NUMBER = { isNumber: true, isLargestFirst: true };

const COLUMNS: readonly Column<TreeSort>[] = [
  { sort: "order", name: "Call", title: "Sort by the order in which they were made" },
  { sort: "calls", name: "Calls", title: "Sort by how many there are", ...NUMBER },
  { sort: "total", name: "Total", title: "Sort by how long they took", ...NUMBER },
  { sort: "own", name: "Self", title: "Sort by how long they took without what is within them", ...NUMBER },
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
    void goToCall(row.row.call, row.parent.process);
  } else {
    toggleRow(row);
  }
}

export function CallsTree() {
  useEffect(watchCallTree, []);
  const tree = callTree.value;
  treeChanged.value;
  const count = tree ? countTree(tree) : 0;
  const scroll = useGridScroll(count);
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
    current.value = row;
    scroll.show(row);
  };
  const up = () => {
    const above = aboveOf(tree, at);
    if (above >= 0) {
      moveTo(above);
    }
  };
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
      <CallsGrid
        scroll={scroll}
        role="treegrid"
        label="Tree of calls"
        class="calls-tree"
        columns={COLUMNS}
        sorted={{ sort: calls.value.treeSort, isDescending: calls.value.isTreeDescending }}
        onSort={({ sort, isDescending }) => updateCalls({ treeSort: sort, isTreeDescending: isDescending })}
        at={at}
        onMove={moveTo}
        onKey={(event, rows) => pressKey(event, { ...rows, row: at >= 0 ? listedRow(at) : null, up })}
        row={(index) => {
          const row = listedRow(index);
          return row && <Row key={index} {...{ row, index, scroll, whole }} isCurrent={index === at} />;
        }}
      />
    </>
  );
}

const processOf = (row: ListedRow) => (row.kind === "thread" ? row.thread.process : row.parent.process);

interface RowProperties {
  row: ListedRow;
  index: number;
  scroll: GridScroll;
  isCurrent: boolean;
  /** How long all calls took. */
  whole: number;
}

function Row({ row, index, scroll, isCurrent, whole }: RowProperties) {
  const known = row.kind === "thread" ? row.thread : row.row;
  const isOpen = row.node !== null;
  const hasMore = row.kind === "thread" || (row.row?.within ?? 0) > 0;
  const call = row.kind === "call" && row.row?.path === undefined ? row.row?.call : undefined;
  return (
    <GridRow
      scroll={scroll}
      of="treegrid"
      index={index}
      isCurrent={isCurrent}
      hasFailed={row.kind === "call" && row.row !== null && row.row.calls === 1 && row.row.failed > 0}
      aria-level={row.depth + 1}
      aria-expanded={hasMore ? isOpen : undefined}
      aria-selected={call !== undefined && calls.value.call === call && processOf(row) === processId.value}
      data-tree-call={call}
      data-process={processOf(row)}
      data-tree-thread={row.kind === "thread" ? row.thread.tid : undefined}
      data-depth={row.depth}
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
    </GridRow>
  );
}

function Told({ row }: { row: ListedRow }) {
  if (row.kind === "thread") {
    const { process: id, tid } = row.thread;
    const threads = summary.value?.processes.find((one) => one.process_id === id)?.threads;
    return (
      <b title={isOfAll.value ? processTitle.value(id) : undefined}>
        {isOfAll.value && (
          <>
            <bdi>{processName.value(id)}</bdi> ›{" "}
          </>
        )}
        <bdi>{threads?.find((one) => one.tid === tid)?.name ?? "thread"}</bdi> {tid}
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
