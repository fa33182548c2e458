// Scrolling through any number of rows of one height, of which only those in sight are made.
import { type RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Browsers make nothing higher than some ten millions of pixels: beyond, the bar stands for more than it measures. */
const MOST_HEIGHT = 8_000_000;
const MORE_ROWS = 6;

export interface FarScroll {
  /** Of the box what is below its head, px, and what is in front of the first pixel in sight. */
  height: number;
  top: number;
  /** The height of what the bar measures, px. */
  space: number;
  /** Rows that are made: from `first` up to `last`. */
  first: number;
  last: number;
  /** Rows that are whole in sight. */
  page: number;
  /** Have a row in sight, if it is not. */
  show: (row: number) => void;
  onScroll: () => void;
}

/** `head`: how much of the box stays above the rows, px. */
export function useFarScroll(
  box: RefObject<HTMLElement | null>,
  count: number,
  rowHeight: number,
  head: number,
): FarScroll {
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(300);
  const full = count * rowHeight;
  const space = Math.min(full, MOST_HEIGHT);
  const most = Math.max(full - height, 0);
  const ratio = space > height && space < full ? most / (space - height) : 1;
  const at = Math.min(top, most);
  const scrollTo = (pixels: number) => {
    const to = Math.min(Math.max(pixels, 0), most);
    setTop(to);
    if (box.current) {
      box.current.scrollTop = to / ratio;
    }
  };
  const observed = useRef<{ element: HTMLElement | null; stop: () => void }>({ element: null, stop: () => undefined });
  // The box may come later than who scrolls it, and another one in its place.
  useLayoutEffect(() => {
    const element = box.current;
    if (element === observed.current.element) {
      return;
    }
    observed.current.stop();
    const observer = new ResizeObserver(() => setHeight(Math.max((element?.clientHeight ?? 0) - head, rowHeight)));
    if (element) {
      observer.observe(element);
      setHeight(Math.max(element.clientHeight - head, rowHeight));
    }
    observed.current = { element, stop: () => observer.disconnect() };
  });
  useEffect(() => () => observed.current.stop(), []);
  useEffect(() => {
    const element = box.current;
    // With a bar that stands for more than it measures the wheel would go too far.
    const onWheel = (event: WheelEvent) => {
      if (ratio > 1 && !event.ctrlKey && Math.abs(event.deltaY) > Math.abs(event.deltaX)) {
        event.preventDefault();
        scrollTo(at + event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? rowHeight : 1));
      }
    };
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
  });
  return {
    height,
    top: at,
    space,
    first: Math.max(Math.floor(at / rowHeight) - MORE_ROWS, 0),
    last: Math.min(Math.ceil((at + height) / rowHeight) + MORE_ROWS, count),
    page: Math.max(Math.floor(height / rowHeight) - 1, 1),
    show: (row) => {
      const place = row * rowHeight;
      if (place < at || place + rowHeight > at + height) {
        const isNear = Math.abs(place - at - height / 2) < height;
        scrollTo(!isNear ? place - height / 3 : place < at ? place : place + rowHeight - height);
      }
    },
    onScroll: () => {
      const place = box.current?.scrollTop ?? 0;
      // Not where it was put from here.
      if (Math.abs(place - at / ratio) > 1) {
        setTop(Math.min(place * ratio, most));
      }
    },
  };
}
