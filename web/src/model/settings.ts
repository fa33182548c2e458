// What a reader likes, remembered by the browser: not part of a link.
import { effect, signal } from "@preact/signals";

export interface Settings {
  theme: "dark" | "light";
  /** Whether the panels beside and below the main view are shown. */
  showsFunctions: boolean;
  showsDetails: boolean;
  showsTimeline: boolean;
  /** Whether the timeline has its lanes, and not only the buttons. */
  showsLanes: boolean;
  /** Whether the function view goes to where the replay's cursor is. */
  followsReplay: boolean;
  edgeOpacity: number;
  labels: boolean;
  /** Sizes of the panels in pixels; 0 for a timeline as high as what is in it. */
  functionsWidth: number;
  detailsWidth: number;
  timelineHeight: number;
}

const KEY = "clew.settings";
const prefersLight = typeof matchMedia === "function" && matchMedia("(prefers-color-scheme: light)").matches;

const DEFAULTS: Settings = {
  theme: prefersLight ? "light" : "dark",
  showsFunctions: true,
  showsDetails: true,
  showsTimeline: true,
  showsLanes: true,
  followsReplay: false,
  edgeOpacity: 1,
  labels: true,
  functionsWidth: 320,
  detailsWidth: 300,
  timelineHeight: 0,
};

export const settings = signal<Settings>(read());

/** Everything as it was when the page was opened for the first time. */
export function resetSettings(): void {
  settings.value = DEFAULTS;
}

export function updateSettings(change: Partial<Settings>): void {
  settings.value = { ...settings.value, ...change };
}

/** Whether movement should be kept to the least (prefers-reduced-motion). */
export function prefersReducedMotion(): boolean {
  return typeof matchMedia === "function" && matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Keep the settings in the browser, and the page's theme as they say. */
export function keepSettings(): void {
  effect(() => {
    document.documentElement.dataset.theme = settings.value.theme;
    try {
      localStorage.setItem(KEY, JSON.stringify(settings.value));
    } catch {
      // Private windows may refuse; then they hold until the page is closed.
    }
  });
}

function read(): Settings {
  let stored: unknown = null;
  try {
    stored = JSON.parse(localStorage.getItem(KEY) ?? "null");
  } catch {
    // What can't be read is as if nothing were stored.
  }
  const found = { ...DEFAULTS };
  if (typeof stored === "object" && stored !== null) {
    for (const name of Object.keys(DEFAULTS) as (keyof Settings)[]) {
      const value = (stored as Record<string, unknown>)[name];
      const isSane = typeof value !== "number" || (value >= 0 && value <= 10_000);
      if (
        typeof value === typeof DEFAULTS[name] &&
        isSane &&
        (name !== "theme" || value === "dark" || value === "light")
      ) {
        (found as Record<string, unknown>)[name] = value;
      }
    }
  }
  return found;
}
