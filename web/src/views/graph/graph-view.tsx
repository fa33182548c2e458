// The view "Graph": the bar, the picture, its legend, and its facts as a table.
import { useRef, useState } from "preact/hooks";
import { functions, isLive, summary } from "../../model/session.ts";
import { type ColorMode, cursor, mode, selection, update } from "../../model/view-state.ts";
import { bindKeys } from "../../model/keys.ts";
import { nodeColors, processScene } from "../../model/graph/scene.ts";
import { BRANCH_LEGEND, EDGE_LEGEND } from "../../model/graph/edge-colors.ts";
import { MOST_BLOCKS } from "../../protocol/generated.ts";
import { formatInteger } from "../../base/format.ts";
import { LivePanel } from "../live/live-panel.tsx";
import { GraphOrMessage } from "./graph-or-message.tsx";
import { LegendPanel } from "./legend.tsx";
import { NodeTable } from "./node-table.tsx";
import { Toolbar } from "./toolbar.tsx";

const EDGES: Partial<Record<ColorMode, typeof EDGE_LEGEND>> = { structure: EDGE_LEGEND, conditionals: BRANCH_LEGEND };

const pressKey = bindKeys<null>(
  "Graph",
  [
    {
      key: "Escape",
      what: "Select nothing",
      when: () => selection.peek() !== null,
      run: () => update({ selection: null }),
      goesOn: true,
    },
  ],
  { ignoresModifiers: true },
);

export function GraphView() {
  const [failure, setFailure] = useState<string | null>(null);
  const fit = useRef<() => void>(() => undefined);
  const of = functions.value;
  return (
    <div class="view graph-view" onKeyDown={(event) => pressKey(event, null)}>
      <GraphOrMessage
        scene={processScene}
        fit={fit}
        failure={failure}
        setFailure={setFailure}
        elsewhere="The tables beside and below, and the other views, have the same facts without it."
      />
      <Toolbar onFit={() => fit.current()} />
      {failure === null && !processScene.placedGraph.value && (
        <p class="graph-waiting waiting">{summary.value ? "Laying out the graph …" : "Opening the trace …"}</p>
      )}
      {of && of.nBlocks > MOST_BLOCKS && (
        <p class="graph-note" data-overlay>
          {formatInteger(of.nBlocks)} blocks: functions only
        </p>
      )}
      <LegendPanel
        legend={nodeColors.value?.legend ?? null}
        edges={EDGES[mode.value] ?? []}
        hasSelection={selection.value !== null}
        hasCursor={cursor.value !== null}
      />
      {isLive.value && <LivePanel />}
      <NodeTable isOpen={failure !== null} />
    </div>
  );
}
