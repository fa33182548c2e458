// The keys of the page: one registry, one listener. What is registered is what the help lists, so that neither is ever
// without the other.
import { computed, signal } from "@preact/signals";

/** A key as `event.key` names it ("f", "?", "ArrowLeft"), with "Ctrl+", "Alt+" or "Shift+" in front, in that order. */
export interface Key {
  key: string;
  /** What it does, for the help: "Fit the picture". */
  what: string;
  run: () => void;
}

/** A key that a list or a canvas handles itself while it has the focus. */
export type DescribedKey = Omit<Key, "run">;

interface Entry {
  group: string;
  keys: readonly (DescribedKey & { run?: () => void })[];
}

/** A line of the help: one thing, and all keys that do it. */
export interface HelpLine {
  keys: string[];
  what: string;
}

const entries = signal<readonly Entry[]>([]);

/** All keys by group, in the order in which groups were registered first. */
export const keyHelp = computed<{ group: string; lines: HelpLine[] }[]>(() => {
  const groups = new Map<string, HelpLine[]>();
  for (const { group, keys } of entries.value) {
    const lines = groups.get(group) ?? [];
    groups.set(group, lines);
    for (const { key, what } of keys) {
      const line = lines.find((one) => one.what === what);
      if (!line) {
        lines.push({ keys: [key], what });
      } else if (!line.keys.includes(key)) {
        line.keys.push(key);
      }
    }
  }
  return [...groups].map(([group, lines]) => ({ group, lines }));
});

/**
 * Have keys run something, wherever the focus is but in a text field. Throws an Error for a key that runs something
 * already, in whatever group: all of them hear every key.
 */
export function registerKeys(group: string, keys: readonly Key[]): () => void {
  const running = entries.peek().flatMap((entry) => entry.keys.filter((one) => one.run));
  refuseTwice(group, [...running, ...keys]);
  return add({ group, keys });
}

/**
 * Tell of keys that a part of the page handles itself while it has the focus. Throws an Error for a key that its group has
 * already; other groups may have it, which have the focus at other times.
 */
export function describeKeys(group: string, keys: readonly DescribedKey[]): () => void {
  const own = entries.peek().flatMap((entry) => (entry.group === group ? entry.keys : []));
  refuseTwice(group, [...own, ...keys]);
  return add({ group, keys });
}

function refuseTwice(group: string, keys: readonly DescribedKey[]): void {
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
