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
import { ToggleButton } from "../shell/toggle-button.tsx";

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
      <LayoutChoices />
      <div class="choices" role="group" aria-label="Colours">
        {MODES.map((name) => (
          <ToggleButton
            key={name}
            text={MODE_NAMES[name][0]}
            title={MODE_NAMES[name][1]}
            isOn={mode.value === name}
            onToggle={() => update({ mode: name })}
          />
        ))}
      </div>
      <div class="choices">
        <button type="button" title="Everything in the frame (f)" onClick={onFit}>
          Fit
        </button>
        <ToggleButton
          text="Labels"
          title="Names of the hottest functions"
          isOn={settings.value.labels}
          onToggle={() => updateSettings({ labels: !settings.value.labels })}
        />
        <ToggleButton
          text="Hide stubs"
          title="Leave out stubs of the procedure linkage table: calls lead to the function itself"
          isOn={filter.value.hideStubs}
          onToggle={() => updateFilter({ hideStubs: !filter.value.hideStubs })}
        />
        <ToggleButton
          text="Fold loops"
          title="Draw the blocks of a loop as one"
          isOn={filter.value.foldLoops}
          onToggle={() => updateFilter({ foldLoops: !filter.value.foldLoops })}
        />
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

/** Which layout, in how many dimensions. */
export function LayoutChoices() {
  return (
    <>
      <div class="choices" role="group" aria-label="Layout">
        {LAYOUTS.map((name) => (
          <ToggleButton
            key={name}
            text={LAYOUT_NAMES[name][0]}
            title={LAYOUT_NAMES[name][1]}
            isOn={layout.value === name}
            onToggle={() => showLayout(name, dimensions.value)}
          />
        ))}
      </div>
      <div class="choices" role="group" aria-label="Dimensions">
        {([3, 2] as const).map((number) => (
          <ToggleButton
            key={number}
            text={`${number}D`}
            title={number === 3 ? "In space" : "On a plane"}
            isOn={dimensions.value === number}
            onToggle={() => showLayout(layout.value, number)}
          />
        ))}
      </div>
    </>
  );
}
