// How the graph is drawn, as the reader likes it: sliders, particles, and what was put elsewhere.
import { LIMITS, type Slider, settings, updateSettings } from "../../model/settings.ts";
import { formatInteger } from "../../base/format.ts";
import { openPopover, togglePopover } from "../../model/shell-state.ts";
import { Popover } from "../shell/popover.tsx";
import { shownMoves } from "./shown-moves.ts";

/** The words of a slider, what it does, one step, and how a value is written. */
const SLIDERS: readonly [Slider, string, string, number, (value: number) => string][] = [
  ["edgeOpacity", "Edges", "How strong edges are drawn", 0.05, percent],
  ["nodeOpacity", "Nodes", "How strong nodes are drawn", 0.05, percent],
  ["countEffect", "Counts", "How strongly counts change the width of edges and the size of nodes", 0.1, percent],
  ["labelSize", "Letters", "The size of labels", 1, (value) => `${value} px`],
];

export function LookSliders() {
  return (
    <>
      {SLIDERS.map(([name, text, title, step, format]) => {
        const value = settings.value[name];
        const [least, most] = LIMITS[name];
        return (
          <label key={name} class="slider" title={title}>
            {text}
            <input
              type="range"
              min={least}
              max={most}
              step={step}
              aria-label={title}
              aria-valuetext={format(value)}
              value={value}
              onInput={(event) => updateSettings({ [name]: Number(event.currentTarget.value) })}
            />
            <output>{format(value)}</output>
          </label>
        );
      })}
      <label title="Along the edges at what is pointed at. Never where the system asks for little movement.">
        <input
          type="checkbox"
          checked={settings.value.particles}
          onChange={(event) => updateSettings({ particles: event.currentTarget.checked })}
        />{" "}
        Particles
      </label>
    </>
  );
}

/** The same over the picture, with what was moved by hand. */
export function LookPanel() {
  const shown = shownMoves.value;
  const { moved, steps } = shown?.scene.placedGraph.value?.moved.state.value ?? { moved: 0, steps: 0 };
  return (
    <Popover title="Look">
      <LookSliders />
      <div class="popover-foot">
        <span class="quiet" role="status">
          {formatInteger(moved)} {moved === 1 ? "node" : "nodes"} moved
        </span>
        <button type="button" disabled={steps === 0} title="Ctrl+Z in the graph" onClick={() => shown?.drag.undo()}>
          Undo
        </button>
        <button
          type="button"
          disabled={moved === 0}
          title="All of them where the layout has them (R in the graph)"
          onClick={() => shown?.drag.release(true)}
        >
          Release
        </button>
      </div>
    </Popover>
  );
}

export function LookButton() {
  return (
    <button
      type="button"
      title="Strength of edges and nodes, effect of counts, letters, particles"
      aria-expanded={openPopover.value === "look"}
      onClick={() => togglePopover("look")}
    >
      Look
    </button>
  );
}

function percent(value: number): string {
  return `${Math.round(value * 100)} %`;
}
