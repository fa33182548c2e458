// The graph of both processes, drawn by the picture of the graph view: who ran what is in the colours. As one picture, or as
// two beside each other, of what A ran and of what B did.
import { effect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { comparedScene } from "../../model/compare/compare-scene.ts";
import { selectCompared } from "../../model/compare/compare-session.ts";
import { sideScenes } from "../../model/compare/side-scenes.ts";
import { bindKeys } from "../../model/keys.ts";
import { besideEachOther } from "../../model/export/pictures-beside.ts";
import { shownPicture } from "../../model/export/shown-picture.ts";
import { compare, updateCompare } from "../../model/view-state.ts";
import { GraphCanvas } from "../graph/graph-canvas.tsx";
import { GraphOrMessage } from "../graph/graph-or-message.tsx";
import { LegendPanel } from "../graph/legend.tsx";
import { LookButton } from "../graph/look-controls.tsx";
import { LayoutChoices } from "../graph/toolbar.tsx";
import { ToggleButton } from "../shell/toggle-button.tsx";
import { COMPARE_KEYS } from "./compare-keys.ts";

const pressKey = bindKeys<null>(
  "Compare",
  [
    {
      key: "Escape",
      what: COMPARE_KEYS.Escape,
      when: () => comparedScene.selection.peek() !== null,
      run: () => selectCompared(null),
    },
  ],
  { ignoresModifiers: true },
);

export function CompareGraph() {
  const [failure, setFailure] = useState<string | null>(null);
  const fit = useRef<() => void>(() => undefined);
  const { isBeside } = compare.value;
  return (
    <div
      class={isBeside ? "graph-view compare-part is-beside" : "graph-view compare-part"}
      onKeyDown={(event) => pressKey(event, null)}
    >
      {isBeside && failure === null ? (
        <Pair fit={fit} onFailure={setFailure} />
      ) : (
        <GraphOrMessage
          scene={comparedScene}
          fit={fit}
          failure={failure}
          setFailure={setFailure}
          elsewhere="The table beside it and the listing have the same facts without it."
        />
      )}
      <div class="graph-toolbar" role="toolbar" aria-label="Graph of both">
        <LayoutChoices />
        <div class="choices" role="group" aria-label="Pictures">
          <ToggleButton
            text="One picture"
            title="All that A or B ran in one picture"
            isOn={!isBeside}
            onToggle={() => updateCompare({ isBeside: false })}
          />
          <ToggleButton
            text="Side by side"
            title="What A ran at the left, what B ran at the right, each at the same place (s)"
            isOn={isBeside}
            onToggle={() => updateCompare({ isBeside: true })}
          />
        </div>
        <div class="choices">
          <button type="button" title="Everything in the frame (f)" onClick={() => fit.current()}>
            Fit
          </button>
          <LookButton />
        </div>
      </div>
      {failure === null && !comparedScene.placedGraph.value && (
        <p class="graph-waiting waiting">Laying out the graph …</p>
      )}
      <LegendPanel
        legend={comparedScene.nodeColors.value?.legend ?? null}
        edges={[]}
        hasSelection={isBeside || comparedScene.selection.value !== null}
        hasCursor={false}
      />
    </div>
  );
}

/** What A ran, and what B did, looked at from the same place. */
function Pair({ fit, onFailure }: { fit: { current: () => void }; onFailure: (message: string) => void }) {
  useEffect(
    () =>
      effect(() => {
        const [left, right] = [sideScenes.a.part.shown.value, sideScenes.b.part.shown.value];
        shownPicture.value = left && right && besideEachOther(left, right);
      }),
    [],
  );
  return (
    <div class="compare-pictures">
      {(["a", "b"] as const).map((side) => (
        <section key={side} data-side={side} aria-label={`What ${side.toUpperCase()} ran`}>
          <GraphCanvas scene={sideScenes[side]} onFailure={onFailure} fit={fit} />
          <strong class="side-name" data-overlay>
            {side.toUpperCase()}
          </strong>
        </section>
      ))}
    </div>
  );
}
