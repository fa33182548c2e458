// The view "Calls": what a program asked of libraries and of the system, when, and of what. On the left what the calls are
// about, on top how many there were over time, below the calls, the blocks that made them, or who did what with what.
import { useEffect, useRef } from "preact/hooks";
import type { CallFilter, CallSummary } from "../../api/calls.ts";
import { formatInteger } from "../../base/format.ts";
import { callers, isOfAll, processName } from "../../model/calls/call-processes.ts";
import {
  callSummary,
  chosenEntity,
  isOpen,
  openCall,
  readCall,
  shownChart,
  watchCalls,
} from "../../model/calls/calls.ts";
import { noCalls } from "../../model/calls/following.ts";
import { chosenThreads, isLive, process, processId, showProcess } from "../../model/session.ts";
import { type CallPart, calls, range, update, updateCalls } from "../../model/view-state.ts";
import { CallDetailsBox } from "./call-details.tsx";
import { CallsChart } from "./calls-chart.tsx";
import { showCallsPicture } from "./calls-pictures.ts";
import { CallsTree } from "./calls-tree.tsx";
import { CallsTable } from "./calls-table.tsx";
import { PlacesTable } from "./places-table.tsx";
import { TouchesPanel } from "./touches-panel.tsx";

const PARTS: Record<CallPart, [string, string]> = {
  calls: ["Calls", "Each call, by time"],
  tree: ["Tree", "By thread, each call with those within it"],
  places: ["By place", "Which blocks made how many calls"],
  touches: ["Who did what", "Which processes had to do with what"],
};

const MOST_THREADS = 500;
const MOST_PROCESSES = 500;

export function CallsView() {
  if (isLive.value) {
    return (
      <div class="view calls-view">
        <p class="waiting">
          Calls are read from the finished trace: clew view shows them when the recording has ended.
        </p>
      </div>
    );
  }
  return <Calls />;
}

function Calls() {
  const main = useRef<HTMLDivElement>(null);
  useEffect(watchCalls, []);
  const { call } = calls.value;
  const id = processId.value;
  useEffect(() => {
    if (call === null) {
      openCall.value = null;
    } else if (!isOpen(id, call) && id >= 0) {
      // Of a link: where its thread was is in the address as well.
      void readCall(call, false);
    }
  }, [call, id]);
  const known = callSummary.value;
  const isKnown = known !== null;
  useEffect(() => (isKnown ? showCallsPicture(main.current!) : undefined), [isKnown]);
  if (!known) {
    return (
      <div class="view calls-view">
        <p class="waiting" role={noCalls.value === null ? undefined : "alert"}>
          {noCalls.value ?? "Looking for calls …"}
        </p>
      </div>
    );
  }
  const wanted = calls.value.part;
  const part = hasPart(known, wanted) ? wanted : known.source === "counts" ? "places" : "calls";
  return (
    <div
      class="view calls-view"
      data-calls-source={known.source}
      data-calls-total={known.calls}
      data-calls-of={isOfAll.value ? "all" : id}
    >
      <div class="calls-main" ref={main}>
        <CallsBar />
        {known.reason && (
          <p class="calls-reason" data-calls-reason>
            {known.reason}.
          </p>
        )}
        {shownChart.value && <CallsChart chart={shownChart.value} />}
        <div class="calls-tabs" role="group" aria-label="What of the calls">
          {(Object.keys(PARTS) as CallPart[])
            .filter((name) => hasPart(known, name))
            .map((name) => (
              <button
                key={name}
                type="button"
                title={PARTS[name][1]}
                aria-pressed={part === name}
                onClick={() => updateCalls({ part: name })}
              >
                {PARTS[name][0]}
              </button>
            ))}
          <span class="quiet" role="status">
            {known.source === "counts" ? "" : tellNumber(known)}
          </span>
        </div>
        {part === "calls" ? (
          <CallsTable />
        ) : part === "tree" ? (
          <CallsTree />
        ) : part === "places" ? (
          <PlacesTable />
        ) : (
          <TouchesPanel />
        )}
        {(part === "calls" || part === "tree") && openCall.value && <CallDetailsBox call={openCall.value} />}
      </div>
    </div>
  );
}

/** Without times there are no single calls, and only what was recorded is within something; places are a process'. */
function hasPart({ source }: CallSummary, part: CallPart): boolean {
  if (part === "places" && isOfAll.value) {
    return false;
  }
  if (part === "tree") {
    return source === "recorded";
  }
  return part !== "calls" || source !== "counts";
}

function tellNumber({ calls: chosen, total, omitted, untimed }: CallSummary): string {
  const all = formatInteger(total);
  const told = [chosen === total ? `${all} calls` : `${formatInteger(chosen)} of ${all} calls`];
  if (omitted > 0) {
    told.push(`${formatInteger(omitted)} more are not listed`);
  }
  if (untimed > 0) {
    told.push(`${formatInteger(untimed)} more were made where the order is not known`);
  }
  return told.join("; ");
}

/** All processes together, or one, which is then what all views look at. */
function ProcessChoice() {
  const known = callers.value;
  if (known.length < 2) {
    return null;
  }
  const n = new Map(callSummary.value?.processes.map((one) => [one.process, one.calls]));
  const own = processId.value;
  const shown = known.slice(0, MOST_PROCESSES).map((one) => one.process_id);
  return (
    <select
      aria-label="Process of calls"
      value={isOfAll.value ? "" : String(own)}
      onChange={(event) => {
        const word = event.currentTarget.value;
        if (word === "") {
          updateCalls({ isOfAll: true });
        } else {
          showProcess(Number(word));
        }
      }}
    >
      <option value="">all {formatInteger(known.length)} processes</option>
      {(isOfAll.value || shown.includes(own) ? shown : [own, ...shown]).map((id) => (
        <option key={id} value={id}>
          {processName.value(id).slice(0, 60)}
          {isOfAll.value && ` (${formatInteger(n.get(id) ?? 0)})`}
        </option>
      ))}
    </select>
  );
}

/** One thread of several; it is what all views look at. */
function ThreadChoice() {
  const own = process.value?.threads ?? [];
  const chosen = chosenThreads.value;
  if (isOfAll.value || own.length < 2 || own.length > MOST_THREADS) {
    return null;
  }
  const several = chosen && chosen.length !== 1 ? "several" : "";
  return (
    <select
      aria-label="Thread of calls"
      value={chosen?.length === 1 ? String(chosen[0]) : several}
      onChange={(event) => {
        const tid = Number(event.currentTarget.value);
        update({ threads: tid ? [tid] : null });
      }}
    >
      <option value="">all threads</option>
      {several && <option value="several">{chosen!.length} threads</option>}
      {own.map(({ tid, name }) => (
        <option key={tid} value={tid}>
          {tid} {name.slice(0, 40)}
        </option>
      ))}
    </select>
  );
}

/** By what descriptions have calls under, and how many there are of each. */
function FilterChoice({ known }: { known: CallSummary["filters"] }) {
  const { filter } = calls.value;
  const isThere = known.some((one) => one.filter === filter);
  const shown = filter === null || isThere ? known : [...known, { filter, calls: 0 }];
  if (shown.length === 0) {
    return null;
  }
  return (
    <select
      aria-label="Filter of calls"
      title="What calls have to do with, as clew api --filter has it"
      value={filter ?? ""}
      onChange={(event) => updateCalls({ filter: (event.currentTarget.value as CallFilter) || null })}
    >
      <option value="">any filter</option>
      {shown.map((one) => (
        <option key={one.filter} value={one.filter}>
          {one.filter} ({formatInteger(one.calls)})
        </option>
      ))}
    </select>
  );
}

/** What is chosen of the calls, and what takes that back. */
function CallsBar() {
  const { text, name, isFailed, entity } = calls.value;
  const known = callSummary.value!;
  const stretch = range.value;
  // A name of the address need not be among those that there are.
  const names = known.names.map((one) => one.name);
  const shown = name !== null && !names.includes(name) ? [name, ...names] : names;
  return (
    <div class="bar">
      <input
        type="search"
        placeholder="Name, argument, fd=3, path=/etc/*"
        title="A part of a name, an argument or a result; or NAME=VALUE of an argument, path=VALUE of any path; * is anything"
        aria-label="Search calls"
        value={text}
        onInput={(event) => updateCalls({ text: event.currentTarget.value })}
      />
      {shown.length > 0 && (
        <select
          aria-label="Name of calls"
          value={name ?? ""}
          onChange={(event) => updateCalls({ name: event.currentTarget.value || null })}
        >
          <option value="">all names</option>
          {shown.map((one) => (
            <option key={one} value={one}>
              {one.slice(0, 80)}
            </option>
          ))}
        </select>
      )}
      {known.source === "recorded" && (
        <select
          aria-label="Kind of calls"
          value={calls.value.kind ?? ""}
          onChange={(event) => updateCalls({ kind: event.currentTarget.value || null })}
        >
          <option value="">all kinds</option>
          <option value="system_call">system calls</option>
          <option value="library">functions</option>
          <option value="probe">events of probes</option>
        </select>
      )}
      <FilterChoice known={known.filters} />
      <ProcessChoice />
      <ThreadChoice />
      {known.source === "recorded" && (
        <label>
          <input
            type="checkbox"
            checked={isFailed}
            onChange={(event) => updateCalls({ isFailed: event.currentTarget.checked })}
          />{" "}
          Failed
        </label>
      )}
      {entity !== null && (
        <button type="button" class="chip" onClick={() => updateCalls({ entity: null })} title="Calls about anything">
          about <bdi>{chosenEntity.value?.name.slice(0, 60) ?? `entity ${entity}`}</bdi> ×
        </button>
      )}
      {stretch && (
        <button type="button" class="chip" onClick={() => update({ range: null })} title="Calls of all of time">
          a stretch of time ×
        </button>
      )}
    </div>
  );
}
