// The picture's facts as a table: for those who do not see it, and where there is no WebGL2.
import { computed } from "@preact/signals";
import { formatInteger } from "../../base/format.ts";
import { drawnCounts, drawnGraph } from "../../model/graph/scene.ts";
import { selection, update } from "../../model/view-state.ts";
import { factsOf, type NodeFacts } from "./node-facts.ts";

const MOST_ROWS = 50;

/** The hottest blocks that are in the picture; or functions, where blocks are not loaded. */
const hottestNodes = computed<NodeFacts[]>(() => {
  const graph = drawnGraph.value;
  const counts = drawnCounts.value;
  if (!graph || !counts) {
    return [];
  }
  const executions = counts.blocks ?? counts.instructions;
  const nBlocks = counts.blocks ? graph.nBlocks : 0;
  // Only those that may be among the first are sorted.
  const least = executions.slice().sort()[Math.max(executions.length - MOST_ROWS, 0)] ?? 0;
  const nodes: number[] = [];
  executions.forEach((value, node) => {
    if (value >= least && value > 0) {
      nodes.push(node);
    }
  });
  nodes.sort((a, b) => executions[b] - executions[a] || a - b);
  const facts = nodes.slice(0, MOST_ROWS).map((node) => factsOf(graph, nBlocks, counts, node));
  // What is folded tells how often it was entered, which may be more than its hottest block was executed.
  return facts.sort((a, b) => b.executions - a.executions);
});

export function NodeTable({ isOpen }: { isOpen: boolean }) {
  const rows = hottestNodes.value;
  const chosen = selection.value;
  return (
    <details class="graph-table" open={isOpen} data-overlay>
      <summary>Table of the {formatInteger(rows.length)} hottest</summary>
      <div class="rows" tabIndex={0} role="region" aria-label="The hottest nodes of the picture">
        <table>
          <thead>
            <tr>
              <th scope="col">Address</th>
              <th scope="col">Symbol</th>
              <th scope="col">Image</th>
              <th scope="col">Executions</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.kind}${row.index}`} data-picked={chosen?.kind === row.kind && chosen.index === row.index}>
                <td>
                  <button
                    type="button"
                    aria-pressed={chosen?.kind === row.kind && chosen.index === row.index}
                    onClick={() => update({ selection: { kind: row.kind, index: row.index } })}
                  >
                    {row.address}
                  </button>
                </td>
                <td class="symbol" title={row.symbol}>
                  {row.symbol}
                </td>
                <td>{row.image}</td>
                <td class="count">{formatInteger(row.executions)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
