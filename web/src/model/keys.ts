// The keys of the page: what they do is told where they are bound, and that is what the help lists, so that neither is
// ever without the other. Nothing else looks at which key was pressed.
import { computed, signal } from "@preact/signals";

/** Parts of the page that have keys, as the help lists them. */
export const KEY_GROUPS = [
  "Everywhere",
  "Tables",
  "Panels",
  "Search",
  "Graph",
  "Function",
  "Listing",
  "Processes",
  "Calls",
  "Calls over time",
  "Tree of calls",
  "Compare",
  "Lanes of the timeline",
  "Timeline",
  "Program that runs",
] as const;
export type KeyGroup = (typeof KEY_GROUPS)[number];

/** A key as `event.key` names it ("f", "?", "ArrowLeft"), with "Ctrl+", "Alt+" or "Shift+" in front, in that order. */
export interface DescribedKey {
  key: string;
  /** What it does, for the help: "Fit the picture". */
  what: string;
}

/** A key that is heard wherever the focus is. */
export interface Key extends DescribedKey {
  run: () => void;
}

/** A key of a part of the page that has the focus, and what it does on what that part hands over. */
export interface Binding<On> extends DescribedKey {
  /** Whether it does anything now; others hear it if not. */
  when?: (on: On) => boolean;
  run: (on: On) => void;
  /** Others hear the key all the same, and the browser does with it what it would. */
  goesOn?: boolean;
}

interface Entry {
  group: KeyGroup;
  keys: readonly (DescribedKey & { run?: () => void })[];
}

/** A line of the help: one thing, and all keys that do it. */
export interface HelpLine {
  keys: string[];
  what: string;
}

const entries = signal<readonly Entry[]>([]);

/** All keys by group, of the groups that have any. */
export const keyHelp = computed<{ group: KeyGroup; lines: HelpLine[] }[]>(() =>
  KEY_GROUPS.map((group) => ({ group, lines: linesOf(group) })).filter(({ lines }) => lines.length > 0),
);

function linesOf(group: KeyGroup): HelpLine[] {
  const lines: HelpLine[] = [];
  for (const { key, what } of entries.value.flatMap((entry) => (entry.group === group ? entry.keys : []))) {
    const line = lines.find((one) => one.what === what);
    if (!line) {
      lines.push({ keys: [key], what });
    } else if (!line.keys.includes(key)) {
      line.keys.push(key);
    }
  }
  return lines;
}

/**
 * Have keys run something, wherever the focus is but in a text field. Throws an Error for a key that runs something
 * already, in whatever group: all of them hear every key.
 */
export function registerKeys(group: KeyGroup, keys: readonly Key[]): () => void {
  const running = entries.peek().flatMap((entry) => entry.keys.filter((one) => one.run));
  refuseTwice(group, [...running, ...keys]);
  return add({ group, keys });
}

/** Tell of keys that the browser makes something of by itself. */
export function describeKeys(group: KeyGroup, keys: readonly DescribedKey[]): () => void {
  refuseTwice(group, [...others(group, keys), ...keys]);
  return add({ group, keys });
}

/**
 * Bind keys of a part of the page, for as long as the page is there. What is returned does what a pressed key is bound
 * to, if it is. Shift with a key that has no binding of its own with it is as without; and so is Ctrl or Alt where the
 * part `ignoresModifiers`. Throws an Error for a key that the group has for something else; other groups may have it,
 * which have the focus at other times.
 */
export function bindKeys<On>(
  group: KeyGroup,
  bindings: readonly Binding<On>[],
  { ignoresModifiers = false } = {},
): (event: KeyboardEvent, on: On) => void {
  describeKeys(
    group,
    bindings.map(({ key, what }) => ({ key, what })),
  );
  return (event, on) => {
    const bound = namesOf(event, ignoresModifiers)
      .map((name) => bindings.find(({ key }) => key === name))
      .find((one) => one !== undefined);
    if (bound && bound.when?.(on) !== false) {
      if (!bound.goesOn) {
        event.preventDefault();
        event.stopPropagation();
      }
      bound.run(on);
    }
  };
}

/** What the group has already, but for what is the same: several parts of it may have a key do the same. */
function others(group: KeyGroup, keys: readonly DescribedKey[]): DescribedKey[] {
  const own = new Map(
    entries
      .peek()
      .flatMap((entry) => (entry.group === group ? entry.keys : []))
      .map((one) => [one.key, one]),
  );
  return [...own.values()].filter((one) => !keys.some(({ key, what }) => key === one.key && what === one.what));
}

function refuseTwice(group: KeyGroup, keys: readonly DescribedKey[]): void {
  const known = new Map<string, string>();
  for (const { key, what } of keys) {
    const before = known.get(key);
    if (before !== undefined) {
      throw new Error(`${group}: the key "${key}" is for "${before}" and for "${what}"`);
    }
    known.set(key, what);
  }
}

function add(entry: Entry): () => void {
  entries.value = [...entries.peek(), entry];
  return () => {
    entries.value = entries.peek().filter((one) => one !== entry);
  };
}

/** What `nameOf` needs of an event. */
type Pressed = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">;

/** How a pressed key is written in the registry. Shift is told only of keys whose name does not change with it. */
export function nameOf(pressed: Pressed): string {
  const isCharacter = pressed.key.length === 1 && pressed.key !== " ";
  // Ctrl+K and Ctrl+k are one key; on a Mac it is the command key.
  const isCommand = pressed.ctrlKey || pressed.metaKey;
  const key = isCharacter && isCommand ? pressed.key.toUpperCase() : pressed.key;
  const shift = pressed.shiftKey && (!isCharacter || isCommand);
  return `${isCommand ? "Ctrl+" : ""}${pressed.altKey ? "Alt+" : ""}${shift ? "Shift+" : ""}${key}`;
}

/** How a pressed key may be bound: first with all that is held down, then with less of it. */
function namesOf(pressed: Pressed, ignoresModifiers: boolean): string[] {
  const { key, altKey, shiftKey } = pressed;
  const ctrlKey = pressed.ctrlKey || pressed.metaKey;
  if (!ignoresModifiers && (ctrlKey || altKey)) {
    return [nameOf(pressed)];
  }
  const orNot = (isHeld: boolean) => (isHeld ? [true, false] : [false]);
  return orNot(ctrlKey).flatMap((ctrlKey) =>
    orNot(altKey).flatMap((altKey) =>
      orNot(shiftKey).map((shiftKey) => nameOf({ key, ctrlKey, metaKey: false, altKey, shiftKey })),
    ),
  );
}

/** Listen to the keyboard; the function that is given back ends it. */
export function listenForKeys(): () => void {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog:modal")) {
      return;
    }
    const name = nameOf(event);
    if (belongsToTarget(event.target, name)) {
      return;
    }
    const found = find(name);
    if (found) {
      event.preventDefault();
      found();
    }
  };
  document.addEventListener("keydown", onKeyDown);
  return () => document.removeEventListener("keydown", onKeyDown);
}

function find(name: string): (() => void) | undefined {
  for (const { keys } of entries.peek()) {
    const found = keys.find((key) => key.key === name && key.run);
    if (found) {
      return found.run;
    }
  }
  return undefined;
}

/** Whether what has the focus makes something of a key itself: text fields of all, buttons of Space and Enter. */
function belongsToTarget(target: EventTarget | null, name: string): boolean {
  if (!(target instanceof HTMLElement) || name.startsWith("Ctrl+")) {
    return false;
  }
  if (target instanceof HTMLInputElement) {
    // Escape empties a field first; one that is empty has no use for it.
    if (name === "Escape") {
      return target.value !== "" && target.type === "search";
    }
    const isText = !["checkbox", "radio", "button", "range", "color"].includes(target.type);
    return isText || name.length > 1 || name === " ";
  }
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable) {
    return true;
  }
  return (name === " " || name === "Enter") && target.matches("button, a[href], summary");
}
