// Which blocks made how many calls: all that there is where no single calls were recorded.
import { useState } from "preact/hooks";
import { formatInteger, formatShort } from "../../base/format.ts";
import { callPlaces, showBlock } from "../../model/calls/calls.ts";
import { functions } from "../../model/session.ts";
import { selectedBlock } from "../../model/selected.ts";
import { VirtualList } from "../shell/virtual-list.tsx";

const ROW_HEIGHT = 22;

export function PlacesTable() {
  const places = callPlaces.value;
  const [focus, setFocus] = useState(-1);
  if (!places) {
    return <p class="waiting">Reading where calls were made …</p>;
  }
  if (places.rows.length === 0) {
    return <p class="waiting">No block made a call like that.</p>;
  }
  const selected = places.rows.findIndex((row) => row.block >= 0 && row.block === selectedBlock.value);
  return (
    <div class="calls-places" data-places-calls={places.calls}>
      <VirtualList
        count={places.rows.length}
        rowHeight={ROW_HEIGHT}
        label="Places of calls"
        // Of one block with several calls the row that was gone to.
        current={places.rows[focus]?.block === selectedBlock.value ? focus : selected}
        onMove={(row) => {
          setFocus(row);
          showBlock(places.rows[row].block);
        }}
        row={(index) => {
          const { block, function: of, name, calls } = places.rows[index];
          return (
            <>
              <span class="name">
                <bdi>{name ?? "number not in its code"}</bdi>
              </span>
              <span class="name quiet">
                in <bdi>{of >= 0 ? (functions.value?.names[of] ?? "…") : "code that is not known"}</bdi>
              </span>
              <span class="count" data-place-block={block} title={calls === null ? "" : formatInteger(calls)}>
                {calls === null ? "ran" : formatShort(calls)}
              </span>
            </>
          );
        }}
      />
      {places.total > places.rows.length && (
        <p class="quiet">and {formatInteger(places.total - places.rows.length)} more</p>
      )}
    </div>
  );
}
