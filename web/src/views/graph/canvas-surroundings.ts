// What is around the picture in the page: what lies over it, and the theme's colours.
import type { Rgb } from "../../base/color.ts";
import type { Rectangle } from "../../base/label-placement.ts";
import type { LabelColors } from "./labels-layer.ts";
import { themeColors, themeVariables } from "../theme-variables.ts";

const FIT_PADDING = { top: 30, right: 40, bottom: 30, left: 40 };

/** What a picture lies in, with its bar and its legend; of two pictures beside each other the same. */
export function viewOf(box: HTMLElement): HTMLElement {
  return box.closest<HTMLElement>(".graph-view") ?? box;
}

/** Where an element is, from the left and the top of another. */
export function within(element: Element, box: Element): Rectangle {
  const [a, b] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
  return { left: a.left - b.left, top: a.top - b.top, width: a.width, height: a.height };
}

/** What lies over the picture: labels keep off it. */
export function findOverlays(box: HTMLElement): Rectangle[] {
  return [...viewOf(box).querySelectorAll("[data-overlay]")].map((one) => within(one, box));
}

/** What "fit" leaves free: the bar over the picture, what lies at its right, and a little for labels. */
export function fitPadding(box: HTMLElement): typeof FIT_PADDING {
  const bar = viewOf(box).querySelector(".graph-toolbar");
  const beside = viewOf(box).querySelector<HTMLElement>(".live-panel");
  return {
    ...FIT_PADDING,
    top: FIT_PADDING.top + (bar ? Math.max(within(bar, box).top + within(bar, box).height, 0) : 0),
    right: FIT_PADDING.right + (beside?.offsetWidth ?? 0),
  };
}

export function labelColors(box: HTMLElement): LabelColors {
  return themeColors(box, ["text", "quiet", "panel", "line", "accent", "glow"]);
}

/** The theme's ground, as WebGL takes it. */
export function groundColor(box: HTMLElement): Rgb {
  const text = themeVariables(box)("--ground");
  const found = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text);
  return found ? ([1, 2, 3].map((i) => parseInt(found[i], 16) / 255) as [number, number, number]) : [0, 0, 0];
}
