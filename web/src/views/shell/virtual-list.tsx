// A list of any length of which only the rows in sight are made.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { bindKeys } from "../../model/keys.ts";
import { rowKeys, type Rows } from "./row-keys.ts";
import { useScrollPlace } from "./scroll-place.ts";

const MORE_ROWS = 8;

interface Properties {
  count: number;
  rowHeight: number;
  label: string;
  /** The row that is the current one, -1 for none: it is kept in sight. */
  current: number;
  onMove: (row: number) => void;
  onOpen?: (row: number) => void;
  row: (index: number) => ComponentChildren;
}

interface ListRows extends Rows {
  current: number;
  open: ((row: number) => void) | undefined;
}

const pressKey = bindKeys<ListRows>(
  "Tables",
  [
    ...rowKeys({ step: "Previous or next row" }),
    {
      key: "Enter",
      what: "Open the function",
      when: ({ current, open }) => current >= 0 && open !== undefined,
      run: ({ current, open }) => open?.(current),
    },
  ],
  { ignoresModifiers: true },
);

/** A listbox: arrows, Page, Home and End move the current row, Enter opens it. */
export function VirtualList({ count, rowHeight, label, current, onMove, onOpen, row }: Properties) {
  const box = useRef<HTMLDivElement>(null);
  const [scroll, setScroll] = useScrollPlace(box, 400);
  useLayoutEffect(() => {
    const element = box.current!;
    if (current < 0) {
      return;
    }
    const top = current * rowHeight;
    if (top < element.scrollTop) {
      element.scrollTop = top;
    } else if (top + rowHeight > element.scrollTop + element.clientHeight) {
      element.scrollTop = top + rowHeight - element.clientHeight;
    }
  }, [current, rowHeight]);
  const first = Math.max(Math.floor(scroll.top / rowHeight) - MORE_ROWS, 0);
  const last = Math.min(Math.ceil((scroll.top + scroll.height) / rowHeight) + MORE_ROWS, count);
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(Math.floor(scroll.height / rowHeight) - 1, 1);
    const move = (by: number) => onMove(Math.min(Math.max((current < 0 ? -1 : current) + by, 0), count - 1));
    pressKey(event, { count, page, move, current, open: onOpen });
  };
  const rows = [];
  for (let index = first; index < last; index++) {
    rows.push(
      <div
        key={index}
        id={`${label}-${index}`}
        role="option"
        aria-selected={index === current}
        aria-setsize={count}
        aria-posinset={index + 1}
        class="list-row"
        style={{ transform: `translateY(${index * rowHeight}px)`, height: `${rowHeight}px` }}
        onClick={() => onMove(index)}
        onDblClick={() => onOpen?.(index)}
      >
        {row(index)}
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class="list"
      role="listbox"
      aria-label={label}
      aria-activedescendant={current >= first && current < last ? `${label}-${current}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onScroll={(event) => setScroll({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <div class="list-space" style={{ height: `${count * rowHeight}px` }}>
        {rows}
      </div>
    </div>
  );
}
