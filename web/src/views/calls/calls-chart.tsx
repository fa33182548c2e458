// Calls over time as stacked bars, and as a table for those who can't see them. A drag chooses a stretch of time.
import { useMemo, useRef, useState } from "preact/hooks";
import type { CallChart, CallFilter } from "../../api/calls.ts";
import { formatDuration, formatInteger, formatShare } from "../../base/format.ts";
import { binsOf, binStart, stackBars, stretchOf } from "../../model/calls/stacked-bars.ts";
import { isOfAll } from "../../model/calls/call-processes.ts";
import { callChart, chartBy } from "../../model/calls/calls.ts";
import { bindKeys } from "../../model/keys.ts";
import { showProcess } from "../../model/session.ts";
import { type ChartGroup, calls, CHART_GROUPS, range, update, updateCalls } from "../../model/view-state.ts";

const MOST_ROWS = 200;

interface Stretch {
  isBegun: boolean;
  move: (by: number, isExtending: boolean) => void;
  take: () => void;
  drop: () => void;
}

const BAR = "A bar back or on";
const EXTEND = "Extend the stretch of time by a bar";
const pressKey = bindKeys<Stretch>(
  "Calls over time",
  [
    { key: "ArrowLeft", what: BAR, run: ({ move }) => move(-1, false) },
    { key: "ArrowRight", what: BAR, run: ({ move }) => move(1, false) },
    { key: "Shift+ArrowLeft", what: EXTEND, run: ({ move }) => move(-1, true) },
    { key: "Shift+ArrowRight", what: EXTEND, run: ({ move }) => move(1, true) },
    { key: "Enter", what: "Choose the stretch", when: ({ isBegun }) => isBegun, run: ({ take }) => take() },
    { key: "Escape", what: "Leave it as it was", when: ({ isBegun }) => isBegun, run: ({ drop }) => drop() },
  ],
  { ignoresModifiers: true },
);

/** What the legend chooses calls by; of threads, and of kinds, it chooses none. */
const CHOOSERS: Partial<Record<ChartGroup, { chosen: () => string | null; choose: (word: string | null) => void }>> = {
  name: { chosen: () => calls.value.name, choose: (name) => updateCalls({ name }) },
  filter: {
    chosen: () => calls.value.filter,
    choose: (word) => updateCalls({ filter: word as CallFilter | null }),
  },
  process: { chosen: () => null, choose: (id) => showProcess(Number(id)) },
};

export function CallsChart({ chart }: { chart: CallChart }) {
  const bars = useMemo(() => stackBars(chart), [chart]);
  const box = useRef<HTMLDivElement>(null);
  /** The bins that are being chosen: from the first to the second, whichever comes first. */
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const isDragging = useRef(false);
  const chooser = CHOOSERS[chartBy.value];
  const stretch = range.value;
  const chosen = stretch && binsOf(chart, stretch);
  const marked = drag ?? chosen;
  const binOf = (event: PointerEvent) => {
    const place = box.current!.getBoundingClientRect();
    const share = (event.clientX - place.left) / Math.max(place.width, 1);
    return Math.min(Math.max(Math.floor(share * chart.bins), 0), chart.bins - 1);
  };
  const take = ([a, b]: [number, number]) => {
    setDrag(null);
    const ends = stretchOf(chart, a, b);
    update({ range: [Math.max(ends[0], 0), Math.max(ends[1], 1)] });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const move = (by: number, isExtending: boolean) => {
      const [from, to] = drag ?? chosen ?? [0, 0];
      const next = drag || chosen ? Math.min(Math.max(to + by, 0), chart.bins - 1) : 0;
      setDrag(isExtending ? [from, next] : [next, next]);
    };
    pressKey(event, { isBegun: drag !== null, move, take: () => take(drag!), drop: () => setDrag(null) });
  };
  return (
    <section class="calls-chart" aria-label="Calls over time" data-chart-calls={bars.sums.reduce((a, b) => a + b, 0)}>
      <div class="calls-chart-head">
        <label>
          Calls over time by{" "}
          <select
            aria-label="What the chart tells apart"
            value={chartBy.value}
            onChange={(event) => updateCalls({ by: event.currentTarget.value as ChartGroup })}
          >
            {CHART_GROUPS.filter((one) => one !== "process" || isOfAll.value).map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        <ul aria-label="Legend of the chart">
          {bars.series.map((series, index) => {
            // Of a process it is its number that is chosen by.
            const word = callChart.value?.names[index] ?? series.name;
            const isChosen = chooser?.chosen() === word;
            return (
              <li key={word}>
                <span class="swatch" style={{ background: series.color }} aria-hidden="true" />
                <button
                  type="button"
                  disabled={!chooser || series.isOthers}
                  aria-pressed={isChosen}
                  onClick={() => chooser?.choose(isChosen ? null : word)}
                >
                  <bdi>{series.label}</bdi> {formatInteger(series.calls)}
                </button>
              </li>
            );
          })}
        </ul>
      </div>
      <div
        ref={box}
        class="calls-bars"
        role="slider"
        aria-label="Stretch of time of the calls"
        aria-valuemin={0}
        aria-valuemax={chart.bins - 1}
        aria-valuenow={marked ? marked[1] : 0}
        aria-valuetext={tellMarked(chart, marked, bars.sums)}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onBlur={() => setDrag(null)}
        onPointerDown={(event) => {
          if (event.button === 0) {
            isDragging.current = true;
            box.current!.setPointerCapture(event.pointerId);
            setDrag([binOf(event), binOf(event)]);
          }
        }}
        onPointerMove={(event) => {
          if (isDragging.current && drag) {
            setDrag([drag[0], binOf(event)]);
          }
        }}
        onPointerUp={(event) => {
          if (isDragging.current && drag) {
            take([drag[0], binOf(event)]);
          }
          isDragging.current = false;
        }}
        onPointerCancel={() => {
          isDragging.current = false;
          setDrag(null);
        }}
      >
        <svg viewBox={`0 0 ${chart.bins} ${bars.highest}`} preserveAspectRatio="none" aria-hidden="true">
          {marked && (
            <rect
              class="marked"
              x={Math.min(...marked)}
              y={0}
              width={Math.abs(marked[1] - marked[0]) + 1}
              height={bars.highest}
            />
          )}
          {bars.series.map((series) => (
            <path key={series.color} d={series.path} fill={series.color} />
          ))}
        </svg>
      </div>
      <div class="calls-axis quiet" aria-hidden="true">
        <span>{formatDuration(chart.from)}</span>
        <span>at most {formatInteger(bars.highest)} in a bar</span>
        <span>{formatDuration(chart.to)}</span>
      </div>
      <ChartTable chart={chart} sums={bars.sums} />
    </section>
  );
}

function ChartTable({ chart, sums }: { chart: CallChart; sums: readonly number[] }) {
  const total = sums.reduce((a, b) => a + b, 0);
  const rows = sums.flatMap((sum, bin) => (sum > 0 ? [bin] : [])).slice(0, MOST_ROWS);
  return (
    <div class="visually-hidden">
      <table data-chart-table>
        <caption>Calls over time, bars with calls</caption>
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col">All</th>
            {chart.names.map((name, index) => (
              <th key={index} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((bin) => (
            <tr key={bin}>
              <th scope="row">{formatDuration(binStart(chart, bin))}</th>
              <td>
                {formatInteger(sums[bin])}, {formatShare(sums[bin], total)}
              </td>
              {chart.names.map((_, index) => (
                <td key={index}>{formatInteger(chart.counts[index * chart.bins + bin])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function tellMarked(chart: CallChart, marked: [number, number] | null, sums: readonly number[]): string {
  if (!marked) {
    return "all of time";
  }
  const [first, last] = [Math.min(...marked), Math.max(...marked)];
  const n = sums.slice(first, last + 1).reduce((a, b) => a + b, 0);
  return `${formatDuration(binStart(chart, first))} to ${formatDuration(binStart(chart, last + 1))}: ${n} calls`;
}
