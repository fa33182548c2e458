// The view "Processes": the tree of processes and threads, with their lives on one axis of time and small pictures of
// what they executed. Of any number of rows only those in sight are made.
import { signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { bindKeys } from "../../model/keys.ts";
import { type ProcessOrder, type TreeRow, treeRows } from "../../model/process-tree.ts";
import { process, processId, summary } from "../../model/session.ts";
import { threads, update, viewState } from "../../model/view-state.ts";
import { rowKeys, type Rows } from "../shell/row-keys.ts";
import { useScrollPlace } from "../shell/scroll-place.ts";
import { ProcessRow } from "./process-row.tsx";

const ROW_HEIGHT = 46;
const HEAD_HEIGHT = 28;
const MORE_ROWS = 4;

const order = signal<ProcessOrder>("start");
const isDescending = signal(false);
const isFlat = signal(false);
const closed = signal<ReadonlySet<string>>(new Set());
/** The key of the row that the keyboard is at. */
const current = signal<string | null>(null);

/** Columns: by what they sort (null: they don't), what they are called, and what they tell. */
const COLUMNS: [ProcessOrder | null, string, string][] = [
  ["id", "Process", "Sort by id"],
  ["start", "Start", "Sort by start"],
  [null, "End", ""],
  [null, "Life", ""],
  ["instructions", "Instructions", "Sort by instructions executed"],
  ["activity", "Per second", "Sort by activity: instructions in a second of its life"],
  [null, "Picture", ""],
];

interface Tree extends Rows {
  row: TreeRow | undefined;
  /** Make this row the current one. */
  moveTo: (row: number) => void;
  /** Look at the current row; `adds` it to what is looked at, or takes it away. */
  choose: (adds: boolean) => void;
}

const OPEN = "Close a row, or open it";
const LOOK = "Look at the process or thread";
const ADD = "Add a thread to those looked at, or take it away";
const hasRow = ({ row }: Tree) => row !== undefined;
const look = { what: LOOK, when: hasRow, run: ({ choose }: Tree) => choose(false) };
const add = { what: ADD, when: hasRow, run: ({ choose }: Tree) => choose(true) };
const pressKey = bindKeys<Tree>(
  "Processes",
  [
    ...rowKeys({ step: "Previous or next row" }),
    { key: "ArrowLeft", what: OPEN, when: hasRow, run: closeRow },
    { key: "ArrowRight", what: OPEN, when: ({ row }) => row?.hasChildren === true, run: openRow },
    { key: "Enter", ...look },
    { key: " ", ...look },
    { key: "Shift+Enter", ...add },
    { key: "Shift+ ", ...add },
    { key: "Ctrl+Enter", ...add },
    { key: "Ctrl+ ", ...add },
  ],
  { ignoresModifiers: true },
);

/** Open the current row; of one that is open, go to the first row in it. */
function openRow({ row, move }: Tree): void {
  if (closed.value.has(row!.key)) {
    toggle(row!.key);
  } else {
    move(1);
  }
}

/** Close the current row; of one that is closed, go to that in which it is. */
function closeRow({ row, moveTo }: Tree): void {
  if (row!.hasChildren && !closed.value.has(row!.key)) {
    toggle(row!.key);
  } else if (row!.parent >= 0) {
    moveTo(row!.parent);
  }
}

export function ProcessesView() {
  const trace = summary.value!;
  const box = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useScrollPlace(box, 600);
  const options = { order: order.value, isDescending: isDescending.value, isFlat: isFlat.value, closed: closed.value };
  const rows = useMemo(
    () => treeRows(trace.processes, options),
    [trace, order.value, isDescending.value, isFlat.value, closed.value],
  );
  const at = rows.findIndex((row) => row.key === current.value);
  const moveTo = (row: number) => {
    const target = Math.min(Math.max(row, 0), rows.length - 1);
    if (target < 0) {
      return;
    }
    current.value = rows[target].key;
    const element = box.current!;
    const [top, height] = [target * ROW_HEIGHT, element.clientHeight - HEAD_HEIGHT];
    if (top < element.scrollTop) {
      element.scrollTop = top;
    } else if (top + ROW_HEIGHT > element.scrollTop + height) {
      element.scrollTop = top + ROW_HEIGHT - height;
    }
  };
  useLayoutEffect(() => {
    const row = rows.findIndex((one) => one.process.process_id === processId.value);
    current.value = rows[row]?.key ?? null;
    // With a little of what is above it.
    box.current!.scrollTop = (row - 4) * ROW_HEIGHT;
  }, []);
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    // Another order is read from its top.
    if (!isFirst.current) {
      box.current!.scrollTop = 0;
    }
    isFirst.current = false;
  }, [order.value, isDescending.value, isFlat.value]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target === event.currentTarget) {
      pressKey(event, {
        count: rows.length,
        page: Math.max(Math.floor((scroll.height - HEAD_HEIGHT) / ROW_HEIGHT) - 1, 1),
        move: (by) => moveTo(at + by),
        moveTo,
        row: rows[at],
        choose: (adds) => choose(rows, at, adds, false),
      });
    }
  };
  const first = Math.max(Math.floor(scroll.top / ROW_HEIGHT) - MORE_ROWS, 0);
  const last = Math.min(Math.ceil((scroll.top + scroll.height) / ROW_HEIGHT) + MORE_ROWS, rows.length);
  return (
    <div class="view processes">
      <ProcessesBar nRows={rows.length} />
      <div
        ref={box}
        class="tree"
        role="treegrid"
        aria-label="Processes and threads"
        aria-rowcount={rows.length + 1}
        aria-multiselectable={true}
        aria-activedescendant={at >= first && at < last ? `process-row-${rows[at].key}` : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onScroll={(event) =>
          setScroll({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })
        }
      >
        <div class="tree-head" role="rowgroup">
          <div class="tree-row head" role="row" aria-rowindex={1}>
            {COLUMNS.map((column) => (
              <ColumnHead key={column[1]} column={column} />
            ))}
          </div>
        </div>
        <div class="tree-space" role="rowgroup" style={{ height: `${rows.length * ROW_HEIGHT}px` }}>
          {rows.slice(first, last).map((row, index) => (
            <ProcessRow
              key={row.key}
              row={row}
              index={first + index}
              height={ROW_HEIGHT}
              trace={trace}
              isCurrent={row.key === current.value}
              isOpen={!closed.value.has(row.key)}
              onToggle={() => toggle(row.key)}
              onChoose={(event) => {
                current.value = row.key;
                choose(rows, first + index, event.ctrlKey || event.metaKey, event.shiftKey);
              }}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

function ProcessesBar({ nRows }: { nRows: number }) {
  const trace = summary.value!;
  const nThreads = trace.processes.reduce((sum, one) => sum + one.threads.length, 0);
  const chosen = threads.value;
  return (
    <div class="bar">
      <span>
        {trace.processes.length === 1 ? "1 program" : `${trace.processes.length} programs`},{" "}
        {nThreads === 1 ? "1 thread" : `${nThreads} threads`}
      </span>
      <label>
        <input
          type="checkbox"
          checked={!isFlat.value}
          onChange={(event) => (isFlat.value = !event.currentTarget.checked)}
        />{" "}
        Tree
      </label>
      <button type="button" disabled={chosen === null} onClick={() => update({ threads: null })}>
        All threads
      </button>
      <span class="quiet" role="status">
        {process.value && `Looked at: pid ${process.value.pid}, `}
        {chosen === null ? "all its threads" : chosen.length === 1 ? `thread ${chosen[0]}` : `${chosen.length} threads`}
      </span>
      <span class="quiet end">{nRows === 1 ? "1 row" : `${nRows} rows`} · Ctrl or Shift chooses several threads</span>
    </div>
  );
}

function ColumnHead({ column: [by, name, title] }: { column: (typeof COLUMNS)[number] }) {
  const isSorted = by !== null && order.value === by;
  const sort = () => {
    if (isSorted) {
      isDescending.value = !isDescending.value;
    } else if (by !== null) {
      order.value = by;
      // Who looks for instructions looks for many.
      isDescending.value = by === "instructions" || by === "activity";
    }
  };
  return (
    <div
      role="columnheader"
      class={`cell ${name.toLowerCase().replace(" ", "-")}`}
      aria-sort={by === null ? undefined : !isSorted ? "none" : isDescending.value ? "descending" : "ascending"}
    >
      {by === null ? (
        name
      ) : (
        <button type="button" title={title} onClick={sort}>
          {name}
          <span aria-hidden="true">{isSorted ? (isDescending.value ? " ▾" : " ▴") : ""}</span>
        </button>
      )}
    </div>
  );
}

function toggle(key: string): void {
  const next = new Set(closed.value);
  if (!next.delete(key)) {
    next.add(key);
  }
  closed.value = next;
}

/** Look at a process, or at a thread of one; `adds` it to the threads looked at or takes it away, `extends` up to it. */
function choose(rows: readonly TreeRow[], at: number, adds: boolean, extendsTo: boolean): void {
  const { process: chosen, thread } = rows[at];
  const isSame = chosen.process_id === processId.value;
  const before = isSame ? viewState.value.threads : null;
  let next: readonly number[] | null = thread ? [thread.tid] : null;
  if (thread && adds && before) {
    const others = before.filter((tid) => tid !== thread.tid);
    next = others.length === before.length ? [...before, thread.tid] : others.length > 0 ? others : null;
  } else if (thread && extendsTo && before) {
    const own = rows.flatMap((row, index) =>
      row.thread && row.process === chosen ? [{ tid: row.thread.tid, index }] : [],
    );
    const from = own.find((one) => one.tid === before[0])?.index ?? at;
    const [low, high] = [Math.min(from, at), Math.max(from, at)];
    const between = own.filter(({ index }) => index >= low && index <= high).map(({ tid }) => tid);
    next = [before[0], ...between.filter((tid) => tid !== before[0])];
  }
  update(
    isSame
      ? { threads: next }
      : { process: chosen.process_id, threads: next, selection: null, cursor: null, camera: null, range: null },
  );
}
