// The line between two panels: dragged, or moved with the arrow keys, it changes the size of one of them.
import { useRef } from "preact/hooks";
import { bindKeys } from "../../model/keys.ts";
import { type Settings, settings, updateSettings } from "../../model/settings.ts";

const STEP = 16;
const LEAST = 140;
/** How much of the window one panel may take. */
const MOST_PART = 0.6;

interface Properties {
  size: "functionsWidth" | "detailsWidth" | "timelineHeight";
  label: string;
  /** 1 if the panel is in front of the line (left of it), -1 if it is behind it. */
  side: 1 | -1;
}

interface Line {
  isUpright: boolean;
  move: (by: number) => void;
}

const MOVE = "Move the line between two panels";
const isUpright = (line: Line) => line.isUpright;
const isLevel = (line: Line) => !line.isUpright;
const pressKey = bindKeys<Line>(
  "Panels",
  [
    { key: "ArrowLeft", what: MOVE, when: isUpright, run: ({ move }) => move(-STEP) },
    { key: "ArrowRight", what: MOVE, when: isUpright, run: ({ move }) => move(STEP) },
    { key: "ArrowUp", what: MOVE, when: isLevel, run: ({ move }) => move(-STEP) },
    { key: "ArrowDown", what: MOVE, when: isLevel, run: ({ move }) => move(STEP) },
  ],
  { ignoresModifiers: true },
);

export function Separator({ size, label, side }: Properties) {
  const start = useRef<{ at: number; from: number } | null>(null);
  const isUpright = size !== "timelineHeight";
  const most = Math.round((isUpright ? innerWidth : innerHeight) * MOST_PART);
  const least = isUpright ? LEAST : 60;
  const now = settings.value[size];
  const set = (value: number) => {
    const change: Partial<Settings> = { [size]: Math.round(Math.min(Math.max(value, least), most)) };
    updateSettings(change);
  };
  /** How large the panel is drawn, also where no size was ever chosen. */
  const measure = (line: HTMLElement): number => {
    const panel = side > 0 ? line.previousElementSibling : line.nextElementSibling;
    const box = panel?.getBoundingClientRect();
    return (isUpright ? box?.width : box?.height) ?? now;
  };
  return (
    <div
      class={`separator ${isUpright ? "upright" : "level"}`}
      role="separator"
      aria-label={label}
      aria-orientation={isUpright ? "vertical" : "horizontal"}
      aria-valuenow={now}
      aria-valuemin={least}
      aria-valuemax={most}
      tabIndex={0}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = { at: isUpright ? event.clientX : event.clientY, from: measure(event.currentTarget) };
      }}
      onPointerMove={(event) => {
        if (start.current) {
          const moved = (isUpright ? event.clientX : event.clientY) - start.current.at;
          set(start.current.from + side * moved);
        }
      }}
      onPointerUp={() => (start.current = null)}
      onPointerCancel={() => (start.current = null)}
      onKeyDown={(event) => {
        const line = event.currentTarget;
        pressKey(event, { isUpright, move: (by) => set(measure(line) + side * by) });
      }}
    />
  );
}
