// The picture that is on the screen, as what makes files of pictures knows it.
import { signal } from "@preact/signals";

export interface ShownPicture {
  name: "graph" | "function" | "calls";
  /** Its size on the screen, in CSS pixels. */
  size: () => { width: number; height: number };
  /** All of it at `ratio` pixels by CSS pixel, with its ground. Rejects with an Error where it can't be drawn. */
  paint: (ratio: number) => Promise<HTMLCanvasElement>;
  /** As SVG, a document. Throws an Error that says why where it would have too many elements. */
  svg: () => string;
  /** Null where a replay changes nothing in it. */
  follow: FollowPicture | null;
}

/**
 * After every frame `onFrame` is given what draws that, at once, to a canvas of some width and height. What is returned
 * ends it.
 */
export type FollowPicture = (
  onFrame: (draw: (context: CanvasRenderingContext2D, width: number, height: number) => void) => void,
) => () => void;

/** Null where no picture is shown, or it can't be drawn. */
export const shownPicture = signal<ShownPicture | null>(null);

/** More elements are too much for what opens an SVG. */
export const MOST_ELEMENTS = 20_000;

/** Throws an Error that says what to do instead if an SVG of so many elements would be too large. */
export function refuseTooMany(n: number, what: string): void {
  if (n > MOST_ELEMENTS) {
    throw new Error(
      `${n.toLocaleString("en-US")} ${what} are too many for an SVG, which may have ` +
        `${MOST_ELEMENTS.toLocaleString("en-US")}: come nearer, fold or filter; or take the PNG`,
    );
  }
}

/** An SVG of a size, of what is inside of it, on a ground. */
export function svgDocument(width: number, height: number, ground: string, content: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(width)}" height="${Math.ceil(height)}" ` +
      `viewBox="0 0 ${Math.ceil(width)} ${Math.ceil(height)}">`,
    `<rect width="100%" height="100%" fill="${ground}"/>`,
    ...content,
    "</svg>\n",
  ].join("\n");
}
