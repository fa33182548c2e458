// One row of the listing: an instruction with its heat, or what stands between blocks.
import type { CodeBlock } from "../../api/code.ts";
import type { Functions } from "../../api/graph.ts";
import { heatColor, heatOf, toHex } from "../../base/color.ts";
import { formatAddress, formatInteger, formatShare } from "../../base/format.ts";
import { blockAt, lineAt, mostExecuted } from "../../model/listing/listing-pages.ts";
import type { ListingRow, ListingRows } from "../../model/listing/listing-rows.ts";
import { functionOfBlock } from "../../model/selected.ts";
import { InstructionTokens } from "./instruction-tokens.tsx";

interface Properties {
  row: ListingRow;
  rows: ListingRows;
  of: Functions;
}

export function CodeRow({ row, rows, of }: Properties) {
  const { kind, place, instruction } = row;
  const index = functionOfBlock(of.firstBlock, rows.index.block[place]);
  const image = of.images[of.image[index]];
  if (kind === "image") {
    return (
      <span title={image?.path}>{image ? `${image.path} at ${formatAddress(image.base)}` : "outside of images"}</span>
    );
  }
  if (kind === "gap") {
    return <span>0x{rows.index.gapBytes[place].toString(16)} bytes not executed</span>;
  }
  const block = blockAt(place);
  if (kind === "function") {
    return (
      <>
        <span class="name">
          <span class="visually-hidden">Function </span>
          {of.names[index]}
        </span>
        <span class="quiet">{image?.name}</span>
      </>
    );
  }
  if (!block) {
    return <span class="quiet">…</span>;
  }
  if (kind === "label") {
    return (
      <span>
        <span class="visually-hidden">Label </span>
        {block.address}:
      </span>
    );
  }
  return <InstructionRow block={block} instruction={instruction} source={lineAt(place, instruction)} />;
}

function InstructionRow({ block, instruction, source }: { block: CodeBlock; instruction: number; source: string }) {
  const one = block.instructions[instruction];
  const executions = block.is_recorded ? formatInteger(block.executions) : "–";
  const heat = heatOf(block.executions, mostExecuted.value);
  const isLast = instruction === block.instructions.length - 1;
  return (
    <>
      <span
        class="heat"
        title={block.is_recorded ? `×${executions}` : "left out: not counted"}
        aria-hidden="true"
        style={heat < 0 ? {} : { background: toHex(heatColor(heat)), width: `${6 + 26 * heat}px` }}
      />
      <span class="count">
        {instruction === 0 ? executions : <span class="visually-hidden">{executions}</span>}
        <span class="visually-hidden">{block.is_recorded ? " times executed" : " left out: not counted"}</span>
      </span>
      <span class="address">{one?.address.slice(2)}</span>
      <span class="bytes" title={one?.bytes}>
        {one && one.bytes.length > 20 ? `${one.bytes.slice(0, 18)}…` : one?.bytes}
      </span>
      <span class="text">{one && <InstructionTokens of={one} />}</span>
      {isLast && block.taken !== null && block.not_taken !== null && (
        <span class="shares">
          <Share way="taken" executions={block.taken} whole={block.taken + block.not_taken} />
          <Share way="not taken" executions={block.not_taken} whole={block.taken + block.not_taken} />
        </span>
      )}
      <span class="source">{source}</span>
    </>
  );
}

function Share({ way, executions, whole }: { way: "taken" | "not taken"; executions: number; whole: number }) {
  return (
    <span class={executions > 0 ? way.replace(" ", "-") : "quiet"} data-way={way}>
      {way} {formatShare(executions, whole)} · {formatInteger(executions)}
    </span>
  );
}
