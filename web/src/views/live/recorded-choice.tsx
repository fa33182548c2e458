// What is recorded of a program from now on: whether its order, and how much of it, and filters.
import { useState } from "preact/hooks";
import type { ProgramStatus, ToldMode } from "../../api/live-control.ts";
import { command, programError } from "../../model/live/program.ts";
import {
  describeBudget,
  findMode,
  parseBudget,
  whyFiltersStay,
  whyModeStays,
  writeBudget,
} from "../../model/live/program-state.ts";

type FilterCommand = "include" | "exclude" | "only";

const MODE_TITLES: Record<ToldMode, string> = {
  counts: "From now on, record only how often all runs",
  auto: "From now on, record the order, too, as far as a budget goes",
  full: "From now on, record all of the order, too",
};

export function RecordedChoice({ status }: { status: ProgramStatus }) {
  const modeStays = whyModeStays(status);
  const filtersStay = whyFiltersStay(status);
  return (
    <section aria-labelledby="recorded">
      <h3 id="recorded">What is recorded</h3>
      <p data-recorded>
        Mode {findMode(status)}
        {status.mode === "full" && `: ${describeBudget(status.budget)}`}
      </p>
      <ModeChoice mode={findMode(status)} stays={modeStays} />
      {status.mode === "full" && <BudgetForm budget={status.budget} />}
      {status.mode === "counts" && <p class="quiet">Mode counts has no order; auto and full record it from then on.</p>}
      {modeStays && <p class="quiet">{modeStays}.</p>}
      <FilterList name="Included" texts={status.include} />
      <FilterList name="Excluded" texts={status.exclude} />
      <FilterForm stays={filtersStay} />
      {filtersStay && <p class="quiet">{filtersStay}.</p>}
    </section>
  );
}

/** Buttons, as a list or radios would switch at every arrow key. What can't be chosen keeps the focus. */
function ModeChoice({ mode, stays }: { mode: string; stays: string }) {
  return (
    <div class="program-modes" role="group" aria-label="Mode of the recording">
      {(Object.keys(MODE_TITLES) as ToldMode[]).map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={mode === name}
          aria-disabled={stays !== ""}
          title={stays || MODE_TITLES[name]}
          onClick={() => !stays && mode !== name && void command({ command: "mode", mode: name })}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

function FilterList({ name, texts }: { name: string; texts: readonly string[] }) {
  return texts.length === 0 ? null : (
    <p>
      {name}, the last one last: <span class="mono">{texts.join(", ")}</span>
    </p>
  );
}

/** `stays` is why it can do nothing; empty where it can. */
function FilterForm({ stays }: { stays: string }) {
  const [how, setHow] = useState<FilterCommand>("exclude");
  const [what, setWhat] = useState("");
  const apply = async (event: Event) => {
    event.preventDefault();
    if (what.trim() && (await command({ command: how, what: what.trim() }))) {
      setWhat("");
    }
  };
  return (
    <form onSubmit={(event) => void apply(event)}>
      <fieldset class="program-form" disabled={stays !== ""} title={stays}>
        <select
          aria-label="Include, exclude, or record only"
          value={how}
          onChange={(event) => setHow(event.currentTarget.value as FilterCommand)}
        >
          <option value="include">Include</option>
          <option value="exclude">Exclude</option>
          <option value="only">Only</option>
        </select>
        <input
          aria-label="An image, a function of one, or addresses"
          placeholder="libc.so.6, app!main"
          spellcheck={false}
          autocomplete="off"
          value={what}
          onInput={(event) => setWhat(event.currentTarget.value)}
        />
        <button type="submit">Apply</button>
      </fieldset>
    </form>
  );
}

function BudgetForm({ budget: now }: { budget: number | null }) {
  const [written, setWritten] = useState<string | null>(null);
  const text = written ?? writeBudget(now);
  const set = async (event: Event) => {
    event.preventDefault();
    const budget = parseBudget(text);
    if (budget === null) {
      programError.value = `budget ${JSON.stringify(text)}: not a number of MB a second, nor all`;
    } else if (await command({ command: "budget", budget })) {
      setWritten(null);
    }
  };
  return (
    <form class="program-form" onSubmit={(event) => void set(event)}>
      <input
        aria-label="Order to record: MB a second, all, or 0 to count only"
        placeholder="MB/s, all, or 0"
        autocomplete="off"
        value={text}
        onInput={(event) => setWritten(event.currentTarget.value)}
      />
      <button type="submit">Set budget</button>
    </form>
  );
}
