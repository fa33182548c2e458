// What is recorded of a program from now on: filters, and how much of the order.
import { useState } from "preact/hooks";
import type { ProgramStatus } from "../../api/live-control.ts";
import { command, programError } from "../../model/live/program.ts";
import { describeBudget, parseBudget } from "../../model/live/program-state.ts";

type FilterCommand = "include" | "exclude" | "only";

export function RecordedChoice({ status }: { status: ProgramStatus }) {
  const canFilter = status.mode === "counts" || status.mode === "coverage";
  return (
    <section aria-labelledby="recorded">
      <h3 id="recorded">What is recorded</h3>
      <p data-recorded>
        Mode {status.mode}
        {status.mode === "full" && `: ${describeBudget(status.budget)}`}
      </p>
      <FilterList name="Included" texts={status.include} />
      <FilterList name="Excluded" texts={status.exclude} />
      {canFilter ? <FilterForm /> : <p class="quiet">In mode {status.mode} what is included is chosen at the start.</p>}
      {status.mode === "full" ? (
        <BudgetForm />
      ) : (
        <p class="quiet">Mode {status.mode} has no order; `--mode auto` records as much of it as is asked for.</p>
      )}
    </section>
  );
}

function FilterList({ name, texts }: { name: string; texts: readonly string[] }) {
  return texts.length === 0 ? null : (
    <p>
      {name}, the last one last: <span class="mono">{texts.join(", ")}</span>
    </p>
  );
}

function FilterForm() {
  const [how, setHow] = useState<FilterCommand>("exclude");
  const [what, setWhat] = useState("");
  const apply = async (event: Event) => {
    event.preventDefault();
    if (what.trim() && (await command({ command: how, what: what.trim() }))) {
      setWhat("");
    }
  };
  return (
    <form class="program-form" onSubmit={(event) => void apply(event)}>
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
    </form>
  );
}

function BudgetForm() {
  const [text, setText] = useState("");
  const set = async (event: Event) => {
    event.preventDefault();
    const budget = parseBudget(text);
    if (budget === null) {
      programError.value = `budget ${JSON.stringify(text)}: not a number of MB a second, nor all`;
    } else if (await command({ command: "budget", budget })) {
      setText("");
    }
  };
  return (
    <form class="program-form" onSubmit={(event) => void set(event)}>
      <input
        aria-label="Order to record: MB a second, all, or 0 to count only"
        placeholder="MB/s, all, or 0"
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit">Set budget</button>
    </form>
  );
}
