// What is selected, in words: where it is, how often it ran, who calls it and what it calls.
import { useMemo } from "preact/hooks";
import { formatAddress, formatDuration, formatInteger, formatShare } from "../../base/format.ts";
import { currentPreview } from "../../model/previews.ts";
import { selectedFunction } from "../../model/selected.ts";
import { counts, functions, isCounted, isLive, process, summary } from "../../model/session.ts";
import { update } from "../../model/view-state.ts";
import { BlockDetails } from "./block-details.tsx";

const MOST_LINKS = 12;
const MOST_THREADS = 8;

export function DetailsPanel() {
  const of = functions.value;
  const index = selectedFunction.value;
  return (
    <section class="panel details" aria-label="Details">
      {of && index >= 0 ? <FunctionDetails index={index} /> : <ProcessDetails />}
    </section>
  );
}

/** What there is to say of the process while nothing is selected. */
function ProcessDetails() {
  const known = process.value;
  const of = functions.value;
  if (!known || !of) {
    return <p class="quiet">Nothing is selected.</p>;
  }
  const instructions = known.threads.reduce((sum, thread) => sum + thread.instructions, 0);
  return (
    <>
      <h2>{known.executable}</h2>
      <dl class="facts">
        <dt>Command</dt>
        <dd>
          <code>{known.command.join(" ").slice(0, 400)}</code>
        </dd>
        <dt>Process</dt>
        <dd>{known.pid}</dd>
        <dt>Ran for</dt>
        <dd>{formatDuration(known.ended - known.started)}</dd>
        {isCounted.value && (
          <>
            <dt>Instructions</dt>
            <dd>{formatInteger(instructions)}</dd>
          </>
        )}
        <dt>Threads</dt>
        <dd>{formatInteger(known.threads.length)}</dd>
        <dt>Functions</dt>
        <dd>{formatInteger(of.count)}</dd>
        <dt>Blocks</dt>
        <dd>{formatInteger(of.nBlocks)}</dd>
      </dl>
      <p class="quiet">Choose a function in the table or in the graph to see what it did.</p>
    </>
  );
}

function FunctionDetails({ index }: { index: number }) {
  const of = functions.value!;
  const executed = counts.value;
  const image = of.images[of.image[index]];
  const instructions = executed?.functionInstructions[index] ?? 0;
  return (
    <>
      <h2 title={of.names[index]}>{of.names[index]}</h2>
      <div class="actions">
        <button type="button" disabled={isLive.value} onClick={() => update({ view: "function" })}>
          Open function
        </button>
        <button type="button" disabled={isLive.value} onClick={() => update({ view: "listing" })}>
          Show in listing
        </button>
      </div>
      <dl class="facts">
        <dt>Image</dt>
        <dd title={image?.path}>{image?.name ?? "outside of images"}</dd>
        <dt>Address</dt>
        <dd>
          <code>{formatAddress(of.address[index])}</code>
        </dd>
        <dt>Instructions</dt>
        <dd data-fact="instructions">
          {formatInteger(instructions)}{" "}
          <span class="quiet">
            {isCounted.value ? formatShare(instructions, summary.value?.totals.instructions ?? 0) : "that ran"}
          </span>
        </dd>
        {isCounted.value && (
          <>
            <dt>Entered</dt>
            <dd data-fact="entries">{formatInteger(executed?.functionEntries[index] ?? 0)}</dd>
          </>
        )}
        <dt>Blocks</dt>
        <dd>{formatInteger(of.firstBlock[index + 1] - of.firstBlock[index])}</dd>
        <dt>Discovered</dt>
        <dd>{formatDuration(of.discovered[index])} after the start</dd>
      </dl>
      <BlockDetails />
      <ThreadShares index={index} />
      <Links index={index} isCaller={true} />
      <Links index={index} isCaller={false} />
    </>
  );
}

/** Which threads executed the function, where there are several. */
function ThreadShares({ index }: { index: number }) {
  const found = currentPreview.value;
  const of = functions.value!;
  const shares = useMemo(() => {
    const rows: { tid: number; instructions: number }[] = [];
    for (let row = 0; row < (found?.byThread.thread.length ?? 0); row++) {
      if (found!.byThread.function[row] === index) {
        rows.push({ tid: of.threads[found!.byThread.thread[row]], instructions: found!.byThread.instructions[row] });
      }
    }
    return rows.sort((a, b) => b.instructions - a.instructions);
  }, [found, index]);
  if (of.threads.length < 2 || shares.length === 0) {
    return null;
  }
  const whole = shares.reduce((sum, { instructions }) => sum + instructions, 0);
  const names = new Map(process.value?.threads.map((thread) => [thread.tid, thread.name]));
  return (
    <>
      <h3>By thread</h3>
      <ul class="links">
        {shares.slice(0, MOST_THREADS).map(({ tid, instructions }) => (
          <li key={tid}>
            <button type="button" title="Look at this thread only" onClick={() => update({ threads: [tid] })}>
              <span class="name">
                {tid} {names.get(tid)}
              </span>
              <span class="count">{formatShare(instructions, whole)}</span>
            </button>
          </li>
        ))}
        {shares.length > MOST_THREADS && <li class="quiet">and {shares.length - MOST_THREADS} more</li>}
      </ul>
    </>
  );
}

/** The functions that call this one, or that it calls, the busiest first. */
function Links({ index, isCaller }: { index: number; isCaller: boolean }) {
  const of = functions.value!;
  const executions = counts.value?.linkExecutions;
  const [own, other] = isCaller ? [of.linkTarget, of.linkSource] : [of.linkSource, of.linkTarget];
  const found: number[] = [];
  for (let link = 0; link < own.length; link++) {
    if (own[link] === index) {
      found.push(link);
    }
  }
  found.sort((a, b) => (executions?.[b] ?? 0) - (executions?.[a] ?? 0) || a - b);
  if (found.length === 0) {
    return null;
  }
  return (
    <>
      <h3>{isCaller ? "Called by" : "Calls"}</h3>
      <ul class="links">
        {found.slice(0, MOST_LINKS).map((link) => (
          <li key={link}>
            <button type="button" onClick={() => update({ selection: { kind: "function", index: other[link] } })}>
              <span class="name" title={of.names[other[link]]}>
                {of.names[other[link]]}
              </span>
              {isCounted.value && <span class="count">{formatInteger(executions?.[link] ?? 0)}</span>}
            </button>
          </li>
        ))}
        {found.length > MOST_LINKS && <li class="quiet">and {formatInteger(found.length - MOST_LINKS)} more</li>}
      </ul>
    </>
  );
}
