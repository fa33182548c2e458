// What is told of a drawn node, in the tooltip and in the table beside the picture.
import { formatAddress, formatInteger } from "../../base/format.ts";
import { coldFunction, isExecuted, isUncounted, UNCOUNTED_PAINT } from "../../model/graph/paint.ts";
import { blocksOfDrawn, type DrawnCounts, type DrawnGraph, nameOfDrawn } from "../../model/graph/folding.ts";

export interface NodeFacts {
  /** An index of the process: of a block, or of a function where it is drawn as one. */
  kind: "block" | "function";
  index: number;
  address: string;
  /** The function's name, and how far behind its start; of a folded image its own. */
  symbol: string;
  image: string;
  /** Of a block how often it was executed, of a folded loop its hottest one; of a function how often it was entered. */
  executions: number;
  instructions: number;
  /** Whether it was left out when it was recorded: `executions` says nothing then. */
  isUncounted: boolean;
  /** More than one where several are drawn as one. */
  blocks: number;
}

/** Facts of node number `node`: blocks first, then functions. */
export function factsOf(graph: DrawnGraph, nBlocks: number, counts: DrawnCounts, node: number): NodeFacts {
  const isBlock = node < nBlocks;
  const drawn = isBlock ? graph.functionOfBlock[node] : node - nBlocks;
  const function_ = graph.functionOf[drawn];
  const { functions, blocks } = graph;
  const image = functions.images[functions.image[function_]];
  const common = { image: image?.name ?? "outside of images", index: isBlock ? graph.blockOf[node] : function_ };
  if (isBlock && blocks && !graph.isFolded[drawn]) {
    const block = graph.blockOf[node];
    const address = blocks.address[block];
    const away = blocks.distance ? BigInt(blocks.distance[block]) : address - functions.address[function_];
    const sign = away < 0n ? "-" : "+";
    return {
      ...common,
      kind: "block",
      address: formatAddress(address),
      symbol: `${functions.names[function_]}${away === 0n ? "" : `${sign}0x${(away < 0n ? -away : away).toString(16)}`}`,
      executions: counts.blocks?.[node] ?? 0,
      instructions: counts.blockInstructions?.[node] ?? 0,
      isUncounted: isUncounted(graph, node),
      blocks: blocksOfDrawn(graph, node),
    };
  }
  return {
    ...common,
    kind: "function",
    index: function_,
    address: formatAddress(functions.address[function_]),
    symbol: nameOfDrawn(graph, drawn),
    executions: counts.entries[drawn],
    instructions: counts.instructions[drawn],
    isUncounted: !isExecuted(counts, drawn) && coldFunction(graph, drawn) === UNCOUNTED_PAINT,
    blocks: graph.size[drawn],
  };
}

/** One line: how often, and of how much. */
export function countWords(facts: NodeFacts): string {
  const { kind, executions, blocks, instructions } = facts;
  if (facts.isUncounted) {
    return "left out when it was recorded: not counted";
  }
  const size = `${formatInteger(blocks)} ${blocks === 1 ? "block" : "blocks"}, ${formatInteger(instructions)} instructions`;
  if (kind === "function") {
    return `entered ${formatInteger(executions)} times, ${size}`;
  }
  return blocks > 1
    ? `loop, its hottest block executed ${formatInteger(executions)} times, ${size}`
    : `executed ${formatInteger(executions)} times`;
}
