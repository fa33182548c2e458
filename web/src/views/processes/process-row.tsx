// One row of the tree of processes: a program or a thread.
import { useEffect } from "preact/hooks";
import type { TraceSummary } from "../../api/traces.ts";
import { isBadEnd, isBadThreadEnd, processEnd, threadEnd } from "../../base/ends.ts";
import { formatDuration, formatInteger, formatShare, formatShort } from "../../base/format.ts";
import { loadPreview, previews } from "../../model/previews.ts";
import { activityOf, type TreeRow } from "../../model/process-tree.ts";
import { processId } from "../../model/session.ts";
import { threads } from "../../model/view-state.ts";
import { ThreadPreview } from "./thread-preview.tsx";

const INDENT = 16;
/** Deeper levels are no further in, so that there is place for names. */
const MOST_INDENT = 8;

interface Properties {
  row: TreeRow;
  index: number;
  height: number;
  trace: TraceSummary;
  isCurrent: boolean;
  isOpen: boolean;
  onToggle: () => void;
  onChoose: (event: MouseEvent) => void;
}

export function ProcessRow({ row, index, height, trace, isCurrent, isOpen, onToggle, onChoose }: Properties) {
  const { process, thread } = row;
  const isSame = process.process_id === processId.value;
  const chosen = threads.value;
  const isLookedAt = isSame && (thread ? (chosen?.includes(thread.tid) ?? false) : chosen === null);
  return (
    <div
      id={`process-row-${row.key}`}
      role="row"
      class={`tree-row${isCurrent ? " current" : ""}${thread ? " thread" : ""}`}
      aria-level={row.level}
      aria-rowindex={index + 2}
      aria-expanded={row.hasChildren ? isOpen : undefined}
      aria-selected={isLookedAt}
      data-process={process.process_id}
      data-thread={thread?.tid}
      style={{ transform: `translateY(${index * height}px)`, height: `${height}px` }}
      onClick={onChoose}
    >
      <div role="gridcell" class="cell process">
        <Name row={row} isOpen={isOpen} onToggle={onToggle} />
      </div>
      <div role="gridcell" class="cell start">
        {formatDuration(Math.max(row.started, 0))}
      </div>
      <div role="gridcell" class="cell end">
        <End row={row} />
      </div>
      <div role="gridcell" class="cell life">
        <Life row={row} whole={trace.ended - trace.started} />
      </div>
      <div role="gridcell" class="cell instructions" title={`${formatInteger(row.instructions)} instructions`}>
        {trace.mode === "coverage" ? (
          <span class="quiet">not counted</span>
        ) : (
          <>
            {formatShort(row.instructions)}
            <span class="quiet">{formatShare(row.instructions, trace.totals.instructions)}</span>
          </>
        )}
      </div>
      <div role="gridcell" class="cell per-second">
        {trace.mode === "coverage" ? "" : formatShort(activityOf(row))}
      </div>
      <div role="gridcell" class="cell picture">
        <Picture row={row} isSame={isSame} />
      </div>
    </div>
  );
}

function Name({ row, isOpen, onToggle }: { row: TreeRow; isOpen: boolean; onToggle: () => void }) {
  const { process, thread } = row;
  const program = process.executable.slice(process.executable.lastIndexOf("/") + 1);
  const [title, below] = thread
    ? [thread.name || "thread", `thread ${thread.tid}`]
    : [`${row.isLater ? "→ " : ""}${program}`, process.command.slice(1).join(" ")];
  return (
    <>
      <span style={{ width: `${INDENT * Math.min(row.level - 1, MOST_INDENT)}px` }} class="indent" />
      <button
        type="button"
        class="twist"
        tabIndex={-1}
        aria-hidden="true"
        disabled={!row.hasChildren}
        onClick={(event) => {
          event.stopPropagation();
          onToggle();
        }}
      >
        {row.hasChildren ? (isOpen ? "▾" : "▸") : ""}
      </button>
      <span class="names" title={thread ? thread.name : process.command.join(" ")}>
        <span class="title">
          <b>{title}</b> {!thread && <span class="quiet">{process.pid}</span>}
        </span>
        <span class="quiet below">{below}</span>
      </span>
      {row.lostRecords > 0 && (
        <span class="chip warning" title="Records of it that were dropped">
          {formatShort(row.lostRecords)} lost
        </span>
      )}
    </>
  );
}

function End({ row: { process, thread, follower, started, ended } }: { row: TreeRow }) {
  const isBad = thread ? isBadThreadEnd(thread.end, process) : isBadEnd(process);
  return (
    <>
      <span class={isBad ? "bad" : ""}>{thread ? threadEnd(thread.end, process) : processEnd(process, follower)}</span>
      <span class="quiet">after {formatDuration(Math.max(ended - started, 0))}</span>
    </>
  );
}

/** Its life on the axis of time of the whole recording. */
function Life({ row, whole }: { row: TreeRow; whole: number }) {
  const place = (ns: number) => Math.min(Math.max(ns / Math.max(whole, 1), 0), 1) * 100;
  const [from, to] = [place(row.started), place(row.ended)];
  return (
    <span class="axis" aria-hidden="true">
      <span class="span" style={{ left: `${from}%`, width: `max(${to - from}%, 2px)` }} />
    </span>
  );
}

function Picture({ row, isSame }: { row: TreeRow; isSame: boolean }) {
  const id = row.process.process_id;
  const found = previews.value.get(id);
  useEffect(() => {
    if (isSame) {
      loadPreview(id);
    }
  }, [isSame, id]);
  if (found instanceof Error) {
    return <span class="quiet">{found.message}</span>;
  }
  if (found) {
    const { thread, process } = row;
    const name = thread ? `thread ${thread.tid}` : `process ${process.pid}`;
    return <ThreadPreview of={found} tid={thread?.tid ?? null} name={name} />;
  }
  if (found === null) {
    return <span class="quiet">loading …</span>;
  }
  return (
    <button
      type="button"
      class="quiet"
      tabIndex={-1}
      aria-label={`Show the picture of process ${row.process.pid}`}
      onClick={(event) => {
        event.stopPropagation();
        loadPreview(id);
      }}
    >
      show
    </button>
  );
}
