// The calls that are open at the cursor, the innermost first; a click selects the function.
import { formatInteger } from "../../base/format.ts";
import { currentThread, isPlaying, replayState } from "../../model/replay.ts";
import { functionOfBlock } from "../../model/selected.ts";
import { functions } from "../../model/session.ts";
import { cursor, update } from "../../model/view-state.ts";

const MOST_COUNTS = 8;

export function CallsList() {
  const state = replayState.value;
  const of = functions.value;
  if (!cursor.value || !state || !of) {
    return (
      <p class="quiet side-empty">{currentThread.value ? "No cursor yet: click on a lane, or step." : "No order."}</p>
    );
  }
  if (state.gap && state.gap.counts.length > 0) {
    return <Counted />;
  }
  const name = (block: number) => {
    const index = functionOfBlock(of.firstBlock, block);
    return index >= 0 ? { index, name: of.names[index] } : null;
  };
  const frames: { key: string; block: number; returnsTo: string | null }[] = [
    { key: "here", block: state.block, returnsTo: null },
    ...(state.calls ?? [])
      .map((call, depth) => ({ key: `${depth}`, block: call.block, returnsTo: call.returns_to }))
      .reverse(),
  ];
  return (
    <ol class={`calls${isPlaying.value ? " stale" : ""}`} aria-label="Call stack at the cursor" data-calls>
      {frames.map(({ key, block, returnsTo }) => {
        const found = name(block);
        return (
          <li key={key}>
            <button
              type="button"
              disabled={!found}
              title={returnsTo ? `${found?.name ?? ""} · returns to ${returnsTo}` : "comes next"}
              onClick={() => update({ selection: { kind: "block", index: block } })}
            >
              <span class="name">{found?.name ?? (block < 0 && !returnsTo ? "(the end)" : "unknown code")}</span>
              <span class="count">{returnsTo ?? "next"}</span>
            </button>
          </li>
        );
      })}
      {state.calls === null && <li class="quiet">Tags do not tell open calls.</li>}
      {state.calls_omitted > 0 && <li class="quiet">and {formatInteger(state.calls_omitted)} further out</li>}
    </ol>
  );
}

/** In a stretch without order: what was counted there. */
function Counted() {
  const { counts } = replayState.value!.gap!;
  const of = functions.value!;
  return (
    <ol class="calls" aria-label="Counted here, in no order">
      <li class="quiet">Counted here, in no order:</li>
      {counts.slice(0, MOST_COUNTS).map(({ block, executions }) => {
        const index = functionOfBlock(of.firstBlock, block);
        return (
          <li key={block}>
            <button
              type="button"
              disabled={index < 0}
              onClick={() => update({ selection: { kind: "block", index: block } })}
            >
              <span class="name">{index >= 0 ? of.names[index] : "unknown code"}</span>
              <span class="count">×{formatInteger(executions)}</span>
            </button>
          </li>
        );
      })}
    </ol>
  );
}
