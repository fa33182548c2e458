// How far an element is scrolled, and how much of it is in sight: what a list makes its rows by.
import { type RefObject } from "preact";
import { type StateUpdater, useLayoutEffect, useState } from "preact/hooks";

/** In pixels. */
export interface ScrollPlace {
  top: number;
  height: number;
}

/** Of the element of `box`, whose height is followed; its place is `setPlace`'s, by whoever hears of scrolling. */
export function useScrollPlace(
  box: RefObject<HTMLElement | null>,
  height: number,
): [ScrollPlace, (place: StateUpdater<ScrollPlace>) => void] {
  const [place, setPlace] = useState({ top: 0, height });
  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () => setPlace({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  return [place, setPlace];
}
