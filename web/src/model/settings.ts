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
  /** How strong edges and nodes are drawn: 0 to 2, and 0 to 1. */
  edgeOpacity: number;
  nodeOpacity: number;
  /** How strongly counts change the width of edges and the size of nodes: 0 to 2. */
  countEffect: number;
  labels: boolean;
  /** The size of the letters of labels over the graph, in pixels. */
  labelSize: number;
  /** Whether particles move along the edges at what is pointed at. */
  particles: boolean;
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
  nodeOpacity: 1,
  countEffect: 1,
  labels: true,
  labelSize: 12,
  particles: true,
  functionsWidth: 320,
  detailsWidth: 300,
  timelineHeight: 0,
};

/** What the sliders of the graph go from and to. */
export const LIMITS: Partial<Record<keyof Settings, readonly [number, number]>> &
  Record<Slider, readonly [number, number]> = {
  edgeOpacity: [0, 2],
  nodeOpacity: [0, 1],
  countEffect: [0, 2],
  labelSize: [8, 24],
};

export type Slider = "edgeOpacity" | "nodeOpacity" | "countEffect" | "labelSize";

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
      const [least, most] = LIMITS[name] ?? [0, 10_000];
      const isSane = typeof value !== "number" || (value >= least && value <= most);
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
