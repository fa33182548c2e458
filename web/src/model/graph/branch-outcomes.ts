// Which way conditional branches went. Pure.
import type { Blocks } from "../../api/graph.ts";
import { EDGE_KIND, EXIT_KIND } from "../../protocol/generated.ts";

export type BranchOutcome = "taken" | "notTaken" | "both";

/**
 * Tells of a block (by its index) which way its branch went: null if it does not end with a condition or was not executed.
 * `edgeExecutions` are by edge of the process, which `blocks` names by `edgeIndex`.
 */
export function branchOutcomes(blocks: Blocks, edgeExecutions: Float64Array): (block: number) => BranchOutcome | null {
  const ways = new Uint8Array(blocks.count);
  const { edgeSource, edgeKind, edgeIndex, firstBlock } = blocks;
  for (let edge = 0; edge < edgeSource.length; edge++) {
    const way = edgeKind[edge] === EDGE_KIND.taken ? 1 : edgeKind[edge] === EDGE_KIND.not_taken ? 2 : 0;
    const source = edgeSource[edge] - firstBlock;
    if (way > 0 && source >= 0 && source < blocks.count && edgeExecutions[edgeIndex[edge]] > 0) {
      ways[source] |= way;
    }
  }
  const names = [null, "taken", "notTaken", "both"] as const;
  return (block) => (blocks.exitKind[block] === EXIT_KIND.conditional ? names[ways[block]] : null);
}
