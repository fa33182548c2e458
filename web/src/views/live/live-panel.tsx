// Beside the picture of a program that runs: whether it does, what is newest, what its threads do, and whether the picture
// follows.
import { formatDuration, formatInteger, formatShort } from "../../base/format.ts";
import { canLayOut, layOut } from "../../model/live/live-layout.ts";
import type { RecordingState } from "../../model/live/live-graph.ts";
import {
  framesBehind,
  isConnected,
  isPaused,
  type LiveState,
  liveState,
  selectRow,
  setPaused,
} from "../../model/live/live-session.ts";
import { isStill } from "../../model/live/program.ts";
import { ProgramPanel } from "./program-panel.tsx";
import { ThreadRows } from "./thread-rows.tsx";

const STATES: Record<RecordingState, string> = {
  running: "The program runs",
  ended: "The program has ended; its trace is being written",
  published: "The program has ended; its trace is there",
  failed: "There will be no trace",
};

export function LivePanel() {
  const state = liveState.value;
  return (
    <aside class="live-panel" aria-label="Live" data-overlay data-frames={state?.meta.sequence ?? -1}>
      <Status state={state} />
      <ProgramPanel />
      {state && (
        <>
          <Newest state={state} />
          <ThreadRows threads={state.threads} ended={state.threadsEnded} />
        </>
      )}
    </aside>
  );
}

function Status({ state }: { state: LiveState | null }) {
  const meta = state?.meta;
  const has = !isConnected.value ? "lost" : (meta?.state ?? "waiting");
  return (
    <section class="live-status" data-state={has}>
      <p role="status">
        <span class="live-dot" aria-hidden="true" />
        {!isConnected.value
          ? "The connection broke; it is made anew, and nothing is lost. The program runs on."
          : meta
            ? meta.state === "running" && isStill.value
              ? "The program is stopped"
              : STATES[meta.state]
            : "Waiting for the recording …"}
        {meta?.state === "failed" && `: ${meta.reason}`}
      </p>
      {meta && isConnected.value && meta.state === "running" && (
        <p class="quiet">
          {formatDuration(meta.elapsed_ns)} since the recording began
          {state.meta.totals && `, ${formatShort(state.meta.totals.instructions)} instructions in this process`}
        </p>
      )}
      {meta?.trouble && <p class="quiet">The picture does not follow: {meta.trouble}</p>}
      <div class="actions">
        <button type="button" aria-pressed={isPaused.value} onClick={() => setPaused(!isPaused.value)}>
          {isPaused.value ? "Go on with the picture" : "Pause picture"}
        </button>
        <button type="button" disabled={!canLayOut.value} onClick={layOut} title="Place all blocks anew">
          Lay out anew
        </button>
      </div>
      <p role="status" class="live-paused">
        {isPaused.value &&
          `Picture paused; the program ${isStill.value ? "is stopped, too" : "runs on"}; ${formatInteger(framesBehind.value)} frames behind`}
      </p>
    </section>
  );
}

function Newest({ state }: { state: LiveState }) {
  return (
    <section class="live-newest">
      <h2 id="live-newest">Newest</h2>
      <ol aria-labelledby="live-newest">
        {state.newest.map((one) => (
          <li key={`${one.kind} ${one.row} ${one.from} ${one.at}`}>
            <button type="button" onClick={() => selectRow(one.row)} title={one.name}>
              {one.kind === "call" && <span class="quiet">{one.from} calls </span>}
              <span class="name">{one.name}</span>
              {one.kind === "block" && (
                <span class="quiet"> {one.blocks === 1 ? "1 block" : `${formatInteger(one.blocks)} blocks`}</span>
              )}
            </button>
          </li>
        ))}
      </ol>
      {state.newest.length === 0 && <p class="quiet">No new code since this page was opened.</p>}
    </section>
  );
}
