// The bar on top: which trace, what of it, which view, and what else there is.
import { formatBytes, formatInteger, formatShort } from "../../base/format.ts";
import { highlights } from "../../model/highlights.ts";
import {
  currentLink,
  hasCode,
  isFile,
  isLive,
  process,
  showProcess,
  summary,
  traceNames,
} from "../../model/session.ts";
import { openDialog, openPopover, tell, togglePopover } from "../../model/shell-state.ts";
import { INITIAL_CALLS, threads, update, VIEWS, view, viewState } from "../../model/view-state.ts";
import { toggleTheme, VIEW_NAMES } from "./shell-keys.ts";
import { ProcessChoice, TraceChoice } from "./trace-choices.tsx";

export function Header() {
  const nSets = highlights.value.length;
  return (
    <header class="header">
      <h1 class="brand">clew</h1>
      <TraceChooser />
      <Totals />
      <nav class="tabs" aria-label="Views">
        {VIEWS.map((name, index) => (
          <button
            key={name}
            type="button"
            class="tab"
            aria-pressed={view.value === name}
            disabled={isLive.value && name !== "graph"}
            title={
              isLive.value && name !== "graph" ? "Comes with the finished trace" : `${VIEW_NAMES[name]} (${index + 1})`
            }
            onClick={() => update({ view: name })}
          >
            {VIEW_NAMES[name]}
          </button>
        ))}
      </nav>
      <div class="tools" role="group" aria-label="Tools">
        <button
          type="button"
          title={isLive.value ? "Comes with the finished trace" : "Search (Ctrl+K or /)"}
          disabled={isLive.value}
          onClick={() => (openDialog.value = "search")}
        >
          Search
        </button>
        <button
          type="button"
          title="Filter and fold (i)"
          aria-expanded={openPopover.value === "filter"}
          onClick={() => togglePopover("filter")}
        >
          Filter
        </button>
        <button
          type="button"
          title="Highlight sets (u)"
          aria-expanded={openPopover.value === "highlights"}
          onClick={() => togglePopover("highlights")}
        >
          Sets{nSets > 0 ? ` ${nSets}` : ""}
        </button>
        <button type="button" title="Copy a link to what is shown" onClick={() => void copyLink()}>
          Link
        </button>
        <button
          type="button"
          title={isLive.value ? "Comes with the finished trace" : "Pictures, videos, tables (e)"}
          disabled={isLive.value}
          onClick={() => (openDialog.value = "export")}
        >
          Export
        </button>
        <button type="button" class="icon" title="Dark or light (t)" aria-label="Dark or light" onClick={toggleTheme}>
          ◐
        </button>
        <button
          type="button"
          class="icon"
          title="Settings"
          aria-label="Settings"
          onClick={() => (openDialog.value = "settings")}
        >
          ⚙
        </button>
        {!isFile.value && (
          <button
            type="button"
            class="icon"
            title="Stop the viewer: ends clew view"
            aria-label="Stop the viewer"
            onClick={() => (openDialog.value = "stop")}
          >
            ■
          </button>
        )}
        <button
          type="button"
          class="icon"
          title="Keys (?)"
          aria-label="Keys"
          onClick={() => (openDialog.value = "help")}
        >
          ?
        </button>
      </div>
    </header>
  );
}

async function copyLink(): Promise<void> {
  try {
    await navigator.clipboard.writeText(currentLink());
    tell("Link copied");
  } catch {
    tell("The browser did not let the page copy; the address bar has the same link");
  }
}

function TraceChooser() {
  const names = traceNames.value;
  return (
    <>
      {names.length > 1 ? (
        <TraceChoice
          label="Trace"
          value={viewState.value.trace}
          onChoose={(trace) =>
            update({
              trace,
              process: -1,
              threads: null,
              selection: null,
              cursor: null,
              camera: null,
              range: null,
              calls: INITIAL_CALLS,
            })
          }
        />
      ) : (
        <span class="trace-name" title={names[0]?.name ?? summary.value?.name}>
          {names[0]?.name ?? summary.value?.name}
        </span>
      )}
      <ProcessChoice
        label="Process"
        value={process.value?.process_id}
        onChoose={showProcess}
        of={summary.value?.processes ?? []}
      />
      <ThreadChooser />
    </>
  );
}

function ThreadChooser() {
  const own = process.value?.threads ?? [];
  const chosen = threads.value;
  // Of a recording that goes on counts are told of all threads together.
  if (own.length < 2 || isFile.value || isLive.value) {
    return null;
  }
  const one = chosen?.length === 1 ? String(chosen[0]) : chosen ? "several" : "all";
  return (
    <select
      aria-label="Thread"
      value={one}
      onChange={(event) => {
        const word = event.currentTarget.value;
        update({ threads: word === "all" ? null : [Number(word)] });
      }}
    >
      <option value="all">{own.length} threads</option>
      {chosen && chosen.length > 1 && (
        <option value="several" disabled>
          {chosen.length} of {own.length}
        </option>
      )}
      {own.map((thread) => (
        <option key={thread.tid} value={thread.tid}>
          {thread.tid} {thread.name}
        </option>
      ))}
    </select>
  );
}

function Totals() {
  const known = summary.value;
  if (!known) {
    return null;
  }
  const { totals, mode } = known;
  const lost = Object.values(known.losses).reduce((sum, n) => sum + n, 0);
  const hasWarnings = known.warnings.length > 0;
  return (
    <div class="totals">
      {isLive.value ? (
        <span class="chip warning">live</span>
      ) : (
        <button
          type="button"
          class={lost > 0 || hasWarnings ? "chip warning" : "chip"}
          title="What is not in the trace"
          onClick={() => (openDialog.value = "losses")}
        >
          {lost > 0 ? `${formatInteger(lost)} lost` : hasWarnings ? "warnings" : "nothing lost"}
        </button>
      )}
      {isFile.value && (
        <button
          type="button"
          class="chip"
          title="The page and the trace are one file; what is not in it"
          onClick={() => (openDialog.value = "losses")}
        >
          file
        </button>
      )}
      <span class="chip" title="What the recorder recorded">
        {hasCode.value ? mode : "events of probes"}
      </span>
      {mode !== "coverage" && hasCode.value && (
        <span class="chip" title={`${formatInteger(totals.instructions)} instructions`}>
          {formatShort(totals.instructions)} instructions
        </span>
      )}
      {hasCode.value && <span class="chip">{formatInteger(totals.blocks)} blocks</span>}
      {hasCode.value && <span class="chip">{formatInteger(totals.edges)} edges</span>}
      {!isLive.value && <span class="chip">{formatBytes(known.stored_bytes)}</span>}
    </div>
  );
}
