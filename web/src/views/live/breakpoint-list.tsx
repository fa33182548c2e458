// Where the threads of a program are to stop: by address, by symbol, or at what is selected.
import { useState } from "preact/hooks";
import type { Breakpoint } from "../../api/live-control.ts";
import { breakHere, command, selectedPlace } from "../../model/live/program.ts";

export function BreakpointList({ breakpoints }: { breakpoints: readonly Breakpoint[] }) {
  const [place, setPlace] = useState("");
  const add = async (event: Event) => {
    event.preventDefault();
    if (place.trim() && (await command({ command: "break", place: place.trim() }))) {
      setPlace("");
    }
  };
  return (
    <section aria-labelledby="breakpoints">
      <h3 id="breakpoints">Breakpoints</h3>
      <ul aria-labelledby="breakpoints" class="breakpoints">
        {breakpoints.map(({ address, symbol }) => (
          <li key={address}>
            <span class="mono" title={address}>
              {symbol || address}
              {symbol && <span class="quiet"> {address}</span>}
            </span>
            <button
              type="button"
              aria-label={`Delete the breakpoint at ${symbol || address}`}
              onClick={() => void command({ command: "delete", place: address })}
            >
              ✕
            </button>
          </li>
        ))}
      </ul>
      <form class="program-form" onSubmit={(event) => void add(event)}>
        <input
          aria-label="Break at an address or a symbol"
          placeholder="main, libc.so.6!malloc, 0x401000"
          spellcheck={false}
          autocomplete="off"
          value={place}
          onInput={(event) => setPlace(event.currentTarget.value)}
        />
        <button type="submit">Break</button>
      </form>
      <button
        type="button"
        aria-disabled={selectedPlace.value === null}
        aria-keyshortcuts="F2"
        title="Key F2"
        onClick={breakHere}
      >
        Break here{selectedPlace.value && <span class="mono"> {selectedPlace.value}</span>}
      </button>
    </section>
  );
}
