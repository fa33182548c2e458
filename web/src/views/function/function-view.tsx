// The view "Function": the control flow of one function, drawn in layers, with its code in the boxes.
import { useComputed } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { formatInteger } from "../../base/format.ts";
import { followReplay } from "../../model/flow/flow-follow.ts";
import { flow, followFunction, hasLines, shownFunction, showsLines } from "../../model/flow/flow-of-function.ts";
import { selectedFunction } from "../../model/selected.ts";
import { counts, functions } from "../../model/session.ts";
import { settings, updateSettings } from "../../model/settings.ts";
import { BlockList } from "./block-list.tsx";
import { FlowCanvas } from "./flow-canvas.tsx";
import { FlowLegend } from "./flow-theme.tsx";

const NOTHING_SELECTED = "Nothing is selected: this function executed the most instructions.";

export function FunctionView() {
  const [showsBlocks, setShowsBlocks] = useState(false);
  useEffect(() => followFunction(), []);
  useEffect(() => followReplay(), []);
  const shown = flow.value;
  const index = shownFunction.value;
  const isChosen = useComputed(() => selectedFunction.value >= 0);
  if (index < 0) {
    const isKnown = functions.value !== null && counts.value !== null;
    return <p class="waiting">{isKnown ? "This process executed no code that was recorded." : "Counting …"}</p>;
  }
  const name = functions.value?.names[index] ?? "";
  return (
    <div class="view function-view" data-function={shown?.model.code.function}>
      <div class="view-bar">
        <strong class="mono name" title={name}>
          {name}
        </strong>
        <span class="quiet">
          {shown && shown.model.code.function === index
            ? `${formatInteger(shown.model.code.n_blocks)} blocks, ${formatInteger(shown.model.edges.length)} edges`
            : "drawing …"}
        </span>
        {!isChosen.value && (
          <span class="note" role="status" title={NOTHING_SELECTED}>
            {NOTHING_SELECTED}
          </span>
        )}
        <span class="rest" />
        <button
          type="button"
          aria-pressed={settings.value.followsReplay}
          title="Go to the block and function that the cursor of the timeline comes to"
          onClick={() => updateSettings({ followsReplay: !settings.peek().followsReplay })}
        >
          Follow
        </button>
        {hasLines.value && (
          <button
            type="button"
            aria-pressed={showsLines.value}
            title="Source lines beside instructions"
            onClick={() => (showsLines.value = !showsLines.value)}
          >
            Lines
          </button>
        )}
        <button
          type="button"
          aria-pressed={showsBlocks}
          title="A table of the blocks"
          onClick={() => setShowsBlocks(!showsBlocks)}
        >
          Blocks
        </button>
      </div>
      {shown && shown.model.boxes.length < shown.model.code.n_blocks && (
        <p class="view-note" role="status">
          Only the first {formatInteger(shown.model.boxes.length)} of {formatInteger(shown.model.code.n_blocks)} blocks
          are drawn. The listing has all of them.
        </p>
      )}
      <div class="function-body">
        {shown && <BlockList of={shown} isOpen={showsBlocks} />}
        {shown && <FlowCanvas of={shown} />}
      </div>
      <FlowLegend />
    </div>
  );
}
