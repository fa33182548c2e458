// Parts of the page that few need: each is loaded when it is shown first.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { failure } from "../../model/session.ts";

/** A component that is loaded by `load` when it is shown first. A file that holds the whole page has none of those. */
export function later(load: () => Promise<ComponentType>): ComponentType {
  let known: ComponentType | null = null;
  return function Later() {
    const [, setLoaded] = useState(known !== null);
    useEffect(() => {
      if (known !== null) return;
      load().then(
        (found) => {
          known = found;
          setLoaded(true);
        },
        () => (failure.value = "A part of the page could not be loaded; load the page again."),
      );
    }, []);
    const Part = known;
    return Part ? <Part /> : <p class="waiting">Loading …</p>;
  };
}
