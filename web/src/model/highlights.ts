// Highlight sets: functions and blocks that a reader has named and coloured. Kept by the browser for each process of each
// trace, since indices mean nothing in another.
import { computed, effect, signal } from "@preact/signals";
import { CATEGORIES, type Rgb } from "../base/color.ts";
import { functions, processId, summary } from "./session.ts";

export interface HighlightSet {
  name: string;
  color: Rgb;
  /** Indices. */
  functions: number[];
  blocks: number[];
}

const KEY = "clew.highlights";
const MOST_SETS = 32;
const MOST_NAME = 60;

export const highlights = signal<HighlightSet[]>([]);

/** The colour of each function that is in a set; of several sets the first has it. */
export const functionColors = computed<ReadonlyMap<number, HighlightSet>>(() => {
  const found = new Map<number, HighlightSet>();
  for (const set of highlights.value) {
    for (const index of set.functions) {
      if (!found.has(index)) {
        found.set(index, set);
      }
    }
  }
  return found;
});

/** Add a set, in the first colour that no other has. */
export function addHighlight(name: string, of: { functions?: number[]; blocks?: number[] }): void {
  if (highlights.value.length >= MOST_SETS) {
    return;
  }
  const used = new Set(highlights.value.map((set) => set.color.join()));
  const color =
    CATEGORIES.find((one) => !used.has(one.join())) ?? CATEGORIES[highlights.value.length % CATEGORIES.length];
  const set = { name: name.slice(0, MOST_NAME), color, functions: of.functions ?? [], blocks: of.blocks ?? [] };
  highlights.value = [...highlights.value, set];
}

export function changeHighlight(index: number, change: Partial<Pick<HighlightSet, "name" | "color">>): void {
  highlights.value = highlights.value.map((set, i) => (i === index ? { ...set, ...change } : set));
}

export function removeHighlight(index: number): void {
  highlights.value = highlights.value.filter((_, i) => i !== index);
}

/** Sets as they were stored; what is damaged, or names what there is not, is left out. */
export function parseHighlights(text: string | null, nFunctions: number, nBlocks: number): HighlightSet[] {
  let stored: unknown;
  try {
    stored = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(stored)) {
    return [];
  }
  const found: HighlightSet[] = [];
  for (const one of stored.slice(0, MOST_SETS) as Partial<HighlightSet>[]) {
    if (one !== null && typeof one === "object" && typeof one.name === "string" && isColor(one.color)) {
      found.push({
        name: one.name.slice(0, MOST_NAME),
        color: one.color,
        functions: indicesIn(one.functions, nFunctions),
        blocks: indicesIn(one.blocks, nBlocks),
      });
    }
  }
  return found;
}

function isColor(value: unknown): value is Rgb {
  return (
    Array.isArray(value) &&
    value.length === 3 &&
    value.every((part) => typeof part === "number" && part >= 0 && part <= 1)
  );
}

function indicesIn(value: unknown, n: number): number[] {
  return Array.isArray(value) ? value.filter((index) => Number.isInteger(index) && index >= 0 && index < n) : [];
}

/** Load the sets of the process that is looked at, and keep them when they change. */
export function keepHighlights(): void {
  let key: string | null = null;
  effect(() => {
    const of = functions.value;
    const trace = summary.value;
    key = null;
    if (of && trace && of.processId === processId.value) {
      const own = `${KEY}.${trace.name}.${trace.start_ns}.${of.processId}`;
      highlights.value = parseHighlights(read(own), of.count, of.nBlocks);
      key = own;
    }
  });
  effect(() => {
    const sets = highlights.value;
    if (key !== null) {
      write(key, sets);
    }
  });
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, sets: HighlightSet[]): void {
  try {
    if (sets.length > 0) {
      localStorage.setItem(key, JSON.stringify(sets));
    } else {
      localStorage.removeItem(key);
    }
  } catch {
    // Private windows may refuse; then they hold until the page is closed.
  }
}
