// What each thread of a running program did in the last half minute, as small pictures with the number beside them.
import { formatInteger, formatShort } from "../../base/format.ts";
import { SAMPLE_MS, SAMPLES, type ThreadActivity } from "../../model/live/live-activity.ts";

const WIDTH = 90;
const HEIGHT = 18;
const SPAN_SECONDS = (SAMPLES * SAMPLE_MS) / 1000;

export function ThreadRows({ threads, ended }: { threads: readonly ThreadActivity[]; ended: number }) {
  const most = Math.max(1, ...threads.map(({ rates }) => Math.max(...rates)));
  return (
    <section class="live-threads">
      <h2 id="live-threads">Threads</h2>
      <ul aria-labelledby="live-threads">
        {threads.map(({ thread, rates }) => {
          const name = thread.members > 1 ? `${formatInteger(thread.members)} that ended` : String(thread.tid);
          return (
            <li key={`${thread.tid} ${thread.members}`} class={thread.isRunning ? "" : "quiet"}>
              <span class="name" title={thread.name}>
                {name} {thread.name}
              </span>
              <svg width={WIDTH} height={HEIGHT} role="img" aria-label={`The last ${SPAN_SECONDS} seconds`}>
                <polyline points={pointsOf(rates, most)} />
              </svg>
              <span class="count">
                {thread.isRunning ? `${formatShort(rates[SAMPLES - 1])}/s` : "ended"}
                <span class="visually-hidden"> instructions, {formatShort(thread.instructions)} in all</span>
              </span>
            </li>
          );
        })}
      </ul>
      {ended > 0 && <p class="quiet">{formatInteger(ended)} ended so far</p>}
    </section>
  );
}

function pointsOf(rates: Float64Array, most: number): string {
  return [...rates]
    .map(
      (rate, i) =>
        `${((i * WIDTH) / (rates.length - 1)).toFixed(1)},${(HEIGHT - 1 - ((HEIGHT - 2) * rate) / most).toFixed(1)}`,
    )
    .join(" ");
}
