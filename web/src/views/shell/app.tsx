// The frame of the page: header, what is looked at, and the panels around it.
import { useEffect } from "preact/hooks";
import { failure, failureStatus, isLive, isStopped, summary } from "../../model/session.ts";
import { settings } from "../../model/settings.ts";
import { notice, openDialog, openPopover } from "../../model/shell-state.ts";
import { view } from "../../model/view-state.ts";
import { callSummary } from "../../model/calls/calls.ts";
import { CallsView } from "../calls/calls-view.tsx";
import { EntitiesPanel } from "../calls/entities-panel.tsx";
import { CompareFunctionsPanel, CompareView } from "../compare/compare-later.tsx";
import { ExportDialog } from "../export/export-dialog.tsx";
import { DetachDialog, KillDialog } from "../live/leaving-dialogs.tsx";
import { FilterChips } from "../filters/filter-chips.tsx";
import { FilterPanel } from "../filters/filter-panel.tsx";
import { HighlightsPanel } from "../filters/highlights-panel.tsx";
import { FunctionView } from "../function/function-view.tsx";
import { GraphView } from "../graph/graph-view.tsx";
import { LookPanel } from "../graph/look-controls.tsx";
import { ListingView } from "../listing/listing-view.tsx";
import { ProcessesView } from "../processes/processes-view.tsx";
import { SearchDialog } from "../search/search-dialog.tsx";
import { TimelinePanel } from "../timeline/timeline-panel.tsx";
import { DetailsPanel } from "./details-panel.tsx";
import { FunctionsPanel } from "./functions-panel.tsx";
import { Header } from "./header.tsx";
import { HelpDialog } from "./help-dialog.tsx";
import { LossesDialog } from "./losses-dialog.tsx";
import { Separator } from "./separator.tsx";
import { SettingsDialog } from "./settings-dialog.tsx";
import { VIEW_NAMES } from "./shell-keys.ts";
import { StopDialog, Stopped } from "./stop-dialog.tsx";

const MAIN = {
  graph: GraphView,
  function: FunctionView,
  listing: ListingView,
  processes: ProcessesView,
  calls: CallsView,
  compare: CompareView,
};

const DIALOGS = {
  help: HelpDialog,
  search: SearchDialog,
  settings: SettingsDialog,
  losses: LossesDialog,
  export: ExportDialog,
  stop: StopDialog,
  detach: DetachDialog,
  kill: KillDialog,
};
const POPOVERS = { filter: FilterPanel, highlights: HighlightsPanel, look: LookPanel };

export function App() {
  return isStopped.value ? <Stopped /> : <Shell />;
}

function Shell() {
  const Main = MAIN[view.value];
  const Open = openDialog.value && DIALOGS[openDialog.value];
  const Over = openPopover.value && POPOVERS[openPopover.value];
  const { showsFunctions, showsDetails, showsTimeline, functionsWidth, detailsWidth, timelineHeight } = settings.value;
  const trace = summary.value;
  // Two need the room; and their functions are others than those of one.
  const isComparing = view.value === "compare";
  // Calls are about files and sockets, and the table of them needs the room.
  const hasEntities = view.value === "calls" && callSummary.value !== null;
  // The graph makes ready what it draws with while the trace is opened.
  const isOpening = view.value === "graph" && failure.value === null;
  useEffect(() => {
    document.title = trace ? `${trace.name} – clew` : "clew";
  }, [trace]);
  return (
    <div class="shell">
      <Header />
      {failure.value !== null && trace && (
        <div class="failure" role="alert">
          <span>{failure.value}</span>
          <button type="button" onClick={() => (failure.value = null)}>
            Close
          </button>
        </div>
      )}
      <main class="body">
        <FilterChips />
        <div class="panels">
          {showsFunctions && (
            <>
              <div class="side" style={{ width: `${functionsWidth}px` }}>
                {isComparing ? <CompareFunctionsPanel /> : hasEntities ? <EntitiesPanel /> : <FunctionsPanel />}
              </div>
              <Separator
                size="functionsWidth"
                label={hasEntities ? "Width of the entities" : "Width of the table of functions"}
                side={1}
              />
            </>
          )}
          <section class="main" aria-label={`${VIEW_NAMES[view.value]} view`} tabIndex={-1}>
            {trace || isOpening ? (
              <Main />
            ) : failure.value === null ? (
              <p class="waiting">Opening the trace …</p>
            ) : (
              <NoTrace />
            )}
            {Over && <Over key={openPopover.value} />}
          </section>
          {showsDetails && !isComparing && (
            <>
              <Separator size="detailsWidth" label="Width of the details" side={-1} />
              <div class="side details-side" style={{ width: `${detailsWidth}px` }}>
                <DetailsPanel />
              </div>
            </>
          )}
        </div>
        {showsTimeline && !isLive.value && (
          <>
            <Separator size="timelineHeight" label="Height of the timeline" side={-1} />
            <div class="below" style={timelineHeight > 0 ? { height: `${timelineHeight}px` } : {}}>
              <TimelinePanel />
            </div>
          </>
        )}
      </main>
      {Open && <Open />}
      <div class="notice" role="status">
        {notice.value && <span>{notice.value}</span>}
      </div>
    </div>
  );
}

/** Why there is nothing to look at, and the way out. */
function NoTrace() {
  const [title, way] = WAYS[String(failureStatus.value)] ?? ["Something went wrong", "Load the page again."];
  return (
    <div class="no-trace" role="alert">
      <h2>{title}</h2>
      <p>{failure.value}</p>
      <p class="quiet">{way}</p>
    </div>
  );
}

const WAYS: Record<string, [string, string] | undefined> = {
  403: [
    "This page may not read the trace",
    "The address has to end as clew view printed it, with #token= and the token.",
  ],
  422: ["The trace is damaged", "clew verify tells what is wrong with it."],
  400: ["The address names what there is not", "Take the part behind the token away from the address."],
  0: ["The server does not answer", "Start clew view again and open the address that it prints."],
};
