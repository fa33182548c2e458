// What the colours of the picture mean, with numbers.
import { type Rgb, toHex } from "../../base/color.ts";
import { formatInteger } from "../../base/format.ts";
import type { Legend } from "../../model/graph/paint.ts";
import { IN_COLOR, OUT_COLOR } from "./marked-edges.ts";

/** What the colours of the edges at what is selected mean. */
export const SELECTED_LEGEND: readonly { color: Rgb; label: string }[] = [
  { color: OUT_COLOR, label: "leads away, bright at its end" },
  { color: IN_COLOR, label: "leads here" },
];

/** What ring and glow mean where there is a place in time. */
export const REPLAY_LEGEND = ["ran last", "ran just before, the brighter the later"] as const;

export function LegendPanel({
  legend,
  edges,
  hasSelection,
  hasCursor,
}: {
  legend: Legend | null;
  /** What the colours of edges mean, where it is not what those of nodes do. */
  edges: readonly { color: Rgb; label: string }[];
  hasSelection: boolean;
  /** Whether there is a place in time. */
  hasCursor: boolean;
}) {
  if (!legend) {
    return null;
  }
  return (
    <section class="graph-legend" aria-label="Legend" data-overlay>
      <h2>{legend.title}</h2>
      {legend.ramp && <Ramp ramp={legend.ramp} />}
      {legend.swatches.length > 0 && (
        <ul>
          {legend.swatches.map(({ color, label, count }) => (
            <li key={label}>
              <span class="swatch" style={{ background: toHex(color) }} />
              <span class="name" title={label}>
                {label}
              </span>
              <span class="count">{formatInteger(count)}</span>
            </li>
          ))}
        </ul>
      )}
      {edges.length > 0 && <Lines title="Edges" lines={edges} />}
      {hasSelection && <Lines title="At what is selected" lines={SELECTED_LEGEND} />}
      {hasCursor && (
        <>
          <h3>At the cursor</h3>
          <ul class="replay-legend">
            <li>
              <span class="ring" />
              {REPLAY_LEGEND[0]}
            </li>
            <li>
              <span class="glow" />
              {REPLAY_LEGEND[1]}
            </li>
          </ul>
        </>
      )}
    </section>
  );
}

function Lines({ title, lines }: { title: string; lines: readonly { color: Rgb; label: string }[] }) {
  return (
    <>
      <h3>{title}</h3>
      <ul class="lines">
        {lines.map(({ color, label }) => (
          <li key={label}>
            <span class="stroke" style={{ background: toHex(color) }} />
            {label}
          </li>
        ))}
      </ul>
    </>
  );
}

function Ramp({ ramp }: { ramp: NonNullable<Legend["ramp"]> }) {
  const stops = ramp.colors.map((color, i) => `${toHex(color)} ${(100 * i) / (ramp.colors.length - 1)}%`);
  return (
    <div class="ramp">
      <div class="ramp-bar" style={{ background: `linear-gradient(to right, ${stops.join(", ")})` }} />
      <div class="ramp-ticks">
        {ramp.ticks.map(({ at, label }) => (
          <span key={at} data-end={at === 0 ? "low" : at === 1 ? "high" : undefined} style={{ left: `${100 * at}%` }}>
            {label}
          </span>
        ))}
      </div>
    </div>
  );
}
