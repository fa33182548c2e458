// What is left out of the pictures and tables, and what is folded into one.
import { useMemo } from "preact/hooks";
import { formatInteger, formatShare } from "../../base/format.ts";
import { functionRows } from "../../model/functions-table.ts";
import { selectedFunction } from "../../model/selected.ts";
import { counts, functions } from "../../model/session.ts";
import { EMPTY_FILTER, filter, update, updateFilter } from "../../model/view-state.ts";
import { Popover } from "../shell/popover.tsx";

export function FilterPanel() {
  const of = functions.value;
  const { text, hideStubs, foldLoops, foldedFunctions } = filter.value;
  const chosen = selectedFunction.value;
  return (
    <Popover title="Filter and fold">
      <label class="field">
        Name
        <input
          type="search"
          value={text}
          placeholder="part of a function's name"
          onInput={(event) => updateFilter({ text: event.currentTarget.value })}
        />
      </label>
      <label>
        <input
          type="checkbox"
          checked={hideStubs}
          onChange={(event) => updateFilter({ hideStubs: event.currentTarget.checked })}
        />{" "}
        Hide stubs (PLT)
      </label>
      <label>
        <input
          type="checkbox"
          checked={foldLoops}
          onChange={(event) => updateFilter({ foldLoops: event.currentTarget.checked })}
        />{" "}
        Fold loops
      </label>
      <label>
        <input
          type="checkbox"
          disabled={chosen < 0}
          checked={chosen >= 0 && foldedFunctions.includes(chosen)}
          onChange={() => updateFilter({ foldedFunctions: toggled(foldedFunctions, chosen) })}
        />{" "}
        Fold {chosen >= 0 && of ? <code class="short">{of.names[chosen]}</code> : "the selected function"}
      </label>
      <Images />
      <div class="popover-foot">
        <span class="quiet" role="status">
          {formatInteger(functionRows.value.length)} of {formatInteger(of?.count ?? 0)} functions
        </span>
        <button type="button" onClick={() => update({ filter: EMPTY_FILTER })}>
          Show everything
        </button>
      </div>
    </Popover>
  );
}

/** The images of the process, those that executed the most first. */
function Images() {
  const of = functions.value;
  const executed = counts.value;
  const { hiddenImages, foldedImages } = filter.value;
  const sums = useMemo(() => {
    const found = new Map<number, number>();
    for (let i = 0; i < (of?.count ?? 0); i++) {
      found.set(of!.image[i], (found.get(of!.image[i]) ?? 0) + (executed?.functionInstructions[i] ?? 0));
    }
    return [...found].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  }, [of, executed]);
  const whole = sums.reduce((sum, [, instructions]) => sum + instructions, 0);
  return (
    <table class="images">
      <thead>
        <tr>
          <th scope="col">Image</th>
          <th scope="col">Instructions</th>
          <th scope="col">Show</th>
          <th scope="col">Fold</th>
        </tr>
      </thead>
      <tbody>
        {sums.map(([image, instructions]) => {
          const name = of?.images[image]?.name ?? "outside of images";
          return (
            <tr key={image}>
              <th scope="row" title={of?.images[image]?.path}>
                {name}
              </th>
              <td>{formatShare(instructions, whole)}</td>
              <td>
                <input
                  type="checkbox"
                  aria-label={`Show ${name}`}
                  checked={!hiddenImages.includes(image)}
                  onChange={() => updateFilter({ hiddenImages: toggled(hiddenImages, image) })}
                />
              </td>
              <td>
                <input
                  type="checkbox"
                  aria-label={`Fold ${name}`}
                  checked={foldedImages.includes(image)}
                  onChange={() => updateFilter({ foldedImages: toggled(foldedImages, image) })}
                />
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** A list with a number added, or taken away if it was there. */
export function toggled(list: readonly number[], number: number): number[] {
  return list.includes(number) ? list.filter((one) => one !== number) : [...list, number];
}
