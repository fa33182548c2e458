// The timeline below the picture: transport, lanes, and what is open at the cursor.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { recentBlocks } from "../../model/recent.ts";
import { currentBlock, currentPosition, isPlaying, watchCursor } from "../../model/replay.ts";
import { hasCode } from "../../model/session.ts";
import { settings } from "../../model/settings.ts";
import { binsWanted, showSpan, visibleSpan, watchTimeline, wholeTimeline } from "../../model/timeline.ts";
import { cursor, view } from "../../model/view-state.ts";
import { watchCallLanes } from "../../model/calls/call-lanes.ts";
import { isRecorded, madeHere, watchNearCalls } from "../../model/calls/near-calls.ts";
import { ApiCallsList } from "./api-calls-list.tsx";
import { CallsList } from "./calls-list.tsx";
import { EventsList } from "./events-list.tsx";
import { LaneTables } from "./lane-tables.tsx";
import { Lanes } from "./lanes.tsx";
import { registerTimelineKeys } from "./timeline-keys.ts";
import { Transport } from "./transport.tsx";

export function TimelinePanel() {
  const box = useRef<HTMLElement>(null);
  // Lanes are at most as wide as all of it: so they have enough bins as soon as they are there.
  useLayoutEffect(() => {
    binsWanted.value = Math.max(Math.ceil((box.current?.clientWidth ?? 0) / 50) * 50, 100);
  }, []);
  useEffect(watchTimeline, []);
  useEffect(watchCursor, []);
  useEffect(watchCallLanes, []);
  useEffect(watchNearCalls, []);
  useEffect(registerTimelineKeys, []);
  const timeline = wholeTimeline.value;
  const at = cursor.value;
  // While it plays only what ran last is known.
  const newest = recentBlocks.value?.[0]?.block ?? -1;
  return (
    <section
      ref={box}
      class="timeline"
      aria-label="Timeline"
      data-timeline
      data-position={at ? currentPosition.value : undefined}
      data-thread={at?.thread}
      data-block={at ? (isPlaying.value ? newest : currentBlock.value) : undefined}
      data-call-here={madeHere.value?.call}
      data-playing={isPlaying.value ? "1" : undefined}
    >
      <Transport />
      {!settings.value.showsLanes ? null : timeline ? (
        <div class="timeline-body">
          <div class="timeline-lanes">
            <Lanes />
            <Legend />
            <LaneTables />
          </div>
          {timeline.unit && <Side />}
        </div>
      ) : (
        <p class="waiting">Loading the timeline …</p>
      )}
    </section>
  );
}

function Side() {
  const [chosen, setTab] = useState<"calls" | "events" | "api" | null>(null);
  // Who looks at calls looks for theirs first.
  const asked = chosen ?? (view.value === "calls" ? "api" : "calls");
  const tab = asked === "api" && !isRecorded.value ? "calls" : asked;
  return (
    <div class="timeline-side">
      <div class="side-tabs" role="group" aria-label="Beside the lanes">
        <button type="button" aria-pressed={tab === "calls"} onClick={() => setTab("calls")}>
          Call stack
        </button>
        {isRecorded.value && (
          <button
            type="button"
            title="Recorded calls around the cursor, in the order of execution"
            aria-pressed={tab === "api"}
            onClick={() => setTab("api")}
          >
            API calls
          </button>
        )}
        <button type="button" aria-pressed={tab === "events"} onClick={() => setTab("events")}>
          Events
        </button>
      </div>
      {tab === "calls" ? <CallsList /> : tab === "api" ? <ApiCallsList /> : <EventsList />}
    </div>
  );
}

function Legend() {
  const timeline = wholeTimeline.value!;
  return (
    <ul class="timeline-legend" aria-label="Legend of the timeline">
      {timeline.unit && (
        <li>
          <span class="swatch heat" aria-hidden="true" />
          {timeline.unit}s run, from few to many
        </li>
      )}
      {hasCode.value && (
        <li>
          <span class="swatch new" aria-hidden="true" />
          new code
        </li>
      )}
      {timeline.unit && (
        <li>
          <span class="swatch call" aria-hidden="true" />
          system call
        </li>
      )}
      {isRecorded.value && (
        <li>
          <span class="swatch recorded" aria-hidden="true" />
          {hasCode.value ? "recorded calls" : "calls and places of probes"}, below those around them
        </li>
      )}
      {hasCode.value && (
        <li>
          <span class="swatch signal" aria-hidden="true" />
          signal
        </li>
      )}
      {hasCode.value && (
        <li>
          <span class="swatch hatched" aria-hidden="true" />
          order not recorded
        </li>
      )}
      <li>
        <span class="swatch flag" aria-hidden="true" />
        bookmark
      </li>
      <li class="timeline-hint">
        {visibleSpan.value ? (
          <button type="button" onClick={() => showSpan(null)}>
            Show all of time
          </button>
        ) : (
          "wheel: zoom, with shift: other threads · drag: range · click: cursor"
        )}
      </li>
    </ul>
  );
}
