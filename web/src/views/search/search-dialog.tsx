// The search: one field for symbols, addresses, bytes and instructions, and what was found of each.
import { useEffect, useRef, useState } from "preact/hooks";
import { SEARCHES, type SearchKind } from "../../base/query-kinds.ts";
import { formatAddress, formatInteger, formatShort } from "../../base/format.ts";
import { addHighlight } from "../../model/highlights.ts";
import { bindKeys } from "../../model/keys.ts";
import { type FoundRow, groups, isSearching, onlyKind, query, rows, search, show } from "../../model/search.ts";
import { functions } from "../../model/session.ts";
import { openDialog, tell } from "../../model/shell-state.ts";
import { Dialog } from "../shell/dialog.tsx";

const KINDS: Record<SearchKind, { name: string; title: string; example: string }> = {
  symbol: { name: "Symbols", title: "Functions by name", example: "main, hta for hash_table_alloc" },
  address: { name: "Addresses", title: "Blocks with this address", example: "0x401136, or an offset in an image" },
  bytes: { name: "Bytes", title: "Blocks with these bytes", example: "48 8b ?? 05" },
  text: { name: "Instructions", title: "Blocks with this instruction", example: "call rax, xor eax,eax" },
};

interface Results {
  current: number;
  move: (by: number) => void;
  open: (row: number) => void;
}

const STEP = "What was found before or next";
const PAGE = "Ten back or on";
const pressKey = bindKeys<Results>(
  "Search",
  [
    { key: "ArrowUp", what: STEP, run: ({ move }) => move(-1) },
    { key: "ArrowDown", what: STEP, run: ({ move }) => move(1) },
    { key: "PageUp", what: PAGE, run: ({ move }) => move(-10) },
    { key: "PageDown", what: PAGE, run: ({ move }) => move(10) },
    { key: "Enter", what: "Show it", when: ({ current }) => current >= 0, run: ({ current, open }) => open(current) },
  ],
  { ignoresModifiers: true },
);

export function SearchDialog() {
  const [at, setAt] = useState(0);
  const found = rows.value;
  const current = Math.min(at, found.length - 1);
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [current]);
  // The process may be another one than when it was asked last.
  useEffect(() => search(query.peek(), onlyKind.peek()), []);
  const open = (row: FoundRow) => {
    openDialog.value = null;
    show(row);
  };
  const ask = (text: string, only: SearchKind | null) => {
    setAt(0);
    search(text, only);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const move = (by: number) => setAt(Math.min(Math.max(current + by, 0), Math.max(found.length - 1, 0)));
    pressKey(event, { current, move, open: (row) => open(found[row]) });
  };
  let index = 0;
  return (
    <Dialog name="search" title="Search">
      <input
        type="search"
        class="search-field"
        role="combobox"
        list={undefined}
        aria-label="Search"
        aria-expanded={found.length > 0}
        aria-controls="search-results"
        aria-autocomplete="list"
        aria-activedescendant={current >= 0 ? `search-row-${current}` : undefined}
        autofocus
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        placeholder="Symbol, address, bytes or instruction"
        value={query.value}
        onInput={(event) => ask(event.currentTarget.value, onlyKind.value)}
        onKeyDown={onKeyDown}
      />
      <div class="search-kinds" role="group" aria-label="What to search">
        {[null, ...SEARCHES].map((kind) => (
          <button
            key={kind}
            type="button"
            aria-pressed={onlyKind.value === kind}
            title={kind ? KINDS[kind].title : "Whatever it may mean"}
            onClick={() => ask(query.value, kind)}
          >
            {kind ? KINDS[kind].name : "All"}
          </button>
        ))}
        <span class="quiet" role="status">
          {isSearching.value ? "searching …" : query.value.trim() ? `${formatInteger(found.length)} found` : ""}
        </span>
        {found.length > 0 && (
          <button type="button" class="end" onClick={highlight}>
            Highlight these
          </button>
        )}
      </div>
      {query.value.trim() ? (
        <div ref={list} id="search-results" class="search-results" role="listbox" aria-label="Results" tabIndex={-1}>
          {groups.value.map((group) => (
            <div key={group.kind} role="group" aria-label={KINDS[group.kind].name}>
              <div class="search-head" role="presentation">
                <b>{KINDS[group.kind].name}</b> <span class="quiet">{group.note}</span>
              </div>
              {group.rows.map((row) => {
                const own = index++;
                return <Found key={own} row={row} index={own} isCurrent={own === current} open={() => open(row)} />;
              })}
            </div>
          ))}
        </div>
      ) : (
        <dl class="search-examples">
          {SEARCHES.map((kind) => (
            <div key={kind}>
              <dt>{KINDS[kind].title}</dt>
              <dd>
                <code>{KINDS[kind].example}</code>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </Dialog>
  );
}

function Found({
  row,
  index,
  isCurrent,
  open,
}: {
  row: FoundRow;
  index: number;
  isCurrent: boolean;
  open: () => void;
}) {
  const of = functions.value;
  const name = of?.names[row.function] ?? "";
  const image = of?.images[of.image[row.function]]?.name ?? "outside of images";
  return (
    <div id={`search-row-${index}`} class="search-row" role="option" aria-selected={isCurrent} onClick={open}>
      <span class="name" title={name}>
        {name}
      </span>
      <span class="found" title={row.text}>
        {row.kind === "symbol" ? "" : row.text}
      </span>
      <span class="image">{image}</span>
      <code>{formatAddress(row.address)}</code>
      <span
        class="count"
        title={`${row.kind === "symbol" ? "entered" : "executed"} ${formatInteger(row.executions)} times`}
      >
        ×{formatShort(row.executions)}
      </span>
    </div>
  );
}

/** Makes a highlight set of what was found. */
function highlight(): void {
  const name = query.value.trim();
  const unique = (indices: number[]) => [...new Set(indices)];
  addHighlight(name, {
    functions: unique(rows.value.filter((row) => row.block < 0).map((row) => row.function)),
    blocks: unique(rows.value.filter((row) => row.block >= 0).map((row) => row.block)),
  });
  openDialog.value = null;
  tell(`highlighted as “${name.slice(0, 40)}”`);
}
