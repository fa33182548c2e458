// What the lanes show, as a table for each thread, for those who can't see them.
import type { TimelineThread } from "../../api/timeline.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import { shownTimeline } from "../../model/timeline.ts";
import { GAP_REASON, TICK_KIND } from "../../protocol/generated.ts";

const MOST_GAPS = 100;
const MOST_LANES = 64;

export function LaneTables() {
  const timeline = shownTimeline.value;
  if (!timeline) {
    return null;
  }
  const width = timeline.threads.length > MOST_LANES;
  return (
    <div class="visually-hidden">
      {timeline.threads.slice(0, MOST_LANES).map((thread) => (
        <table key={thread.tid} data-lane={thread.tid}>
          <caption>
            Thread {thread.name} {thread.tid}, from {formatDuration(timeline.from)} to {formatDuration(timeline.to)}
          </caption>
          <tbody>
            <Row name="Lived" value={`${formatDuration(thread.started)} to ${formatDuration(thread.ended)}`} />
            {timeline.unit && (
              <Row name={`Ran in order, ${timeline.unit}s`} value={formatInteger(Math.round(sum(thread.density)))} />
            )}
            <Row name="New blocks of its own" value={formatInteger(sum(thread.newCode))} />
            <Row name="System calls" value={formatInteger(count(thread, (kind) => kind === TICK_KIND.system_call))} />
            <Row
              name="Signals and faults"
              value={formatInteger(count(thread, (kind) => kind !== TICK_KIND.system_call))}
            />
            {thread.gaps.length > 0 && (
              <tr>
                <th scope="row">Order not recorded</th>
                <td>
                  <ul>
                    {thread.gaps.slice(0, MOST_GAPS).map((gap) => (
                      <li key={gap.from} data-hatched data-from={gap.from} data-to={gap.to} data-thread={thread.tid}>
                        order not recorded from {formatDuration(gap.from)} to {formatDuration(gap.to)}
                        {gap.covers < gap.to - gap.from && <>, for {formatDuration(gap.covers)} of it</>}
                        {gap.reason === GAP_REASON.busy && <>: {formatInteger(gap.executions)} executions counted</>}
                        {gap.reason === GAP_REASON.lost && <>: {formatInteger(gap.executions)} executions lost</>}
                        {gap.reason === GAP_REASON.thinned && (
                          <>: {formatInteger(gap.executions)} executions counted, their order left out</>
                        )}
                      </li>
                    ))}
                    {thread.gaps.length > MOST_GAPS && <li>and {thread.gaps.length - MOST_GAPS} more</li>}
                  </ul>
                </td>
              </tr>
            )}
          </tbody>
        </table>
      ))}
      {width && <p>and {timeline.threads.length - MOST_LANES} more threads</p>}
      <p>New blocks in all: {formatInteger(sum(timeline.newCode))}</p>
    </div>
  );
}

function Row({ name, value }: { name: string; value: string }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{value}</td>
    </tr>
  );
}

function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) {
    total += values[i];
  }
  return total;
}

function count(thread: TimelineThread, isWanted: (kind: number) => boolean): number {
  return thread.ticks.reduce((total, tick) => total + (isWanted(tick.kind) ? tick.count : 0), 0);
}
