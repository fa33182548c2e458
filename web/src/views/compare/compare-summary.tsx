// How much of two processes is the same, in numbers: by what it is, and by the files that it is of.
import { formatInteger } from "../../base/format.ts";
import type { Difference } from "../../api/compare.ts";
import { comparison } from "../../model/compare/compare-session.ts";
import { partings, namePlace } from "../../model/compare/partings.ts";
import { union } from "../../model/compare/compare-session.ts";
import { type CompareShown, updateCompare } from "../../model/view-state.ts";

const SHOWS: [keyof Difference, string, CompareShown][] = [
  ["same", "the same", "all"],
  ["differ", "not as often in both", "changed"],
  ["only_in_a", "only in A", "only-a"],
  ["only_in_b", "only in B", "only-b"],
];

export function CompareSummary() {
  const of = comparison.value;
  if (!of) {
    return <p class="waiting">Comparing …</p>;
  }
  const isCounted = of.compared === "counts";
  const first = partings.value.at(0);
  const unknown = of.not_comparable.a.blocks + of.not_comparable.b.blocks;
  return (
    <div class="compare-summary" tabIndex={0} role="region" aria-label="Summary of the comparison">
      <p class="verdict" data-equal={of.equal}>
        {of.equal
          ? isCounted
            ? "Both ran the same code, equally often."
            : "Both ran the same code."
          : isCounted
            ? "They differ."
            : "They differ in which code ran; how often is not known of both."}
      </p>
      {first && (
        <p>
          They part{" "}
          {first.parting.last ? (
            <>
              first behind <code>{namePlace(union.value, first.parting.last)}</code>
            </>
          ) : (
            "at once"
          )}
          , at instruction {formatInteger(first.parting.a.at.instruction)} of A and{" "}
          {formatInteger(first.parting.b.at.instruction)} of B.{" "}
          <button type="button" onClick={() => updateCompare({ part: "order" })}>
            Partings
          </button>
        </p>
      )}
      <table>
        <thead>
          <tr>
            <th scope="col">What ran</th>
            {SHOWS.map(([key, name]) => (
              <th key={key} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(["functions", "blocks", "edges"] as const).map((what) => (
            <tr key={what} data-what={what}>
              <th scope="row">{what === "blocks" ? "blocks, as cut by both" : what}</th>
              {SHOWS.map(([key, name, shown]) => (
                <td key={key} class="count" data-key={key}>
                  {what === "functions" ? (
                    <button
                      type="button"
                      title={`Functions in the table: ${name}`}
                      onClick={() => updateCompare({ shown })}
                    >
                      {formatInteger(of[what][key])}
                    </button>
                  ) : (
                    formatInteger(of[what][key])
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {unknown > 0 && (
        <p>
          Not comparable, since it is in memory of one that the other has nothing like:{" "}
          {formatInteger(of.not_comparable.a.blocks)} blocks of A, {formatInteger(of.not_comparable.b.blocks)} of B.
        </p>
      )}
      {of.notes.length > 0 && (
        <ul class="notes">
          {of.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      <h3>Files</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">File</th>
            <th scope="col">Compared by</th>
            <th scope="col">Same blocks</th>
            <th scope="col">Differ</th>
            <th scope="col">Only A</th>
            <th scope="col">Only B</th>
          </tr>
        </thead>
        <tbody>
          {of.images.map(({ matched_by, same, differ, a, b }, row) => (
            <tr key={row}>
              <td title={[a.image, b.image].filter((path) => path !== null).join("\n")}>
                {nameFiles(a.image, b.image)}
              </td>
              <td>{matched_by ? HOW[matched_by] : a.image === null && b.image === null ? "content" : ""}</td>
              <td class="count">{formatInteger(same)}</td>
              <td class="count">{formatInteger(differ)}</td>
              <td class="count">{formatInteger(a.only.blocks)}</td>
              <td class="count">{formatInteger(b.only.blocks)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const HOW: Record<string, string> = {
  build_id: "offset, one build",
  path: "offset, one path",
  name: "symbol, another build",
  executable: "symbol, another build",
};

function nameFiles(a: string | null, b: string | null): string {
  const name = (path: string) => path.slice(path.lastIndexOf("/") + 1);
  if (a === null && b === null) {
    return "outside of files";
  }
  return a === null
    ? `${name(b!)} (B)`
    : b === null
      ? `${name(a)} (A)`
      : name(a) === name(b)
        ? name(a)
        : `${name(a)} | ${name(b)}`;
}
