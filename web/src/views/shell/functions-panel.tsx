// The table of functions beside the picture: what ran most on top, with a bar for its share.
import { useMemo } from "preact/hooks";
import { toHex } from "../../base/color.ts";
import { formatInteger, formatShort } from "../../base/format.ts";
import { blocksOf, type FunctionOrder, functionOrder, functionRows } from "../../model/functions-table.ts";
import { functionColors } from "../../model/highlights.ts";
import { selectedFunction } from "../../model/selected.ts";
import { counts, functions, isCounted } from "../../model/session.ts";
import { filter, update, updateFilter } from "../../model/view-state.ts";
import { SortColumns } from "./sort-columns.tsx";
import { VirtualList } from "./virtual-list.tsx";

const ROW_HEIGHT = 22;

const COLUMNS: [FunctionOrder, string, string][] = [
  ["name", "Function", "Sort by name"],
  ["instructions", "Instr.", "Sort by instructions executed"],
  ["entries", "Entered", "Sort by how often it was entered"],
  ["blocks", "Blocks", "Sort by number of blocks"],
];

export function FunctionsPanel() {
  const of = functions.value;
  const executed = counts.value;
  const rows = functionRows.value;
  const most = useMemo(() => executed?.functionInstructions.reduce((a, b) => Math.max(a, b), 0) ?? 0, [executed]);
  const current = rows.indexOf(selectedFunction.value);
  const select = (row: number) => update({ selection: { kind: "function", index: rows[row] } });
  return (
    <section class="panel functions" aria-label="Functions">
      <input
        type="search"
        class="filter"
        placeholder="Filter functions"
        aria-label="Filter functions"
        value={filter.value.text}
        onInput={(event) => updateFilter({ text: event.currentTarget.value })}
      />
      <SortColumns
        columns={isCounted.value ? COLUMNS : COLUMNS.filter(([by]) => by !== "entries")}
        order={functionOrder}
      />
      {of && rows.length === 0 && <p class="waiting">No function passes the filter.</p>}
      <VirtualList
        count={rows.length}
        rowHeight={ROW_HEIGHT}
        label="Functions"
        current={current}
        onMove={select}
        onOpen={() => update({ view: "function" })}
        row={(row) => {
          const index = rows[row];
          const set = functionColors.value.get(index);
          const instructions = executed?.functionInstructions[index] ?? 0;
          const share = most > 0 ? instructions / most : 0;
          return (
            of && (
              <>
                <span class="bar" style={{ width: `${100 * share}%` }} />
                {set && <span class="mark" title={set.name} style={{ background: toHex(set.color) }} />}
                <span class="name" title={of.names[index]}>
                  {of.names[index]}
                </span>
                <span class="count" title={formatInteger(instructions)}>
                  {formatShort(instructions)}
                  <span class="visually-hidden"> instructions</span>
                </span>
                {isCounted.value && (
                  <span class="entries">
                    {formatShort(executed?.functionEntries[index] ?? 0)}
                    <span class="visually-hidden"> times entered</span>
                  </span>
                )}
                <span class="blocks">
                  {formatInteger(blocksOf(of, index))}
                  <span class="visually-hidden"> blocks</span>
                </span>
              </>
            )
          );
        }}
      />
    </section>
  );
}
