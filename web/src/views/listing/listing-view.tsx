// The view "Listing": the code that was executed in the order of its addresses, and who comes to it.
import { useEffect, useRef, useState } from "preact/hooks";
import { bindKeys } from "../../model/keys.ts";
import { findPlace } from "../../model/listing/go-to.ts";
import { followListing, listingRows } from "../../model/listing/listing-pages.ts";
import { blocks, functions } from "../../model/session.ts";
import { update } from "../../model/view-state.ts";
import { CodeTable } from "./code-table.tsx";
import { ReferencesPanel } from "./references-panel.tsx";

const pressKey = bindKeys<HTMLInputElement>("Listing", [
  {
    key: "g",
    what: "Go to an address or a function",
    run: (box) => {
      box.select();
      box.focus();
    },
  },
]);

export function ListingView() {
  const box = useRef<HTMLInputElement>(null);
  const [isUnknown, setIsUnknown] = useState(false);
  useEffect(() => followListing(), []);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (!isTyping) {
        pressKey(event, box.current!);
      }
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  const rows = listingRows.value;
  const of = functions.value;
  const go = (event: Event) => {
    event.preventDefault();
    const found = of ? findPlace(box.current?.value ?? "", of, blocks.value) : -1;
    setIsUnknown(found < 0);
    if (found >= 0) {
      update({ selection: { kind: "block", index: found } });
      document.querySelector<HTMLElement>("[data-listing]")?.focus();
    }
  };
  return (
    <div class="view listing-view">
      <form class="view-bar" role="search" onSubmit={go}>
        <input
          ref={box}
          type="text"
          class="mono"
          aria-label="Go to an address or a function"
          aria-invalid={isUnknown}
          placeholder="Go to address or function (g)"
          size={34}
          onInput={() => setIsUnknown(false)}
        />
        {isUnknown && (
          <span class="note" role="status">
            Nothing that was executed is called so.
          </span>
        )}
        <span class="rest" />
        <span class="quiet">Executed code by address. Enter shows the function, g goes to an address.</span>
      </form>
      {rows && of ? (
        rows.count > 0 ? (
          <CodeTable rows={rows} of={of} />
        ) : (
          <p class="waiting">This process executed no code that was recorded.</p>
        )
      ) : (
        <p class="waiting">Reading …</p>
      )}
      <ReferencesPanel />
    </div>
  );
}
