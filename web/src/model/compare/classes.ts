// What a thing that two runs are compared in is: only in one, as often in both, more often in one. Colours, words. Pure.
import { CATEGORIES, COLD, mixColors, type Rgb } from "../../base/color.ts";
import { formatInteger, formatShort } from "../../base/format.ts";

export const CLASSES = ["onlyA", "onlyB", "lessInB", "same", "moreInB", "unknown", "neither"] as const;
export type CompareClass = (typeof CLASSES)[number];

/** From where on a ratio has the strongest colour. */
const FULL_RATIO = 100;

const SAME: Rgb = CATEGORIES[7];
const LESS: Rgb = CATEGORIES[6];
const MORE: Rgb = CATEGORIES[4];
/** Blue is A's, orange to yellow B's: nearly everybody tells these apart, and each also has a sign. */
export const CLASS_COLORS: Record<CompareClass, Rgb> = {
  onlyA: CATEGORIES[0],
  onlyB: CATEGORIES[5],
  lessInB: LESS,
  same: SAME,
  moreInB: MORE,
  unknown: CATEGORIES[3],
  neither: COLD,
};

export const CLASS_WORDS: Record<CompareClass, string> = {
  onlyA: "only in A",
  onlyB: "only in B",
  lessInB: "in both, less often in B",
  same: "in both, as often",
  moreInB: "in both, more often in B",
  unknown: "not comparable",
  neither: "not executed",
};

/** A letter or sign for each, beside its colour: nobody needs to tell colours apart. */
export const CLASS_SIGNS: Record<CompareClass, string> = {
  onlyA: "A",
  onlyB: "B",
  lessInB: "<",
  same: "=",
  moreInB: ">",
  unknown: "?",
  neither: "",
};

/** What something is that A executed `a` times, and B `b` times. */
export function classOf(a: number, b: number, isComparable: boolean): CompareClass {
  if (a <= 0 && b <= 0) {
    return "neither";
  }
  if (!isComparable) {
    return "unknown";
  }
  if (b <= 0) {
    return "onlyA";
  }
  if (a <= 0) {
    return "onlyB";
  }
  return a === b ? "same" : a < b ? "moreInB" : "lessInB";
}

/** Its colour: of what both executed the stronger the farther apart they are. */
export function colorOf(a: number, b: number, isComparable: boolean): Rgb {
  const kind = classOf(a, b, isComparable);
  if (kind !== "moreInB" && kind !== "lessInB") {
    return CLASS_COLORS[kind];
  }
  const apart = Math.min(Math.abs(Math.log(b / a)) / Math.log(FULL_RATIO), 1);
  return mixColors(SAME, CLASS_COLORS[kind], 0.35 + 0.65 * apart);
}

/** How many times A's number B's is: `×2.5`; "only A" where B has none. */
export function ratioWords(a: number, b: number): string {
  if (a === b) {
    return a > 0 ? "×1" : "";
  }
  if (a <= 0) {
    return "only B";
  }
  if (b <= 0) {
    return "only A";
  }
  const ratio = b / a;
  const rounded = Number(ratio.toPrecision(3));
  // What is not the same is not told as if it were.
  return rounded === 1
    ? ratio > 1
      ? "×1.00+"
      : "×1.00−"
    : ratio >= 1e6
      ? `×${formatShort(ratio)}`
      : rounded < 1e-3
        ? `×${rounded.toExponential()}`
        : `×${rounded}`;
}

/** How often a function was entered in each, short: `A ×10, B ×25`; nothing of one that did not. */
export function entriesWords(a: number, b: number): string {
  const words = [a > 0 ? `A ×${formatShort(a)}` : "", b > 0 ? `B ×${formatShort(b)}` : ""];
  return words.filter((word) => word !== "").join(", ");
}

/** Both numbers and what they are to each other, in one line. */
export function countsWords(a: number, b: number, isComparable: boolean): string {
  const words = `A ${formatInteger(a)}, B ${formatInteger(b)}`;
  const kind = classOf(a, b, isComparable);
  return kind === "moreInB" || kind === "lessInB" ? `${words}, ${ratioWords(a, b)}` : `${words}, ${CLASS_WORDS[kind]}`;
}
