// Cross references of the block that the listing stands at: who comes to it, and where it leads.
import type { Place, Reference } from "../../api/code.ts";
import { formatInteger } from "../../base/format.ts";
import { listedBlock, references } from "../../model/listing/listing-pages.ts";
import { update } from "../../model/view-state.ts";

export function ReferencesPanel() {
  const found = references.value;
  const isOf = found !== null && found.block === listedBlock.value;
  return (
    <section class="references" aria-label="Cross references">
      <Side title="Reached by" n={isOf ? found.n_in : 0} rows={isOf ? found.in : []} />
      <Side title="Leads to" n={isOf ? found.n_out : 0} rows={isOf ? found.out : []} />
    </section>
  );
}

function Side({ title, n, rows }: { title: string; n: number; rows: Reference[] }) {
  return (
    <div>
      <h2>
        {title} <span class="quiet">{formatInteger(n)}</span>
      </h2>
      <ul>
        {rows.map((row, index) => {
          const place = row.from ?? row.to ?? null;
          return (
            <li key={index}>
              <span class="kind">{row.kind.replaceAll("_", " ")}</span>
              <span class="count">{formatInteger(row.executions)}</span>
              {place ? (
                <Jump place={place} />
              ) : (
                <span class="quiet">{title === "Leads to" ? "nowhere known" : "outside"}</span>
              )}
              {row.callee && (
                <>
                  <span class="quiet">out of</span>
                  <Jump place={row.callee} />
                </>
              )}
            </li>
          );
        })}
        {n > rows.length && <li class="quiet">and {formatInteger(n - rows.length)} more</li>}
      </ul>
    </div>
  );
}

function Jump({ place }: { place: Place }) {
  const offset = place.function_offset;
  return (
    <button
      type="button"
      class="mono"
      title={`${place.name}, ${place.address}`}
      onClick={() => update({ selection: { kind: "block", index: place.block } })}
    >
      {place.name}
      {offset !== null && offset > 0 ? `+0x${offset.toString(16)}` : ""}
    </button>
  );
}
