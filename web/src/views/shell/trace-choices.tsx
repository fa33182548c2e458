// Fields that choose one of the traces that are open, and one of the processes of a trace.
import type { ProcessSummary } from "../../api/traces.ts";
import { traceNames } from "../../model/session.ts";

interface Choice {
  label: string;
  value: number | undefined;
  onChoose: (value: number) => void;
}

export function TraceChoice({ label, value, onChoose }: Choice) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChoose(Number(event.currentTarget.value))}>
      {traceNames.value.map((one) => (
        <option key={one.index} value={one.index}>
          {one.name}
        </option>
      ))}
    </select>
  );
}

/** Of a single process only its number. */
export function ProcessChoice({ label, value, onChoose, of }: Choice & { of: ProcessSummary[] }) {
  if (of.length < 2) {
    return <span class="quiet">{of[0] && `pid ${of[0].pid}`}</span>;
  }
  return (
    <select aria-label={label} value={value} onChange={(event) => onChoose(Number(event.currentTarget.value))}>
      {of.map((one) => (
        <option key={one.process_id} value={one.process_id}>
          {one.pid} {one.command.join(" ").slice(0, 60)}
        </option>
      ))}
    </select>
  );
}
