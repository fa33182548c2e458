// Colours for data: chosen so that those who do not tell red from green see the same order (rising lightness).

export type Rgb = readonly [number, number, number];

/** Dark blue over magenta and orange to pale yellow; its lightness rises all the way. */
const HEAT_STOPS: readonly Rgb[] = [
  [0.25, 0.22, 0.6],
  [0.46, 0.2, 0.66],
  [0.69, 0.22, 0.58],
  [0.86, 0.3, 0.38],
  [0.96, 0.51, 0.26],
  [0.98, 0.75, 0.33],
  [1.0, 0.96, 0.65],
];

/** The colour of the most executed block. */
export const HEAT_TOP: Rgb = HEAT_STOPS[HEAT_STOPS.length - 1];

/** The colour of what was not executed. */
export const COLD: Rgb = [0.25, 0.28, 0.34];

/** The colour of what was not counted, so that nobody knows whether it was executed. */
export const UNCOUNTED: Rgb = [0.47, 0.41, 0.33];

/** Okabe and Ito's palette, without black: eight colours that nearly everybody tells apart. */
export const CATEGORIES: readonly Rgb[] = [
  [0.34, 0.71, 0.91],
  [0.9, 0.62, 0.0],
  [0.0, 0.62, 0.45],
  [0.8, 0.47, 0.65],
  [0.94, 0.89, 0.26],
  [0.84, 0.37, 0.0],
  [0.0, 0.45, 0.7],
  [0.6, 0.6, 0.6],
];

/** The colour at `t`, 0 to 1, of the ramp of heat. */
export function heatColor(t: number): Rgb {
  const at = Math.min(Math.max(t, 0), 1) * (HEAT_STOPS.length - 1);
  const low = Math.min(Math.floor(at), HEAT_STOPS.length - 2);
  const part = at - low;
  const [a, b] = [HEAT_STOPS[low], HEAT_STOPS[low + 1]];
  return [a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part, a[2] + (b[2] - a[2]) * part];
}

/** Where `executions` stand from 0 to 1 on a scale of logarithms that ends at `most`; below 0 for none. */
export function heatOf(executions: number, most: number): number {
  if (executions <= 0) {
    return -1;
  }
  return most <= 1 ? 1 : Math.log(executions) / Math.log(most);
}

/** The same as a byte: 1 to 255, and 0 for none. */
export function heatByte(executions: number, most: number): number {
  const heat = heatOf(executions, most);
  return heat < 0 ? 0 : 1 + Math.round(254 * heat);
}

/** `#rrggbb`. */
export function toHex(color: Rgb): string {
  return `#${color
    .map((part) =>
      Math.round(part * 255)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("")}`;
}

/** Black or white, whichever is read better on `color` (WCAG 2, relative luminance). */
export function textOn(color: Rgb): "#000000" | "#ffffff" {
  const [r, g, b] = color.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/** Deep blue over green to pale yellow, its lightness rising too: for amounts that are not executions, such as times. */
const AMOUNT_STOPS: readonly Rgb[] = [
  [0.17, 0.24, 0.55],
  [0.15, 0.42, 0.66],
  [0.13, 0.58, 0.6],
  [0.35, 0.73, 0.46],
  [0.72, 0.84, 0.36],
  [0.99, 0.93, 0.55],
];

/** The colour at `t`, 0 to 1, of the ramp of amounts. */
export function amountColor(t: number): Rgb {
  const at = Math.min(Math.max(t, 0), 1) * (AMOUNT_STOPS.length - 1);
  const low = Math.min(Math.floor(at), AMOUNT_STOPS.length - 2);
  return mixColors(AMOUNT_STOPS[low], AMOUNT_STOPS[low + 1], at - low);
}

/** The colour at `t`, 0 to 1, between two. */
export function mixColors(a: Rgb, b: Rgb, t: number): Rgb {
  return [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t];
}
