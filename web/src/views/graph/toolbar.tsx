// The bar over the picture: layout, dimensions, mode, fit, labels, edges, and what is left out.
import { showLayout } from "../../model/graph/layout-cameras.ts";
import { settings, updateSettings } from "../../model/settings.ts";
import {
  type ColorMode,
  dimensions,
  filter,
  type Layout,
  layout,
  LAYOUTS,
  mode,
  MODES,
  update,
  updateFilter,
} from "../../model/view-state.ts";

const LAYOUT_NAMES: Record<Layout, [string, string]> = {
  cylinder: ["Cylinder", "Around by call depth, down by when it was discovered"],
  force: ["Force", "Functions that call each other are near each other, their blocks inside"],
  blocks: ["Blocks", "Blocks that lead to each other are near each other"],
  circle: ["Circle", "Functions around a circle, by image"],
};

const MODE_NAMES: Record<ColorMode, [string, string]> = {
  structure: ["Structure", "Blocks by image, edges by kind"],
  heat: ["Heat", "How often it was executed"],
  conditionals: ["Conditionals", "Which way branches went"],
  recency: ["Recency", "When it was first executed"],
  degree: ["Degree", "How many edges lead in and out"],
  thread: ["Thread", "Who executed it"],
};

export function Toolbar({ onFit }: { onFit: () => void }) {
  return (
    <div class="graph-toolbar" role="toolbar" aria-label="Graph">
      <div class="choices" role="group" aria-label="Layout">
        {LAYOUTS.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={layout.value === name}
            title={LAYOUT_NAMES[name][1]}
            onClick={() => showLayout(name, dimensions.value)}
          >
            {LAYOUT_NAMES[name][0]}
          </button>
        ))}
      </div>
      <div class="choices" role="group" aria-label="Dimensions">
        {([3, 2] as const).map((number) => (
          <button
            key={number}
            type="button"
            aria-pressed={dimensions.value === number}
            title={number === 3 ? "In space" : "On a plane"}
            onClick={() => showLayout(layout.value, number)}
          >
            {number}D
          </button>
        ))}
      </div>
      <div class="choices" role="group" aria-label="Colours">
        {MODES.map((name) => (
          <button
            key={name}
            type="button"
            aria-pressed={mode.value === name}
            title={MODE_NAMES[name][1]}
            onClick={() => update({ mode: name })}
          >
            {MODE_NAMES[name][0]}
          </button>
        ))}
      </div>
      <div class="choices">
        <button type="button" title="Everything in the frame (f)" onClick={onFit}>
          Fit
        </button>
        <button
          type="button"
          aria-pressed={settings.value.labels}
          title="Names of the hottest functions"
          onClick={() => updateSettings({ labels: !settings.value.labels })}
        >
          Labels
        </button>
        <button
          type="button"
          aria-pressed={filter.value.hideStubs}
          title="Leave out stubs of the procedure linkage table: calls lead to the function itself"
          onClick={() => updateFilter({ hideStubs: !filter.value.hideStubs })}
        >
          Hide stubs
        </button>
        <button
          type="button"
          aria-pressed={filter.value.foldLoops}
          title="Draw the blocks of a loop as one"
          onClick={() => updateFilter({ foldLoops: !filter.value.foldLoops })}
        >
          Fold loops
        </button>
      </div>
      <label class="opacity" title="How strong edges are drawn">
        Edges
        <input
          type="range"
          min="0"
          max="2"
          step="0.1"
          value={settings.value.edgeOpacity}
          onInput={(event) => updateSettings({ edgeOpacity: Number(event.currentTarget.value) })}
        />
      </label>
    </div>
  );
}
