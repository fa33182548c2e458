// The code of one function as A and as B recorded it, line by line beside each other.
import { useEffect } from "preact/hooks";
import type { Instruction } from "../../api/code.ts";
import { toHex } from "../../base/color.ts";
import { formatInteger } from "../../base/format.ts";
import { comparedCode, followComparedFunction, listingRows } from "../../model/compare/compared-code.ts";
import { selectCompared, selectedNode, union } from "../../model/compare/compare-session.ts";
import { nodeClass, nodeColor } from "../../model/compare/paint-compared.ts";
import { InstructionTokens } from "../listing/instruction-tokens.tsx";
import { VirtualList } from "../shell/virtual-list.tsx";
import { ClassSign } from "./compare-functions-panel.tsx";
import { CompareHead } from "./compare-head.tsx";

const ROW_HEIGHT = 20;

export function CompareListing() {
  useEffect(() => followComparedFunction(), []);
  const of = union.value;
  const rows = listingRows.value;
  const code = comparedCode.value;
  const shown = Math.max(code?.a?.blocks.length ?? 0, code?.b?.blocks.length ?? 0);
  const most = Math.max(code?.a?.n_blocks ?? 0, code?.b?.n_blocks ?? 0);
  return (
    <div class="compare-part compare-listing" data-function={code?.function}>
      <CompareHead />
      {shown < most && (
        <p class="view-note" role="status">
          Only the first {formatInteger(shown)} of {formatInteger(most)} blocks are listed.
        </p>
      )}
      <div class="compare-columns" aria-hidden="true">
        <span />
        <span>A: executed, address, instruction</span>
        <span>B: executed, address, instruction</span>
      </div>
      <VirtualList
        count={rows.length}
        rowHeight={ROW_HEIGHT}
        label="Code of A and B"
        current={rows.findIndex((row) => row.node === selectedNode.value)}
        onMove={(row) => selectCompared({ kind: "block", index: rows[row].node })}
        onOpen={(row) => {
          const to = (rows[row].a ?? rows[row].b)?.target?.function ?? null;
          if (to !== null) {
            selectCompared({ kind: "function", index: to });
          }
        }}
        row={(index) => {
          const row = rows[index];
          return (
            of && (
              <span
                class={row.isFirst ? "compared-row first" : "compared-row"}
                data-node={row.node}
                style={{ borderLeftColor: toHex(nodeColor(of, row.node)) }}
              >
                {row.isFirst ? <ClassSign kind={nodeClass(of, row.node)} /> : <span />}
                <Half one={row.a} executions={row.isFirst ? row.executions.a : null} side="A" />
                <Half one={row.b} executions={row.isFirst ? row.executions.b : null} side="B" />
              </span>
            )
          );
        }}
      />
    </div>
  );
}

function Half({ one, executions, side }: { one: Instruction | null; executions: number | null; side: string }) {
  return (
    <span class="half mono" data-side={side}>
      <span class="count">{one && executions !== null && formatInteger(executions)}</span>
      <span class="address">{one?.address.slice(2)}</span>
      <span class="text" title={one?.text}>
        {one && <InstructionTokens of={one} />}
      </span>
      <span class="visually-hidden">{one ? ` in ${side}` : ` not in ${side}`}</span>
    </span>
  );
}
