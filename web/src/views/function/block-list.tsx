// The blocks of the function as a table: the same facts as the picture, for the keyboard and for who can't see it.
import { formatInteger } from "../../base/format.ts";
import type { LaidOutFlow } from "../../model/flow/flow-of-function.ts";
import { selectedBlock } from "../../model/selected.ts";
import { update } from "../../model/view-state.ts";
import { VirtualList } from "../shell/virtual-list.tsx";

const ROW_HEIGHT = 22;

/** Closed it is there all the same, and comes into sight when the keyboard comes to it. */
export function BlockList({ of, isOpen }: { of: LaidOutFlow; isOpen: boolean }) {
  const { boxes } = of.model;
  const current = boxes.findIndex((box) => box.block.block === selectedBlock.value);
  /** What only who hears the row is told: who sees it has the picture. */
  const describe = (row: number) => {
    const { block } = boxes[row];
    const out = of.model.edges.filter((edge) => edge.source === row);
    const ways = out.map(
      (edge) =>
        `${edge.kinds.join(", ").replaceAll("_", " ")} to ${boxes[edge.target].block.address} ${formatInteger(edge.executions)} times`,
    );
    const how = block.is_recorded ? "times executed" : "left out: not counted";
    return [` ${how}, ${block.instructions.length} instructions`, ...ways].join("; ");
  };
  return (
    <div class={isOpen ? "block-list open" : "block-list"}>
      <VirtualList
        count={boxes.length}
        rowHeight={ROW_HEIGHT}
        label="Blocks of the function"
        current={current}
        onMove={(row) => update({ selection: { kind: "block", index: boxes[row].block.block } })}
        row={(row) => {
          const { block } = boxes[row];
          const last = block.instructions[block.instructions.length - 1];
          return (
            <>
              <span class="mono address">{block.address}</span>
              <span class="mono name" title={last?.text}>
                {last?.text}
              </span>
              <span class="count">
                {block.is_recorded ? formatInteger(block.executions) : "–"}
                <span class="visually-hidden">{describe(row)}</span>
              </span>
            </>
          );
        }}
      />
    </div>
  );
}
