// Places of a trace that the reader marked, kept by the browser for each trace.
import { signal } from "@preact/signals";

export interface Bookmark {
  process: number;
  thread: number;
  position: number;
  /** Nanoseconds since the recording began. */
  time: number;
}

const PREFIX = "clew.bookmarks.";
const MOST = 1000;

export const bookmarks = signal<Bookmark[]>([]);

let key: string | null = null;

/** Take the bookmarks of a trace, known by its name and when it began. */
export function openBookmarks(name: string, startNs: string): void {
  key = `${PREFIX}${name}.${startNs}`;
  let stored: unknown = null;
  try {
    stored = JSON.parse(localStorage.getItem(key) ?? "null");
  } catch {
    // What can't be read is as if nothing were stored.
  }
  bookmarks.value = parseBookmarks(stored);
}

/** Put a bookmark, or take away the one that is there already. */
export function toggleBookmark(mark: Bookmark): void {
  const isSame = (one: Bookmark) =>
    one.process === mark.process && one.thread === mark.thread && one.position === mark.position;
  const others = bookmarks.value.filter((one) => !isSame(one));
  bookmarks.value = others.length < bookmarks.value.length ? others : [...others, mark].slice(-MOST);
  try {
    localStorage.setItem(key ?? PREFIX, JSON.stringify(bookmarks.value));
  } catch {
    // Private windows may refuse; then they hold until the page is closed.
  }
}

/** The bookmarks in what was stored; what makes no sense is left out. */
export function parseBookmarks(stored: unknown): Bookmark[] {
  if (!Array.isArray(stored)) {
    return [];
  }
  const names = ["process", "thread", "position", "time"] as const;
  const isMark = (one: unknown): one is Bookmark =>
    typeof one === "object" && one !== null && names.every((name) => Number.isFinite((one as Bookmark)[name]));
  return stored
    .filter(isMark)
    .slice(-MOST)
    .map(({ process, thread, position, time }) => ({ process, thread, position, time }));
}
