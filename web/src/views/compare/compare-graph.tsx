// The graph of both processes, drawn by the picture of the graph view: who ran what is in the colours.
import { useRef, useState } from "preact/hooks";
import { comparedScene } from "../../model/compare/compare-scene.ts";
import { selectCompared } from "../../model/compare/compare-session.ts";
import { GraphCanvas } from "../graph/graph-canvas.tsx";
import { LegendPanel } from "../graph/legend.tsx";
import { LayoutChoices } from "../graph/toolbar.tsx";

export function CompareGraph() {
  const [failure, setFailure] = useState<string | null>(null);
  const [attempt, setAttempt] = useState(0);
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
      {failure === null ? (
        <GraphCanvas key={attempt} scene={comparedScene} onFailure={setFailure} fit={fit} />
      ) : (
        <div class="graph-message" role="alert">
          <h2>The graph cannot be drawn</h2>
          <p>It needs WebGL2: {failure}. The table beside it and the listing have the same facts without it.</p>
          <button
            type="button"
            onClick={() => {
              setFailure(null);
              setAttempt(attempt + 1);
            }}
          >
            Try again
          </button>
        </div>
      )}
      <div class="graph-toolbar" role="toolbar" aria-label="Graph of both">
        <LayoutChoices />
        <div class="choices">
          <button type="button" title="Everything in the frame (f)" onClick={() => fit.current()}>
            Fit
          </button>
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
