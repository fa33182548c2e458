// Where the threads of both part and meet again, and both replays at such a place.
import { useEffect, useState } from "preact/hooks";
import type { OrderPlace, Parting } from "../../api/compare.ts";
import { formatInteger } from "../../base/format.ts";
import { nameNode } from "../../model/compare/compared-code.ts";
import { selectCompared, swapSides, union } from "../../model/compare/compare-session.ts";
import {
  currentParting,
  followReplayOf,
  type FoundParting,
  goToParting,
  MOST_PARTINGS,
  namePlace,
  noOrder,
  order,
  orderWanted,
  partings,
  type ReplayRows,
  stepBoth,
} from "../../model/compare/partings.ts";
import { update } from "../../model/view-state.ts";

const ENDS: Record<string, string> = {
  together: "From there on both are the same, to the end.",
  a_ends: "Then A ends, and B goes on.",
  b_ends: "Then B ends, and A goes on.",
  not_met: "They did not meet again within 1,048,576 executions.",
  limit: `They part again; the first ${MOST_PARTINGS} partings are told.`,
  lost_in_a: "There the record of A is lost.",
  lost_in_b: "There the record of B is lost.",
};

export function CompareOrder() {
  const all = partings.value;
  return (
    <div class="compare-part compare-order">
      <OrderBar />
      {noOrder.value !== null ? (
        <div class="compare-message" role="status">
          <p>{noOrder.value}</p>
        </div>
      ) : order.value === null ? (
        <p class="waiting">Looking for where they part …</p>
      ) : (
        <div class="order-body">
          <div class="parting-list" tabIndex={0} role="region" aria-label="Partings">
            {order.value.map((threads, index) => (
              <section key={index} aria-label={`Threads ${threads.a?.tid ?? "none"} and ${threads.b?.tid ?? "none"}`}>
                <h3>
                  Thread {threads.a?.tid ?? "–"} | {threads.b?.tid ?? "–"}
                  <span class="quiet">
                    {threads.start === null
                      ? " not compared: one has no like, or did not come to the start"
                      : ` from ${threads.start === "0" ? "the first instruction" : threads.start} on${threads.without_c_library ? ", without the C library" : ""}`}
                  </span>
                </h3>
                <ol>
                  {all.map((one, number) =>
                    one.threads === threads ? (
                      <PartingRow key={number} found={one} isCurrent={number === currentParting.value} />
                    ) : null,
                  )}
                </ol>
                {threads.end !== null && (
                  <p class="quiet" data-end={threads.end}>
                    {threads.end === "together" && threads.partings.length === 0
                      ? "Both executed the same, in the same order."
                      : ENDS[threads.end]}
                  </p>
                )}
              </section>
            ))}
          </div>
          <Replays />
        </div>
      )}
    </div>
  );
}

function OrderBar() {
  const [start, setStart] = useState(orderWanted.value.start);
  const [only, setOnly] = useState(orderWanted.value.only);
  return (
    <form
      class="order-bar"
      onSubmit={(event) => {
        event.preventDefault();
        orderWanted.value = { start: start.trim(), only: only.trim() };
      }}
    >
      <label>
        From{" "}
        <input
          value={start}
          placeholder="main"
          title="SYMBOL, IMAGE!SYMBOL or IMAGE+0xOFFSET, with :N its execution number N; 0 for the first instruction"
          onInput={(event) => setStart(event.currentTarget.value)}
        />
      </label>
      <label>
        In images{" "}
        <input
          value={only}
          placeholder="all but the C library"
          title="A name of images, with * for any letters; * for all code"
          onInput={(event) => setOnly(event.currentTarget.value)}
        />
      </label>
      <button type="submit">Compare</button>
    </form>
  );
}

function PartingRow({ found, isCurrent }: { found: FoundParting; isCurrent: boolean }) {
  const { parting, number } = found;
  const { last, met, a, b } = parting;
  return (
    <li class="parting" aria-current={isCurrent} data-parting={number}>
      <p>
        {last ? (
          <>
            Part behind <Place place={last} />
          </>
        ) : (
          "Part at once"
        )}
        , at instruction {formatInteger(a.at.instruction)} | {formatInteger(b.at.instruction)}
      </p>
      <Way side="A" parting={parting} of={a} />
      <Way side="B" parting={parting} of={b} />
      <p>
        {met && a.met && b.met ? (
          <>
            Meet at <Place place={met} /> at instruction {formatInteger(a.met.instruction)} |{" "}
            {formatInteger(b.met.instruction)}
          </>
        ) : (
          "They do not meet again."
        )}
      </p>
      {parting.n_calls > 0 && (
        <details>
          <summary>Called from, {formatInteger(parting.n_calls)} deep</summary>
          <ul>
            {parting.calls.map((place, i) => (
              <li key={i}>
                <Place place={place} />
              </li>
            ))}
          </ul>
        </details>
      )}
      <button type="button" title="Both replays to where they part (n, p)" onClick={() => goToParting(found)}>
        Go to
      </button>{" "}
      {met && (
        <button type="button" title="Both replays to where they meet again" onClick={() => goToParting(found, "met")}>
          Go to where they meet
        </button>
      )}
    </li>
  );
}

function Way({ side, parting, of }: { side: string; parting: Parting; of: Parting["a"] }) {
  const ran = of.ran?.instruction;
  return (
    <p class="way" data-side={side}>
      <strong class="side-name">{side}</strong>{" "}
      {ran === 0 ? (
        "goes straight on"
      ) : of.next.length === 0 ? (
        "ends"
      ) : (
        <>
          {of.next.map((place, i) => (
            <span key={i}>
              {i > 0 && " → "}
              <Place place={place} />
            </span>
          ))}
          {ran !== undefined && ` … (${formatInteger(ran)} instructions)`}
        </>
      )}
      {parting.met === null && ran === undefined && " …"}
    </p>
  );
}

function Place({ place }: { place: OrderPlace }) {
  const { node } = place;
  const name = namePlace(union.value, place);
  return node === null ? (
    <code title={place.app_pc}>{name}</code>
  ) : (
    <button
      type="button"
      class="place mono"
      title={`${place.app_pc}: select it`}
      onClick={() => selectCompared({ kind: "block", index: node })}
    >
      {name}
    </button>
  );
}

/** Both threads around the places that their replays are at. */
function Replays() {
  return (
    <div class="replays">
      <p class="replays-bar">
        <button type="button" title="Both one block back ( ( )" onClick={() => stepBoth(-1)}>
          Both back
        </button>
        <button type="button" title="Both one block on ( ) )" onClick={() => stepBoth(1)}>
          Both on
        </button>
        <button type="button" title="The timeline is that of A: have it show the other (x)" onClick={swapSides}>
          Swap
        </button>
        <button type="button" title="The graph view, with the replay of A" onClick={() => update({ view: "graph" })}>
          A in the graph
        </button>
      </p>
      <div class="compare-sides">
        <Replay side="a" />
        <Replay side="b" />
      </div>
    </div>
  );
}

function Replay({ side }: { side: "a" | "b" }) {
  const [found, setFound] = useState<ReplayRows | null>(null);
  useEffect(() => followReplayOf(side, setFound), []);
  const of = union.value;
  const letter = side.toUpperCase();
  return (
    <section class="replay" data-side={side} data-position={found?.at.position} aria-label={`Replay of ${letter}`}>
      <h3>
        <span class="side-name">{letter}</span>{" "}
        {found
          ? `thread ${found.at.thread}, block ${formatInteger(found.at.position)}`
          : "no place yet: go to a parting"}
      </h3>
      <ol>
        {found?.rows.map(({ position, node }) => (
          <li key={position} aria-current={position === found.at.position} data-at={position} data-node={node}>
            <span class="count">{formatInteger(position)}</span>
            {of && node >= 0 ? (
              <button type="button" class="place mono" onClick={() => selectCompared({ kind: "block", index: node })}>
                {nameNode(of, node)}
              </button>
            ) : (
              <span class="quiet">not known</span>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
