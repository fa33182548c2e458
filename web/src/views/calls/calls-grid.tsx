// What the table and the tree of calls are made of: a head whose names sort, and rows of which only those in sight are made.
import type { ComponentChildren, HTMLAttributes, RefObject } from "preact";
import { useRef } from "preact/hooks";
import { type FarScroll, useFarScroll } from "../shell/far-scroll.ts";
import type { Rows } from "../shell/row-keys.ts";

const ROW_HEIGHT = 22;
const HEAD_HEIGHT = 24;

export interface Column<Sort> {
  name: string;
  /** By what it sorts; null: it doesn't. */
  sort: Sort | null;
  /** What tells that. */
  title?: string;
  isNumber?: boolean;
  /** Whether who sorts by it looks for the largest first. */
  isLargestFirst?: boolean;
}

export interface Sorted<Sort> {
  sort: Sort;
  isDescending: boolean;
}

/** The box that scrolls, and what is in sight of `count` rows. */
export interface GridScroll extends FarScroll {
  box: RefObject<HTMLDivElement | null>;
  count: number;
}

export function useGridScroll(count: number): GridScroll {
  const box = useRef<HTMLDivElement>(null);
  return { ...useFarScroll(box, count, ROW_HEIGHT, HEAD_HEIGHT), box, count };
}

interface GridProperties<Sort> {
  scroll: GridScroll;
  role: "grid" | "treegrid";
  label: string;
  class: string;
  columns: readonly Column<Sort>[];
  sorted: Sorted<Sort>;
  onSort: (sorted: Sorted<Sort>) => void;
  /** The row that the keyboard is at, and what brings it to another one. */
  at: number;
  onMove: (row: number) => void;
  onKey: (event: KeyboardEvent, rows: Rows) => void;
  /** A row, as GridRow makes it; null for none. */
  row: (index: number) => ComponentChildren;
}

export function CallsGrid<Sort extends string>(properties: GridProperties<Sort>) {
  const { scroll, role, label, columns, sorted, onSort, at, onMove, onKey, row } = properties;
  const { box, count, first, last } = scroll;
  const move = (by: number) => onMove(Math.min(Math.max(at + by, 0), count - 1));
  const rows = [];
  for (let index = first; index < last; index++) {
    rows.push(row(index));
  }
  return (
    <div
      ref={box}
      class={`calls-grid ${properties.class}`}
      role={role}
      aria-label={label}
      aria-rowcount={count + 1}
      aria-activedescendant={at >= first && at < last ? idOf(role, at) : undefined}
      tabIndex={0}
      data-rows={count}
      onKeyDown={(event) => event.target === event.currentTarget && onKey(event, { count, page: scroll.page, move })}
      onScroll={scroll.onScroll}
    >
      <div role="rowgroup" class="grid-head">
        <div class="grid-row head" role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <ColumnHead key={column.name} column={column} sorted={sorted} onSort={onSort} />
          ))}
        </div>
      </div>
      <div role="rowgroup" class="grid-space" style={{ height: `${scroll.space}px` }}>
        <div role="presentation" class="grid-sight" style={{ height: `${Math.min(scroll.height, scroll.space)}px` }}>
          {rows}
        </div>
      </div>
      {count === 0 && <p class="waiting">No call is like that.</p>}
    </div>
  );
}

const idOf = (role: string, index: number) => `${role}-row-${index}`;

type RowAttributes = Omit<HTMLAttributes<HTMLDivElement>, "class" | "style" | "role" | "id"> & {
  [name: `data-${string}`]: string | number | undefined;
};

interface RowProperties extends RowAttributes {
  scroll: GridScroll;
  of: "grid" | "treegrid";
  index: number;
  isCurrent: boolean;
  hasFailed?: boolean;
  isHere?: boolean;
  children: ComponentChildren;
}

export function GridRow({ scroll, of, index, isCurrent, hasFailed, isHere, children, ...rest }: RowProperties) {
  const classes = ["grid-row", isCurrent && "current", hasFailed && "failed", isHere && "here"];
  return (
    <div
      {...rest}
      id={idOf(of, index)}
      class={classes.filter(Boolean).join(" ")}
      role="row"
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${index * ROW_HEIGHT - scroll.top}px)` }}
    >
      {children}
    </div>
  );
}

function ColumnHead<Sort extends string>({
  column: { name, sort, title, isNumber, isLargestFirst },
  sorted,
  onSort,
}: {
  column: Column<Sort>;
  sorted: Sorted<Sort>;
  onSort: (sorted: Sorted<Sort>) => void;
}) {
  const isSorted = sort !== null && sorted.sort === sort;
  const direction = !isSorted ? "none" : sorted.isDescending ? "descending" : "ascending";
  return (
    <div role="columnheader" class={isNumber ? "number" : ""} aria-sort={sort === null ? undefined : direction}>
      {sort === null ? (
        name
      ) : (
        <button
          type="button"
          title={title}
          onClick={() => onSort({ sort, isDescending: isSorted ? !sorted.isDescending : isLargestFirst === true })}
        >
          {name}
          <span aria-hidden="true">{isSorted ? (sorted.isDescending ? " ▾" : " ▴") : ""}</span>
        </button>
      )}
    </div>
  );
}
