// What of a process' graph is drawn: functions and blocks that are left out or folded into one, by the filter. Pure. Drawn
// functions and blocks have indices of their own; where nothing is left out or folded they are the process' own.
import type { Blocks, Counts, Functions } from "../../api/graph.ts";
import { EDGE_KIND } from "../../protocol/generated.ts";
import type { LayoutInput } from "../layout/layout.ts";
import type { Filter, Layout } from "../view-state.ts";
import { type ReducedEdges, reduceEdges, reduceExecutions } from "./edge-reduction.ts";
import { findLoops } from "./loops.ts";
import { FUNCTION_FLAG } from "../../protocol/generated.ts";

/** The part of the filter on which it depends what is drawn; the text only dims. */
export type Folding = Pick<Filter, "hideStubs" | "hiddenImages" | "foldedImages" | "foldedFunctions" | "foldLoops">;

/** What a drawn function is, by `isFolded`. */
export const FOLDED_FUNCTION = 1;
export const FOLDED_IMAGE = 2;

export interface DrawnGraph {
  functions: Functions;
  blocks: Blocks | null;
  /** Nothing is left out or folded. */
  isWhole: boolean;
  nFunctions: number;
  nBlocks: number;
  /** By function of the process the drawn one, -1 for none; and by drawn function the one that stands for it. */
  drawnFunction: Int32Array;
  functionOf: Uint32Array;
  /** The same of blocks; empty where blocks are not loaded. */
  drawnBlock: Int32Array;
  blockOf: Uint32Array;
  /** By drawn function whether it is folded: 0, or FOLDED_IMAGE or FOLDED_FUNCTION, drawn as one node. */
  isFolded: Uint8Array;
  /** By drawn block its drawn function. */
  functionOfBlock: Uint32Array;
  /** By drawn function how many blocks of the process it is made of. */
  size: Uint32Array;
  firstBlock: Uint32Array;
  caller: Int32Array;
  depth: Int32Array;
  image: Int32Array;
  links: DrawnEdges;
  /** Labels are of EDGE_KIND. */
  edges: DrawnEdges;
}

/** Labels of links are 1 for calls. `reduced` is null where they are the process' own. */
export interface DrawnEdges {
  source: Int32Array | Uint32Array;
  target: Int32Array | Uint32Array;
  label: Int8Array | Uint8Array;
  reduced: ReducedEdges | null;
}

/** Executions of what is drawn. */
export interface DrawnCounts {
  instructions: Float64Array;
  entries: Float64Array;
  links: Float64Array;
  /** Of a folded block the most that any of its blocks has. Null where blocks are not loaded. */
  blocks: Float64Array | null;
  /** Of a folded block those of all its blocks. */
  blockInstructions: Float64Array | null;
  edges: Float64Array | null;
  owner: Int32Array | null;
}

/** Whether the filter leaves out or folds anything. */
export function isFolding(folding: Folding): boolean {
  return (
    folding.hideStubs ||
    folding.foldLoops ||
    folding.hiddenImages.length + folding.foldedImages.length + folding.foldedFunctions.length > 0
  );
}

/** The graph that is drawn. `blocks` is null where only functions are. */
export function foldGraph(functions: Functions, blocks: Blocks | null, folding: Folding): DrawnGraph {
  return isFolding(folding) ? reduceGraph(functions, blocks, folding) : wholeGraph(functions, blocks);
}

/** What the layout is made of. */
export function layoutInput(graph: DrawnGraph, layout: Layout, dimensions: 2 | 3): LayoutInput {
  const { links, edges } = graph;
  return {
    layout,
    dimensions,
    nFunctions: graph.nFunctions,
    nBlocks: graph.nBlocks,
    hasBlocks: graph.blocks !== null,
    firstBlock: graph.firstBlock,
    caller: graph.caller,
    depth: graph.depth,
    image: graph.image,
    linkSource: asArray(links.source, Uint32Array),
    linkTarget: asArray(links.target, Uint32Array),
    linkCall: asArray(links.label, Uint8Array),
    edgeSource: asArray(edges.source, Int32Array),
    edgeTarget: asArray(edges.target, Int32Array),
    edgeKind: asArray(edges.label, Int8Array),
  };
}

/** The numbers as an array of a type: the same one if it is of it. */
function asArray<T>(
  numbers: ArrayLike<number>,
  type: { new (...arguments_: never): T; from: (of: ArrayLike<number>) => T },
): T {
  return numbers instanceof type ? numbers : type.from(numbers);
}

/** Executions of what is drawn, of those of the process. */
export function foldCounts(graph: DrawnGraph, counts: Counts): DrawnCounts {
  const { links, edges } = graph;
  const hasBlocks = graph.blocks !== null && counts.blockExecutions !== null;
  if (graph.isWhole) {
    return {
      instructions: counts.functionInstructions,
      entries: counts.functionEntries,
      links: counts.linkExecutions,
      blocks: hasBlocks ? counts.blockExecutions : null,
      blockInstructions: hasBlocks ? sumInstructions(graph, counts.blockExecutions!) : null,
      edges: hasBlocks ? counts.edgeExecutions : null,
      owner: hasBlocks ? counts.blockOwner : null,
    };
  }
  const sum = (of: Float64Array) => {
    const sums = new Float64Array(graph.nFunctions);
    graph.drawnFunction.forEach((drawn, i) => {
      if (drawn >= 0) {
        sums[drawn] += of[i];
      }
    });
    return sums;
  };
  return {
    instructions: sum(counts.functionInstructions),
    entries: sum(counts.functionEntries),
    links: links.reduced ? reduceExecutions(links.reduced, counts.linkExecutions) : counts.linkExecutions,
    blocks: hasBlocks ? mostOf(graph, counts.blockExecutions!) : null,
    blockInstructions: hasBlocks ? sumInstructions(graph, counts.blockExecutions!) : null,
    edges: hasBlocks && edges.reduced ? reduceExecutions(edges.reduced, counts.edgeExecutions!) : null,
    owner: hasBlocks && counts.blockOwner ? foldOwners(graph, counts.blockOwner) : null,
  };
}

function mostOf(graph: DrawnGraph, executions: Float64Array): Float64Array {
  const most = new Float64Array(graph.nBlocks);
  graph.drawnBlock.forEach((drawn, i) => {
    if (drawn >= 0 && executions[i] > most[drawn]) {
      most[drawn] = executions[i];
    }
  });
  return most;
}

function sumInstructions(graph: DrawnGraph, executions: Float64Array): Float64Array {
  const sums = new Float64Array(graph.nBlocks);
  graph.drawnBlock.forEach((drawn, i) => {
    if (drawn >= 0) {
      sums[drawn] += executions[i] * graph.blocks!.nInstructions[i];
    }
  });
  return sums;
}

/** What a drawn function is called: as what it stands for, a function or an image. */
export function nameOfDrawn(graph: DrawnGraph, drawn: number): string {
  const { functions, functionOf, isFolded, image } = graph;
  return isFolded[drawn] === FOLDED_IMAGE
    ? (functions.images[image[drawn]]?.name ?? "outside of images")
    : functions.names[functionOf[drawn]];
}

/** Of how many blocks of the process a drawn block is made. */
export function blocksOfDrawn(graph: DrawnGraph, block: number): number {
  const drawn = graph.functionOfBlock[block];
  if (graph.isWhole || graph.isFolded[drawn]) {
    return graph.isWhole ? 1 : graph.size[drawn];
  }
  // Folded loops are of one function.
  const { firstBlock } = graph.functions;
  const function_ = graph.functionOf[drawn];
  const own = graph.drawnBlock.subarray(firstBlock[function_], firstBlock[function_ + 1]);
  return own.reduce((n, one) => n + (one === block ? 1 : 0), 0);
}

/** The thread of all blocks that were folded into one; -2 where they are of several. */
function foldOwners(graph: DrawnGraph, owner: Int32Array): Int32Array {
  const found = new Int32Array(graph.nBlocks).fill(-1);
  graph.drawnBlock.forEach((drawn, i) => {
    if (drawn >= 0 && owner[i] !== -1) {
      found[drawn] = found[drawn] === -1 || found[drawn] === owner[i] ? owner[i] : -2;
    }
  });
  return found;
}

function wholeGraph(functions: Functions, blocks: Blocks | null): DrawnGraph {
  const { count, nBlocks, firstBlock } = functions;
  const size = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    size[i] = firstBlock[i + 1] - firstBlock[i];
  }
  const own = (n: number) => Uint32Array.from({ length: n }, (_, i) => i);
  const blockOf = own(blocks ? nBlocks : 0);
  const functionOf = own(count);
  return {
    functions,
    blocks,
    isWhole: true,
    nFunctions: count,
    nBlocks,
    drawnFunction: new Int32Array(functionOf.buffer),
    functionOf,
    drawnBlock: new Int32Array(blockOf.buffer),
    blockOf,
    isFolded: new Uint8Array(count),
    functionOfBlock: blocks ? blocks.function : new Uint32Array(0),
    size,
    firstBlock,
    caller: functions.caller,
    depth: functions.depth,
    image: functions.image,
    links: {
      source: functions.linkSource,
      target: functions.linkTarget,
      label: functions.linkCall,
      reduced: null,
    },
    edges: {
      source: blocks?.edgeSource ?? new Int32Array(0),
      target: blocks?.edgeTarget ?? new Int32Array(0),
      label: blocks?.edgeKind ?? new Int8Array(0),
      reduced: null,
    },
  };
}

function reduceGraph(functions: Functions, blocks: Blocks | null, folding: Folding): DrawnGraph {
  const { count, firstBlock, flags, image, caller, depth } = functions;
  const hidden = new Set(folding.hiddenImages);
  const foldedImages = new Set(folding.foldedImages);
  const foldedFunctions = new Set(folding.foldedFunctions);
  const drawnFunction = new Int32Array(count).fill(-1);
  const isPassed = new Uint8Array(count);
  const functionOf: number[] = [];
  const folded: number[] = [];
  const ofImage = new Map<number, number>();
  for (let i = 0; i < count; i++) {
    if (hidden.has(image[i])) {
      continue;
    }
    if (folding.hideStubs && flags[i] & FUNCTION_FLAG.stub) {
      isPassed[i] = 1;
      continue;
    }
    const isImage = foldedImages.has(image[i]);
    let drawn = isImage ? ofImage.get(image[i]) : undefined;
    if (drawn === undefined) {
      // Functions come in the order of discovery, so what is folded stands where its first one does.
      drawn = functionOf.length;
      functionOf.push(i);
      folded.push(isImage ? FOLDED_IMAGE : foldedFunctions.has(i) ? FOLDED_FUNCTION : 0);
      if (isImage) {
        ofImage.set(image[i], drawn);
      }
    }
    drawnFunction[i] = drawn;
  }
  const nFunctions = functionOf.length;
  const size = new Uint32Array(nFunctions);
  drawnFunction.forEach((drawn, i) => {
    if (drawn >= 0) {
      size[drawn] += firstBlock[i + 1] - firstBlock[i];
    }
  });
  const drawnBlocks = blocks
    ? reduceBlocks(functions, blocks, drawnFunction, functionOf, folded, folding.foldLoops)
    : null;
  const links = reduceEdges(functions.linkSource, functions.linkTarget, functions.linkCall, drawnFunction, isPassed);
  const edges = blocks && drawnBlocks ? reduceBlockEdges(blocks, drawnBlocks.drawnBlock, isPassed) : null;
  const sums = new Uint32Array(nFunctions + 1);
  for (let i = 0; i < nFunctions; i++) {
    sums[i + 1] = sums[i] + (folded[i] ? 1 : size[i]);
  }
  const firstDrawn = drawnBlocks?.firstBlock ?? sums;
  return {
    functions,
    blocks,
    isWhole: false,
    nFunctions,
    nBlocks: firstDrawn[nFunctions],
    drawnFunction,
    functionOf: Uint32Array.from(functionOf),
    drawnBlock: drawnBlocks?.drawnBlock ?? new Int32Array(0),
    blockOf: drawnBlocks?.blockOf ?? new Uint32Array(0),
    isFolded: Uint8Array.from(folded),
    functionOfBlock: drawnBlocks?.functionOfBlock ?? new Uint32Array(0),
    size,
    firstBlock: firstDrawn,
    caller: Int32Array.from(functionOf, (function_, drawn) => {
      // The first on the way to the root that is drawn, and is not folded into the same.
      let by = caller[function_];
      while (by >= 0 && (drawnFunction[by] < 0 || drawnFunction[by] >= drawn)) {
        by = caller[by];
      }
      return by >= 0 ? drawnFunction[by] : -1;
    }),
    depth: Int32Array.from(functionOf, (function_) => depth[function_]),
    image: Int32Array.from(functionOf, (function_) => image[function_]),
    links: { source: links.source, target: links.target, label: links.label, reduced: links },
    edges: edges
      ? { source: edges.source, target: edges.target, label: edges.label, reduced: edges }
      : { source: new Int32Array(0), target: new Int32Array(0), label: new Int8Array(0), reduced: null },
  };
}

interface ReducedBlocks {
  drawnBlock: Int32Array;
  blockOf: Uint32Array;
  functionOfBlock: Uint32Array;
  firstBlock: Uint32Array;
}

function reduceBlocks(
  functions: Functions,
  blocks: Blocks,
  drawnFunction: Int32Array,
  functionOf: readonly number[],
  folded: readonly number[],
  foldLoops: boolean,
): ReducedBlocks {
  const { firstBlock, entryBlock } = functions;
  const { edgeSource, edgeTarget, edgeKind } = blocks;
  const loops = foldLoops
    ? findLoops(blocks.count, edgeSource, edgeTarget, (edge) => {
        const kind = edgeKind[edge];
        const isCall = kind === EDGE_KIND.call || kind === EDGE_KIND.indirect_call;
        return !isCall && blocks.function[edgeSource[edge]] === blocks.function[edgeTarget[edge]];
      })
    : null;
  const drawnBlock = new Int32Array(blocks.count).fill(-1);
  const firstDrawn = new Uint32Array(functionOf.length + 1);
  const blockOf: number[] = [];
  const functionOfBlock: number[] = [];
  functionOf.forEach((function_, drawn) => {
    firstDrawn[drawn] = blockOf.length;
    if (folded[drawn]) {
      blockOf.push(entryBlock[function_]);
      functionOfBlock.push(drawn);
      return;
    }
    for (let block = firstBlock[function_]; block < firstBlock[function_ + 1]; block++) {
      // The lowest block of a loop comes first and stands for it.
      const of = loops ? loops[block] : block;
      if (of === block) {
        drawnBlock[block] = blockOf.length;
        blockOf.push(block);
        functionOfBlock.push(drawn);
      } else {
        drawnBlock[block] = drawnBlock[of];
      }
    }
  });
  firstDrawn[functionOf.length] = blockOf.length;
  for (let block = 0; block < blocks.count; block++) {
    const drawn = drawnFunction[blocks.function[block]];
    if (drawn >= 0 && folded[drawn]) {
      drawnBlock[block] = firstDrawn[drawn];
    }
  }
  return {
    drawnBlock,
    blockOf: Uint32Array.from(blockOf),
    functionOfBlock: Uint32Array.from(functionOfBlock),
    firstBlock: firstDrawn,
  };
}

function reduceBlockEdges(blocks: Blocks, drawnBlock: Int32Array, isPassedFunction: Uint8Array): ReducedEdges {
  const isPassed = new Uint8Array(blocks.count);
  for (let block = 0; block < blocks.count; block++) {
    isPassed[block] = isPassedFunction[blocks.function[block]];
  }
  return reduceEdges(blocks.edgeSource, blocks.edgeTarget, blocks.edgeKind, drawnBlock, isPassed);
}
