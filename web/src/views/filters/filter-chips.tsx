// What of the trace is not looked at, a chip for each: pressed, all of it is there again.
import { formatDuration } from "../../base/format.ts";
import { functions } from "../../model/session.ts";
import { filter, range, threads, update, updateFilter } from "../../model/view-state.ts";
import { toggled } from "./filter-panel.tsx";

interface Chip {
  text: string;
  remove: () => void;
}

export function FilterChips() {
  const chips = findChips();
  if (chips.length === 0) {
    return null;
  }
  return (
    <ul class="chips" aria-label="Filters">
      {chips.map(({ text, remove }) => (
        <li key={text}>
          <button type="button" class="chip" title="Take this filter away" onClick={remove}>
            {text} <span aria-hidden="true">✕</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function findChips(): Chip[] {
  const { text, hideStubs, hiddenImages, foldedImages, foldedFunctions, foldLoops } = filter.value;
  const of = functions.value;
  const imageName = (image: number) => of?.images[image]?.name ?? (image < 0 ? "outside of images" : `image ${image}`);
  const chips: Chip[] = [];
  if (threads.value) {
    const ids = threads.value;
    const name =
      ids.length <= 3 ? `${ids.length > 1 ? "threads" : "thread"} ${ids.join(", ")}` : `${ids.length} threads`;
    chips.push({ text: name, remove: () => update({ threads: null }) });
  }
  if (range.value) {
    const [from, to] = range.value;
    chips.push({ text: `${formatDuration(from)} to ${formatDuration(to)}`, remove: () => update({ range: null }) });
  }
  if (text) {
    chips.push({ text: `name: ${text.slice(0, 40)}`, remove: () => updateFilter({ text: "" }) });
  }
  if (hideStubs) {
    chips.push({ text: "stubs hidden", remove: () => updateFilter({ hideStubs: false }) });
  }
  if (foldLoops) {
    chips.push({ text: "loops folded", remove: () => updateFilter({ foldLoops: false }) });
  }
  for (const image of hiddenImages) {
    const remove = () => updateFilter({ hiddenImages: toggled(hiddenImages, image) });
    chips.push({ text: `hidden: ${imageName(image)}`, remove });
  }
  for (const image of foldedImages) {
    const remove = () => updateFilter({ foldedImages: toggled(foldedImages, image) });
    chips.push({ text: `folded: ${imageName(image)}`, remove });
  }
  for (const index of foldedFunctions) {
    const remove = () => updateFilter({ foldedFunctions: toggled(foldedFunctions, index) });
    chips.push({ text: `folded: ${(of?.names[index] ?? `function ${index}`).slice(0, 40)}`, remove });
  }
  return chips;
}
