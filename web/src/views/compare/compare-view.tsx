// The view "Compare": the process that the page looks at, A, beside another one, B, of this trace or of another.
import { useEffect } from "preact/hooks";
import {
  comparison,
  compareFailure,
  compareWith,
  followComparison,
  pair,
  processB,
  summaryB,
  swapSides,
  traceB,
  union,
} from "../../model/compare/compare-session.ts";
import { followOrder, partings, stepBoth, stepParting } from "../../model/compare/partings.ts";
import { bindKeys } from "../../model/keys.ts";
import { process, summary, traceNames } from "../../model/session.ts";
import { compare, COMPARE_PARTS, type ComparePart, updateCompare, viewState } from "../../model/view-state.ts";
import { ToggleButton } from "../shell/toggle-button.tsx";
import { ProcessChoice, TraceChoice } from "../shell/trace-choices.tsx";
import { CompareFunction } from "./compare-function.tsx";
import { CompareGraph } from "./compare-graph.tsx";
import { COMPARE_KEYS } from "./compare-keys.ts";
import { CompareListing } from "./compare-listing.tsx";
import { CompareOrder } from "./compare-order.tsx";
import { CompareSummary } from "./compare-summary.tsx";

const PARTS: Record<ComparePart, { name: string; title: string; Show: () => preact.JSX.Element }> = {
  summary: { name: "Summary", title: "How much is the same", Show: CompareSummary },
  graph: { name: "Graph", title: "The graph of both", Show: CompareGraph },
  function: { name: "Function", title: "The control flow of one function in both", Show: CompareFunction },
  listing: { name: "Listing", title: "The code of one function in both", Show: CompareListing },
  order: { name: "Partings", title: "Where they part, and where they meet again", Show: CompareOrder },
};

const pressKey = bindKeys<HTMLElement>("Compare", [
  { key: "v", what: COMPARE_KEYS.v, run: keepingFocus(showNextPart) },
  { key: "x", what: COMPARE_KEYS.x, run: keepingFocus(swapSides) },
  { key: "s", what: COMPARE_KEYS.s, run: keepingFocus(togglePictures) },
  { key: "n", what: COMPARE_KEYS.n, run: () => stepParting(1) },
  { key: "p", what: COMPARE_KEYS.p, run: () => stepParting(-1) },
  { key: "(", what: COMPARE_KEYS["("], run: () => stepBoth(-1) },
  { key: ")", what: COMPARE_KEYS[")"], run: () => stepBoth(1) },
]);

/** With the focus on the view in the end: what had it may be gone with the part that it was in. */
function keepingFocus(change: () => void): (view: HTMLElement) => void {
  return (view) => {
    change();
    view.focus({ preventScroll: true });
  };
}

function showNextPart(): void {
  const at = COMPARE_PARTS.indexOf(compare.peek().part);
  updateCompare({ part: COMPARE_PARTS[(at + 1) % COMPARE_PARTS.length] });
}

function togglePictures(): void {
  if (compare.peek().part === "graph") {
    updateCompare({ isBeside: !compare.peek().isBeside });
  }
}

export function CompareView() {
  useEffect(() => followComparison(), []);
  useEffect(() => followOrder(), []);
  const { part } = compare.value;
  const { Show } = PARTS[part];
  return (
    <div
      class="view compare-view"
      tabIndex={-1}
      data-pair={
        pair.value && [pair.value.a, pair.value.b].map(({ trace, process }) => `${trace}/${process}`).join(" ")
      }
      data-compare-state={compareFailure.value !== null ? "failed" : union.value ? "ready" : "waiting"}
      onKeyDown={(event) => {
        const isText = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
        if (!isText) {
          pressKey(event, event.currentTarget);
        }
      }}
    >
      <div class="view-bar compare-bar">
        <span class="compare-side" data-side="a" title={process.value?.command.join(" ")}>
          <strong class="side-name">A</strong> <Named index={viewState.value.trace} pid={process.value?.pid} />
        </span>
        <button type="button" title="A becomes B, and B becomes A (x)" disabled={!pair.value} onClick={swapSides}>
          Swap
        </button>
        <ChooserB />
        <span class="rest" />
        {traceB.value >= 0 && (
          <div class="choices" role="group" aria-label="Part of the comparison">
            {COMPARE_PARTS.map((name) => (
              <ToggleButton
                key={name}
                text={
                  name === "order" && partings.value.length > 0
                    ? `${PARTS[name].name} ${partings.value.length}`
                    : PARTS[name].name
                }
                title={PARTS[name].title}
                isOn={part === name}
                onToggle={() => updateCompare({ part: name })}
              />
            ))}
          </div>
        )}
      </div>
      {traceB.value < 0 ? (
        summary.value && traceNames.value.length > 0 && <OnlyOne />
      ) : compareFailure.value !== null ? (
        <div class="compare-message" role="alert">
          <h2>These two cannot be compared</h2>
          <p>{compareFailure.value}</p>
        </div>
      ) : !union.value ? (
        <p class="waiting">Comparing …</p>
      ) : (
        <>
          {comparison.value?.is_same && (
            <p class="view-note" role="status">
              A and B are the same process of the same trace: nothing can differ. Choose another one for B.
            </p>
          )}
          <Show />
        </>
      )}
    </div>
  );
}

function Named({ index, pid }: { index: number; pid: number | undefined }) {
  const name = traceNames.value.find((one) => one.index === index)?.name ?? "…";
  return (
    <>
      {name} <span class="quiet">{pid !== undefined && `pid ${pid}`}</span>
    </>
  );
}

function ChooserB() {
  if (traceB.value < 0) {
    return null;
  }
  return (
    <span class="compare-side" data-side="b">
      <strong class="side-name">B</strong>
      <TraceChoice label="Trace B" value={traceB.value} onChoose={(trace) => compareWith(trace)} />
      <ProcessChoice
        label="Process of B"
        value={processB.value}
        onChoose={(id) => compareWith(traceB.peek(), id)}
        of={summaryB.value?.processes ?? []}
      />
    </span>
  );
}

/** What to do where there is nothing to compare with. */
function OnlyOne() {
  const index = viewState.value.trace;
  const isAlone = (summary.value?.processes.length ?? 0) < 2;
  return (
    <div class="compare-message" role="status">
      <h2>Only one trace is open</h2>
      <p>
        To compare two, name both: <code>clew view A.clew B.clew</code>. They may be two runs of a program, or of two
        builds of it.
      </p>
      {!isAlone && (
        <button type="button" onClick={() => compareWith(index)}>
          Compare two processes of this trace
        </button>
      )}
    </div>
  );
}
