// Tables as files: of the code that is selected, and of what the view of calls has.
import { useState } from "preact/hooks";
import type { CallSummary } from "../../api/calls.ts";
import { formatInteger } from "../../base/format.ts";
import { isOfAll } from "../../model/calls/call-processes.ts";
import { CALL_TABLES, type CallTable, callSummary, hasCalls } from "../../model/calls/calls.ts";
import { makeCallTable } from "../../model/export/call-tables.ts";
import { makeTable, type TableName, type TableScope, TABLES } from "../../model/export/selected-table.ts";
import type { TableKind } from "../../model/export/table-file.ts";
import { functionRows } from "../../model/functions-table.ts";
import { selectedBlock, selectedFunction } from "../../model/selected.ts";
import { functions, isFile } from "../../model/session.ts";
import { calls, view } from "../../model/view-state.ts";
import type { ExportPart } from "./export-part.ts";

const TABLE_WORDS: Record<TableName | CallTable, string> = {
  blocks: "Blocks",
  edges: "Edges",
  functions: "Functions",

  calls: "Calls",
  places: "Places of calls",
  entities: "Entities",
  touches: "Who did what",
};

export function ExportTable({ isBusy, run, save }: ExportPart) {
  const seen = view.value === "calls" ? callSummary.value : null;
  const [of, setOf] = useState<TableName>("blocks");
  const [ofCalls, setOfCalls] = useState<CallTable>(() => {
    const { part } = calls.peek();
    // Of the tree it is the calls that can be taken.
    return part === "tree" ? "calls" : part;
  });
  const [asked, setScope] = useState<TableScope | "calls">(seen ? "calls" : "selected");
  const all = functions.value;
  const isSelected = selectedFunction.value >= 0;
  const scope = asked === "selected" && !isSelected ? "listed" : asked;
  const name = all && isSelected ? all.names[selectedFunction.value] : "";
  const callTables = CALL_TABLES.filter(
    (one) => (one !== "calls" || hasCalls.value) && (one !== "places" || !isOfAll.value),
  );
  const ofThese = callTables.includes(ofCalls) ? ofCalls : callTables[0];
  const isOfCalls = scope === "calls";
  const [rows, known]: [TableName | CallTable, readonly (TableName | CallTable)[]] = isOfCalls
    ? [ofThese, callTables]
    : [of, TABLES];
  const choose = (one: string) => (isOfCalls ? setOfCalls(one as CallTable) : setOf(one as TableName));
  const write = (kind: TableKind) => async () =>
    save(await (isOfCalls ? makeCallTable(ofThese, kind) : makeTable(of, scope, kind)), `${rows}.${kind}`);
  const choices: [TableScope | "calls", string, boolean][] = [
    [
      "selected",
      isSelected
        ? `What is selected: ${selectedBlock.value >= 0 ? "a block of " : ""}${name}`
        : "What is selected: nothing",
      !isSelected,
    ],
    ["listed", `The table of functions: ${formatInteger(functionRows.value.length)}`, false],
    ["all", "All of the process", false],
  ];
  if (seen) {
    choices.unshift(["calls", `What the view of calls has${tellCalls(seen)}`, false]);
  }
  return (
    <fieldset disabled={!all || isBusy}>
      <legend>Table</legend>
      {choices.map(([word, text, isOff]) => (
        <label key={word} class="export-choice" title={text}>
          <input
            type="radio"
            name="scope"
            value={word}
            checked={scope === word}
            disabled={isOff}
            onChange={() => setScope(word)}
          />{" "}
          {text}
        </label>
      ))}
      <div class="export-row">
        <label>
          Rows{" "}
          <select value={rows} onChange={(event) => choose(event.currentTarget.value)}>
            {known.map((one) => (
              <option key={one} value={one}>
                {TABLE_WORDS[one]}
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => run(write("csv"))}>
          CSV
        </button>
        <button
          type="button"
          disabled={isFile.value}
          title={isFile.value ? "Arrow needs the server: open the trace with clew view" : "An Arrow IPC file"}
          onClick={() => run(write("arrow"))}
        >
          Arrow
        </button>
      </div>
    </fieldset>
  );
}

function tellCalls({ source, calls: chosen, total }: CallSummary): string {
  return source === "counts" ? "" : `: ${formatInteger(chosen)} of ${formatInteger(total)} calls`;
}
