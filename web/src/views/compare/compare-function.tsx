// The control flow of one function as A and as B ran it, beside each other; what is selected in one is in the other.
import { useComputed } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { formatInteger } from "../../base/format.ts";
import { comparedCode, followComparedFunction, followFlow } from "../../model/compare/compared-code.ts";
import { selectCompared, selectedNode } from "../../model/compare/compare-session.ts";
import type { LaidOutFlow } from "../../model/flow/flow-of-function.ts";
import { FlowCanvas, type FlowSubject } from "../function/flow-canvas.tsx";
import { CompareHead } from "./compare-head.tsx";

export function CompareFunction() {
  useEffect(() => followComparedFunction(), []);
  return (
    <div class="compare-part compare-function" data-function={comparedCode.value?.function}>
      <CompareHead />
      <div class="compare-sides">
        <Side side="a" />
        <Side side="b" />
      </div>
    </div>
  );
}

function Side({ side }: { side: "a" | "b" }) {
  const [flow, setFlow] = useState<LaidOutFlow | null>(null);
  useEffect(() => followFlow(side, setFlow), []);
  const newestBlock = useComputed(() => -1);
  const code = comparedCode.value;
  const letter = side.toUpperCase();
  const subject: FlowSubject = {
    selectedBlock: selectedNode,
    newestBlock,
    select: (index) => selectCompared({ kind: "block", index }),
    openFunction: (index) => selectCompared({ kind: "function", index }),
  };
  return (
    <section class="compare-flow" data-side={side} aria-label={`The function in ${letter}`}>
      <h3>
        <span class="side-name">{letter}</span>{" "}
        {code?.[side] &&
          `${formatInteger(code[side].n_blocks)} blocks${code[side].name === code.name ? "" : `, ${code[side].name}`}`}
      </h3>
      {flow ? (
        <FlowCanvas of={flow} subject={subject} />
      ) : (
        <p class="waiting">{code && !code[side] ? `${letter} did not run this function.` : "drawing …"}</p>
      )}
    </section>
  );
}
