// Signals, faults and system calls of the time in view, by name; a click puts the cursor there.
import { useEffect, useState } from "preact/hooks";
import { type EventRow, fetchEvents } from "../../api/timeline.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import { goToTime } from "../../model/replay.ts";
import { chosenThreads, client, processId } from "../../model/session.ts";
import { span } from "../../model/timeline.ts";
import { viewState } from "../../model/view-state.ts";
import { VirtualList } from "../shell/virtual-list.tsx";

const DELAY_MS = 200;
const ROW_HEIGHT = 20;

export function EventsList() {
  const [found, setFound] = useState<{ events: EventRow[]; omitted: number } | null>(null);
  const [current, setCurrent] = useState(-1);
  const [from, to] = span.value;
  const threads = chosenThreads.value;
  useEffect(() => {
    let isOver = false;
    const timer = window.setTimeout(() => {
      fetchEvents(client(), viewState.peek().trace, processId.peek(), [from, to], threads).then(
        (events) => {
          if (!isOver) {
            setFound(events);
            setCurrent(-1);
          }
        },
        () => setFound({ events: [], omitted: 0 }),
      );
    }, DELAY_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [from, to, threads]);
  if (!found || found.events.length === 0) {
    return <p class="quiet side-empty">{found ? "None in this time." : "Loading …"}</p>;
  }
  const move = (row: number) => {
    setCurrent(row);
    goToTime(found.events[row].tid, found.events[row].time);
  };
  return (
    <>
      <VirtualList
        count={found.events.length}
        rowHeight={ROW_HEIGHT}
        label="System calls and signals"
        current={current}
        onMove={move}
        row={(index) => {
          const event = found.events[index];
          return (
            <>
              <span class="event-time">{formatDuration(event.time)}</span>
              <span class={`name ${event.kind}`}>{event.name}</span>
              <span class="event-time">{event.tid}</span>
            </>
          );
        }}
      />
      {found.omitted > 0 && <p class="quiet side-empty">and {formatInteger(found.omitted)} more: zoom in</p>}
    </>
  );
}
