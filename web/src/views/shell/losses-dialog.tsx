// What the trace does not have: losses and warnings of the recorder, in words.
import { lossName } from "../../base/ends.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import { isFile, leftOut, summary } from "../../model/session.ts";
import { Dialog, DialogHead } from "./dialog.tsx";

export function LossesDialog() {
  const known = summary.value;
  if (!known) {
    return null;
  }
  const lost = Object.entries(known.losses).filter(([, n]) => n > 0);
  const threads = known.processes.flatMap((process) => process.threads.filter((thread) => thread.lost_records > 0));
  return (
    <Dialog name="losses" title="Losses">
      <DialogHead title="What is not in the trace" />
      {lost.length === 0 ? (
        <p>Nothing was lost: every record of every thread is in the trace.</p>
      ) : (
        <ul>
          {lost.map(([name, n]) => (
            <li key={name}>
              <b>{formatInteger(n)}</b> {lossName(name)}
            </li>
          ))}
          {known.releases.map(({ pid, reason, threads: n, since }) => (
            <li key={`${pid} ${reason}`}>
              process {pid}: {formatInteger(n)} {n === 1 ? "thread" : "threads"} natively since {formatDuration(since)},
              because of: {reason.replaceAll("_", " ")}
            </li>
          ))}
          {threads.map((thread) => (
            <li key={thread.tid}>
              thread {thread.tid} {thread.name}: {formatInteger(thread.lost_records)} records
            </li>
          ))}
        </ul>
      )}
      {isFile.value && (
        <>
          <h3>This page is a file</h3>
          <p>
            It has what `clew export --to html` put into it, and asks nobody for more. Searches in code and single
            threads need `clew view`; a replay goes from one recorded place to the next.
          </p>
          {leftOut.value.length > 0 && (
            <ul data-left-out>
              {leftOut.value.map((what) => (
                <li key={what}>not in the file: {what}</li>
              ))}
            </ul>
          )}
        </>
      )}
      {known.warnings.length > 0 && (
        <>
          <h3>The recorder warned</h3>
          <ul>
            {known.warnings.map((warning, index) => (
              <li key={index}>{warning}</li>
            ))}
          </ul>
        </>
      )}
    </Dialog>
  );
}
