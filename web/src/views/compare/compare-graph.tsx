// The graph of both processes, drawn by the picture of the graph view: who ran what is in the colours.
import { useRef, useState } from "preact/hooks";
import { comparedScene } from "../../model/compare/compare-scene.ts";
import { selectCompared } from "../../model/compare/compare-session.ts";
import { GraphOrMessage } from "../graph/graph-or-message.tsx";
import { LegendPanel } from "../graph/legend.tsx";
import { LookButton } from "../graph/look-controls.tsx";
import { LayoutChoices } from "../graph/toolbar.tsx";

export function CompareGraph() {
  const [failure, setFailure] = useState<string | null>(null);
  const fit = useRef<() => void>(() => undefined);
  return (
    <div
      class="graph-view compare-part"
      onKeyDown={(event) => {
        if (event.key === "Escape" && comparedScene.selection.peek()) {
          event.stopPropagation();
          selectCompared(null);
        }
      }}
    >
      <GraphOrMessage
        scene={comparedScene}
        fit={fit}
        failure={failure}
        setFailure={setFailure}
        elsewhere="The table beside it and the listing have the same facts without it."
      />
      <div class="graph-toolbar" role="toolbar" aria-label="Graph of both">
        <LayoutChoices />
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
        hasSelection={comparedScene.selection.value !== null}
      />
    </div>
  );
}
