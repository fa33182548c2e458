// The rows of the listing: only those in sight are made, and any number of them can be scrolled through.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Functions } from "../../api/graph.ts";
import { bindKeys } from "../../model/keys.ts";
import { listedBlock, pagesLoaded } from "../../model/listing/listing-pages.ts";
import type { ListingRows } from "../../model/listing/listing-rows.ts";
import { selectedBlock } from "../../model/selected.ts";
import { update } from "../../model/view-state.ts";
import { rowKeys, type Rows } from "../shell/row-keys.ts";
import { CodeRow } from "./code-row.tsx";

const ROW_HEIGHT = 19;
/** Browsers make nothing higher than some ten millions of pixels: beyond, the scroll bar stands for more than it measures. */
const MOST_HEIGHT = 8_000_000;
const MORE_ROWS = 6;

const pressKey = bindKeys<Rows & { block: number }>(
  "Listing",
  [
    ...rowKeys({ step: "Previous or next instruction" }),
    {
      key: "Enter",
      what: "The block in its function",
      run: ({ block }) => update({ view: "function", selection: { kind: "block", index: block } }),
    },
  ],
  { ignoresModifiers: true },
);

export function CodeTable({ rows, of }: { rows: ListingRows; of: Functions }) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const [column, setColumn] = useState({ place: -1, instruction: 0 });
  pagesLoaded.value;
  const full = rows.count * ROW_HEIGHT;
  const space = Math.min(full, MOST_HEIGHT);
  const ratio = space > height ? (full - height) / (space - height) : 1;
  const block = listedBlock.value;
  const place = block >= 0 ? rows.placeOf(block) : 0;
  const instruction = column.place === place ? column.instruction : 0;
  const current = rows.rowOf(place, instruction);

  const scrollTo = (pixels: number) => {
    const to = Math.min(Math.max(pixels, 0), Math.max(full - height, 0));
    setTop(to);
    box.current!.scrollTop = to / ratio;
  };
  useLayoutEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    setHeight(element.clientHeight);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const at = current * ROW_HEIGHT;
    if (at < top + ROW_HEIGHT || at > top + height - 2 * ROW_HEIGHT) {
      const isNear = Math.abs(at - top - height / 2) < height;
      scrollTo(!isNear ? at - height / 3 : at < top + ROW_HEIGHT ? at - ROW_HEIGHT : at - height + 2 * ROW_HEIGHT + 1);
    }
  }, [current, rows, height]);
  useEffect(() => {
    const element = box.current!;
    // With a bar that stands for more than it measures the wheel would go too far.
    const onWheel = (event: WheelEvent) => {
      if (ratio > 1) {
        event.preventDefault();
        scrollTo(top + event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? ROW_HEIGHT : 1));
      }
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  });

  const choose = (row: number) => {
    const to = rows.at(Math.min(Math.max(row, 0), rows.count - 1));
    setColumn({ place: to.place, instruction: Math.max(to.instruction, 0) });
    const index = rows.index.block[to.place];
    if (index !== selectedBlock.peek()) {
      update({ selection: { kind: "block", index } });
    }
  };
  const move = (step: number) => {
    let row = Math.min(Math.max(current + step, 0), rows.count - 1);
    // Heads of functions and gaps are stepped over.
    while (step < 0 && row > 0 && rows.at(row).kind !== "instruction") {
      row--;
    }
    choose(row);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(Math.floor(height / ROW_HEIGHT) - 2, 1);
    pressKey(event, { count: rows.count, page, move, block: rows.index.block[place] });
  };

  const first = Math.max(Math.floor(top / ROW_HEIGHT) - MORE_ROWS, 0);
  const last = Math.min(Math.ceil((top + height) / ROW_HEIGHT) + MORE_ROWS, rows.count);
  const shown = [];
  for (let row = first; row < last; row++) {
    const what = rows.at(row);
    shown.push(
      <div
        key={row}
        id={`listing-${row}`}
        role="option"
        aria-selected={row === current}
        aria-setsize={rows.count}
        aria-posinset={row + 1}
        data-kind={what.kind}
        data-block={rows.index.block[what.place]}
        data-of-selected={what.kind === "instruction" && what.place === place}
        class={`code-row ${what.kind}`}
        style={{ transform: `translateY(${row * ROW_HEIGHT - top}px)` }}
        onClick={() => choose(row)}
        onDblClick={() => update({ view: "function" })}
      >
        <CodeRow row={what} rows={rows} of={of} />
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class="code-table"
      role="listbox"
      aria-label="Listing"
      aria-activedescendant={current >= first && current < last ? `listing-${current}` : undefined}
      tabIndex={0}
      data-listing
      onKeyDown={onKeyDown}
      onScroll={(event) => {
        const at = event.currentTarget.scrollTop;
        // Not where it was put from here.
        if (Math.abs(at - top / ratio) > 1) {
          setTop(at * ratio);
        }
      }}
    >
      <div class="code-space" role="presentation" style={{ height: `${space}px` }}>
        <div class="code-sight" role="presentation" style={{ height: `${height}px` }}>
          {shown}
        </div>
      </div>
    </div>
  );
}
