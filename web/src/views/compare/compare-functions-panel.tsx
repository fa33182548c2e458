// The table of the functions of both processes: what is only in one, what differs, and by how much.
import { toHex } from "../../base/color.ts";
import { formatInteger, formatShort } from "../../base/format.ts";
import { CLASS_COLORS, CLASS_SIGNS, CLASS_WORDS, ratioWords } from "../../model/compare/classes.ts";
import {
  compareOrder,
  compareText,
  rows,
  selectCompared,
  selectedComparedFunction,
  union,
} from "../../model/compare/compare-session.ts";
import { classOfFunction, type CompareOrder } from "../../model/compare/function-rows.ts";
import { compare, COMPARE_SHOWN, type CompareShown, updateCompare } from "../../model/view-state.ts";
import { SortColumns } from "../shell/sort-columns.tsx";
import { ToggleButton } from "../shell/toggle-button.tsx";
import { VirtualList } from "../shell/virtual-list.tsx";

const ROW_HEIGHT = 22;

const COLUMNS: [CompareOrder, string, string][] = [
  ["name", "Function", "Sort by name"],
  ["a", "A", "Sort by instructions executed in A"],
  ["b", "B", "Sort by instructions executed in B"],
  ["ratio", "B : A", "Sort by how far apart they are"],
  ["difference", "Differ", "Sort by how many instructions more or less, added up over blocks"],
];

const SHOWN: Record<CompareShown, [string, string]> = {
  all: ["All", "All functions"],
  "only-a": ["Only A", "Functions with code that only A ran"],
  "only-b": ["Only B", "Functions with code that only B ran"],
  changed: ["Changed", "Functions of which not all ran as often in both"],
};

export function CompareFunctionsPanel() {
  const of = union.value;
  const shown = rows.value;
  const current = shown.indexOf(selectedComparedFunction.value);
  return (
    <section class="panel functions compare-functions" aria-label="Functions of both">
      <input
        type="search"
        class="filter"
        placeholder="Filter functions"
        aria-label="Filter functions of both"
        value={compareText.value}
        onInput={(event) => (compareText.value = event.currentTarget.value)}
      />
      <div class="choices" role="group" aria-label="Which functions">
        {COMPARE_SHOWN.map((name) => (
          <ToggleButton
            key={name}
            text={SHOWN[name][0]}
            title={SHOWN[name][1]}
            isOn={compare.value.shown === name}
            onToggle={() => updateCompare({ shown: name })}
          />
        ))}
      </div>
      <SortColumns columns={COLUMNS} order={compareOrder} />
      {of && shown.length === 0 && <p class="waiting">No function is like that.</p>}
      <VirtualList
        count={shown.length}
        rowHeight={ROW_HEIGHT}
        label="Functions of both"
        current={current}
        onMove={(row) => selectCompared({ kind: "function", index: shown[row] })}
        onOpen={() => updateCompare({ part: "function" })}
        row={(row) => {
          if (!of) {
            return null;
          }
          const index = shown[row];
          const { instructions, only, difference } = of.compared;
          const [a, b] = [instructions.a[index], instructions.b[index]];
          const kind = classOfFunction(of, index);
          const alone = `${formatInteger(only.a[index])} blocks only in A, ${formatInteger(only.b[index])} only in B`;
          const image = of.functions.images[of.functions.image[index]];
          return (
            <>
              <ClassSign kind={kind} />
              <span
                class="name"
                title={`${of.functions.names[index]}\n${image?.path ?? "outside of images"}\n${alone}`}
              >
                {of.functions.names[index]}
              </span>
              <span class="count" title={formatInteger(a)}>
                {formatShort(a)}
                <span class="visually-hidden"> instructions in A</span>
              </span>
              <span class="count" title={formatInteger(b)}>
                {formatShort(b)}
                <span class="visually-hidden"> instructions in B</span>
              </span>
              <span class="ratio">{ratioWords(a, b)}</span>
              <span class="count difference" title={formatInteger(difference[index])}>
                {formatShort(difference[index])}
                <span class="visually-hidden"> instructions differ, {alone}</span>
              </span>
            </>
          );
        }}
      />
    </section>
  );
}

/** The colour of a class with its sign, and its words for who can't see them. */
export function ClassSign({ kind }: { kind: keyof typeof CLASS_COLORS }) {
  return (
    <span
      class="class-sign"
      title={CLASS_WORDS[kind]}
      data-class={kind}
      style={{ borderColor: toHex(CLASS_COLORS[kind]) }}
    >
      <span aria-hidden="true">{CLASS_SIGNS[kind]}</span>
      <span class="visually-hidden">{CLASS_WORDS[kind]}</span>
    </span>
  );
}
