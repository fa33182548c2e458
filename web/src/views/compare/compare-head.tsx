// What stands over the views of one function in A and in B: its name, and what the colours of blocks mean.
import { toHex } from "../../base/color.ts";
import { CLASS_COLORS, CLASS_SIGNS, CLASS_WORDS, CLASSES } from "../../model/compare/classes.ts";
import { shownComparedFunction, union } from "../../model/compare/compare-session.ts";

export function CompareHead() {
  const name = union.value?.functions.names[shownComparedFunction.value] ?? "";
  return (
    <p class="compare-head">
      <strong class="mono name" title={name}>
        {name}
      </strong>
      <span class="class-legend" role="list" aria-label="Colours">
        {CLASSES.filter((kind) => kind !== "neither" && kind !== "unknown").map((kind) => (
          <span key={kind} role="listitem">
            <span class="swatch" style={{ background: toHex(CLASS_COLORS[kind]) }} /> {CLASS_SIGNS[kind]}{" "}
            {CLASS_WORDS[kind]}
          </span>
        ))}
      </span>
    </p>
  );
}
