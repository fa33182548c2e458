// Highlight sets: added from the selection or the table's filter, named, coloured, taken away.
import { type Rgb, toHex } from "../../base/color.ts";
import { formatInteger } from "../../base/format.ts";
import { functionRows } from "../../model/functions-table.ts";
import { addHighlight, changeHighlight, highlights, removeHighlight } from "../../model/highlights.ts";
import { selectedBlock, selectedFunction } from "../../model/selected.ts";
import { functions } from "../../model/session.ts";
import { filter } from "../../model/view-state.ts";
import { Popover } from "../shell/popover.tsx";

export function HighlightsPanel() {
  const of = functions.value;
  const [chosen, block, text] = [selectedFunction.value, selectedBlock.value, filter.value.text];
  const name = of && chosen >= 0 ? of.names[chosen] : "";
  return (
    <Popover title="Highlight sets">
      {highlights.value.length === 0 && (
        <p class="quiet">A set is shown in its colour in the graph and in the table. Sets are kept in this browser.</p>
      )}
      <ul class="highlights">
        {highlights.value.map((set, index) => (
          <li key={index}>
            <input
              type="color"
              aria-label={`Colour of ${set.name}`}
              value={toHex(set.color)}
              onInput={(event) => changeHighlight(index, { color: parseHex(event.currentTarget.value) })}
            />
            <input
              type="text"
              aria-label={`Name of set ${index + 1}`}
              value={set.name}
              maxLength={60}
              onChange={(event) => changeHighlight(index, { name: event.currentTarget.value || set.name })}
            />
            <span class="quiet">{sizeOf(set.functions.length, set.blocks.length)}</span>
            <button type="button" aria-label={`Remove ${set.name}`} onClick={() => removeHighlight(index)}>
              ✕
            </button>
          </li>
        ))}
      </ul>
      <div class="popover-foot column">
        <button
          type="button"
          disabled={chosen < 0}
          onClick={() =>
            block >= 0 ? addHighlight(name, { blocks: [block] }) : addHighlight(name, { functions: [chosen] })
          }
        >
          Add the selected {block >= 0 ? "block" : "function"}
        </button>
        <button
          type="button"
          disabled={!text || functionRows.value.length === 0}
          onClick={() => addHighlight(text, { functions: [...functionRows.value] })}
        >
          {text
            ? `Add the ${formatInteger(functionRows.value.length)} functions like “${text.slice(0, 30)}”`
            : "Add what the table's filter finds"}
        </button>
        <span class="quiet">The search adds what it found.</span>
      </div>
    </Popover>
  );
}

function sizeOf(nFunctions: number, nBlocks: number): string {
  const words: string[] = [];
  if (nFunctions > 0) {
    words.push(nFunctions === 1 ? "1 function" : `${formatInteger(nFunctions)} functions`);
  }
  if (nBlocks > 0) {
    words.push(nBlocks === 1 ? "1 block" : `${formatInteger(nBlocks)} blocks`);
  }
  return words.join(", ") || "empty";
}

/** `#rrggbb`, as the browser's own field gives it. */
function parseHex(text: string): Rgb {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255);
  return [r, g, b];
}
