// The recorded calls around the cursor, in the order of execution of its thread: what is made there, and what is open. A
// row that is chosen is gone to.
import type { PlacedCall } from "../../api/calls.ts";
import { formatArguments, formatResult, tellCall } from "../../model/calls/call-text.ts";
import { goToCall } from "../../model/calls/calls.ts";
import { madeHere, nearCalls, nearRow, openCalls } from "../../model/calls/near-calls.ts";
import { isPlaying } from "../../model/replay.ts";
import { cursor } from "../../model/view-state.ts";
import { VirtualList } from "../shell/virtual-list.tsx";

const ROW_HEIGHT = 19;
const INDENT_PX = 12;
const MOST_INDENT = 8;

export function ApiCallsList() {
  const near = nearCalls.value;
  if (!cursor.value) {
    return <p class="quiet side-empty">No cursor yet: click on a lane or on a call, or step.</p>;
  }
  if (!near) {
    return <p class="quiet side-empty">Reading calls …</p>;
  }
  if (near.total === 0) {
    return <p class="quiet side-empty">Of no call of this thread the place in the order is known.</p>;
  }
  const row = nearRow.value;
  const made = madeHere.value;
  const open = new Set(openCalls.value.map(({ call }) => call));
  // Where none is made, the last one before is as near as it gets.
  const current = made ? row : row - 1;
  return (
    <div class={`api-calls${isPlaying.value ? " playing" : ""}`} data-near-row={near.first + row}>
      <p class="api-here" role="status" data-api-here={made?.call} title={made ? tellCall(made) : undefined}>
        <Here made={made} open={openCalls.value} />
      </p>
      <VirtualList
        count={near.rows.length}
        rowHeight={ROW_HEIGHT}
        label="API calls around the cursor"
        current={current}
        onMove={(index) => void goToCall(near.rows[index].call)}
        row={(index) => (
          <Row call={near.rows[index]} isMade={near.rows[index] === made} isOpen={open.has(near.rows[index].call)} />
        )}
      />
    </div>
  );
}

function Here({ made, open }: { made: PlacedCall | null; open: readonly PlacedCall[] }) {
  const within = open.map(({ name }) => name).join(" › ");
  if (made) {
    return (
      <>
        Makes{" "}
        <b>
          <bdi>{made.name}</bdi>
        </b>
        {within && (
          <>
            {" "}
            in <bdi>{within}</bdi>
          </>
        )}
      </>
    );
  }
  return within ? (
    <>
      In <bdi>{within}</bdi>
    </>
  ) : (
    <span class="quiet">Between calls</span>
  );
}

function Row({ call, isMade, isOpen }: { call: PlacedCall; isMade: boolean; isOpen: boolean }) {
  return (
    <span
      class={`api-row${call.error !== null ? " failed" : ""}${isOpen ? " open" : ""}`}
      style={{ paddingLeft: `${Math.min(call.depth, MOST_INDENT) * INDENT_PX}px` }}
      data-near-call={call.call}
      data-is-made={isMade || undefined}
      data-is-open={isOpen || undefined}
      title={tellCall(call)}
    >
      <span class="sign" aria-hidden="true">
        {isMade ? "▸" : isOpen ? "▾" : ""}
      </span>
      <span class="told">
        <bdi>{call.name}</bdi>
        <span class="quiet">
          (<bdi>{formatArguments(call.arguments)}</bdi>)
        </span>{" "}
        <span class="result">
          <bdi>{formatResult(call)}</bdi>
        </span>
        {isMade && <span class="visually-hidden"> is made here</span>}
        {isOpen && <span class="visually-hidden"> is open</span>}
      </span>
    </span>
  );
}
