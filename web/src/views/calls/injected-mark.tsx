// A small word at calls to which something was done by who recorded them, as the lines of `clew api` end with one.
import { markInjected, tellInjected } from "../../model/calls/call-text.ts";

export function InjectedMark({ injected }: { injected: readonly string[] | undefined }) {
  const marks = markInjected(injected);
  if (marks === "") {
    return null;
  }
  const told = `Injected: ${tellInjected(injected).join("; ")}`;
  return (
    <span class="injected" role="img" aria-label={told} title={told}>
      {marks}
    </span>
  );
}
