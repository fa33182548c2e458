// The graph of a process that runs in the form in which that of a finished trace comes: functions in an order, the blocks of
// one after another, edges between both by indices. Pure. Indices change as code is found; rows (live-graph.ts) do not.
import type { Blocks, Counts, Functions } from "../../api/graph.ts";
import { EDGE_KIND } from "../../protocol/generated.ts";
import type { LiveGraph } from "./live-graph.ts";

/** The rows that functions, blocks and edges have, by index; and the indices of rows, -1 for none. */
export interface LiveStructure {
  functions: Functions;
  blocks: Blocks;
  functionRows: Uint32Array;
  blockRows: Uint32Array;
  edgeRows: Uint32Array;
  functionOfRow: Int32Array;
  blockOfRow: Int32Array;
  /** By edge the link between functions that it is part of, or -1. */
  linkOfEdge: Int32Array;
}

const CALLS: ReadonlySet<number> = new Set([
  EDGE_KIND.call,
  EDGE_KIND.indirect_call,
  EDGE_KIND.signal,
  EDGE_KIND.fault,
]);
const ENTERS: ReadonlySet<number> = new Set([
  ...CALLS,
  EDGE_KIND.jump,
  EDGE_KIND.indirect_jump,
  EDGE_KIND.taken,
  EDGE_KIND.start,
]);

export function buildStructure(graph: LiveGraph): LiveStructure {
  const { functions, blocks } = graph;
  const rowsOfFunction = groupBlocks(graph);
  const functionRows: number[] = [];
  const functionOfRow = new Int32Array(functions.count).fill(-1);
  rowsOfFunction.forEach((rows, row) => {
    if (rows.length > 0) {
      functionOfRow[row] = functionRows.length;
      functionRows.push(row);
    }
  });
  const n = functionRows.length;
  const nBlocks = functionRows.reduce((sum, row) => sum + rowsOfFunction[row].length, 0);
  const blockRows = new Uint32Array(nBlocks);
  const firstBlock = new Uint32Array(n + 1);
  const blockOfRow = new Int32Array(blocks.count).fill(-1);
  const blockFunction = new Uint32Array(nBlocks);
  let at = 0;
  functionRows.forEach((row, index) => {
    firstBlock[index] = at;
    for (const block of rowsOfFunction[row]) {
      blockOfRow[block] = at;
      blockFunction[at] = index;
      blockRows[at++] = block;
    }
  });
  firstBlock[n] = at;
  const rows = Uint32Array.from(functionRows);
  const found = takeBlocks(graph, blockRows, blockFunction);
  const { edgeRows, ...edges } = takeEdges(graph, blockOfRow);
  const links = findLinks(edges, blockFunction, n);
  const address = pickBig(functions.array("address"), rows);
  const entryBlock = new Uint32Array(n);
  for (let index = 0; index < n; index++) {
    entryBlock[index] = firstBlock[index];
    for (let block = firstBlock[index]; block < firstBlock[index + 1]; block++) {
      if (found.address[block] === address[index]) {
        entryBlock[index] = block;
        break;
      }
    }
  }
  const callers = functions.array("caller");
  const { linkOfEdge, ...linkArrays } = links;
  return {
    functions: {
      processId: graph.meta?.process ?? -1,
      count: n,
      nBlocks,
      nEdges: edgeRows.length,
      images: graph.images.map(({ path, base, size_bytes }) => ({
        path,
        name: path.slice(path.lastIndexOf("/") + 1),
        base: BigInt(base),
        sizeBytes: size_bytes,
      })),
      mainImage: -1,
      threads: [],
      names: functionRows.map((row) => graph.names[row] ?? ""),
      image: pick(Int32Array, functions.array("image"), rows),
      offset: pickBig(functions.array("offset"), rows),
      address,
      entryBlock,
      firstBlock,
      discovered: pick(Float64Array, functions.array("discovered"), rows),
      // Who called first was known first; what came late of a thread that told late is an exception, and has no caller.
      caller: Int32Array.from(functionRows, (row, index) => {
        const caller = callers[row] >= 0 ? functionOfRow[callers[row]] : -1;
        return caller < index ? caller : -1;
      }),
      depth: pick(Int32Array, functions.array("depth"), rows),
      flags: pick(Uint8Array, functions.array("flags"), rows),
      ...linkArrays,
    },
    blocks: { ...found, ...edges },
    functionRows: rows,
    blockRows,
    edgeRows,
    functionOfRow,
    blockOfRow,
    linkOfEdge,
  };
}

/** Executions by now of what a structure has. */
export function buildCounts(graph: LiveGraph, structure: LiveStructure): Counts {
  const { functions, blocks, linkOfEdge, blockRows, edgeRows } = structure;
  const blockExecutions = pick(Float64Array, graph.blocks.executions.array, blockRows);
  const edgeExecutions = pick(Float64Array, graph.edges.executions.array, edgeRows);
  const functionInstructions = new Float64Array(functions.count);
  const functionEntries = new Float64Array(functions.count);
  const linkExecutions = new Float64Array(functions.linkSource.length);
  for (let block = 0; block < blocks.count; block++) {
    functionInstructions[blocks.function[block]] += blockExecutions[block] * blocks.nInstructions[block];
  }
  for (let edge = 0; edge < edgeRows.length; edge++) {
    if (linkOfEdge[edge] >= 0) {
      linkExecutions[linkOfEdge[edge]] += edgeExecutions[edge];
    }
    const [source, target, kind] = [blocks.edgeSource[edge], blocks.edgeTarget[edge], blocks.edgeKind[edge]];
    const of = target >= 0 ? blocks.function[target] : -1;
    if (of >= 0 && ENTERS.has(kind) && functions.entryBlock[of] === target) {
      const isInside = source >= 0 && blocks.function[source] === of;
      if (!isInside || kind === EDGE_KIND.call || kind === EDGE_KIND.indirect_call) {
        functionEntries[of] += edgeExecutions[edge];
      }
    }
  }
  return { functionInstructions, functionEntries, linkExecutions, blockExecutions, edgeExecutions, blockOwner: null };
}

/** By row of a function the rows of its blocks, by address and version. */
function groupBlocks({ functions, blocks }: LiveGraph): Uint32Array[] {
  const of = blocks.array("function");
  const isGone = blocks.gone.array;
  const counts = new Uint32Array(functions.count + 1);
  for (let row = 0; row < blocks.count; row++) {
    if (!isGone[row] && of[row] >= 0 && of[row] < functions.count) {
      counts[of[row] + 1]++;
    }
  }
  for (let i = 0; i < functions.count; i++) {
    counts[i + 1] += counts[i];
  }
  const next = counts.slice();
  const grouped = new Uint32Array(counts[functions.count]);
  for (let row = 0; row < blocks.count; row++) {
    if (!isGone[row] && of[row] >= 0 && of[row] < functions.count) {
      grouped[next[of[row]]++] = row;
    }
  }
  const address = Float64Array.from(blocks.array("address").subarray(0, blocks.count), Number);
  const version = blocks.array("code_version");
  return Array.from({ length: functions.count }, (_, row) =>
    grouped
      .subarray(counts[row], counts[row + 1])
      .sort((a, b) => address[a] - address[b] || version[a] - version[b] || a - b),
  );
}

function takeBlocks({ blocks }: LiveGraph, rows: Uint32Array, of: Uint32Array) {
  return {
    firstBlock: 0,
    count: rows.length,
    function: of,
    blockId: Float64Array.from(rows),
    address: pickBig(blocks.array("address"), rows),
    sizeBytes: pick(Uint32Array, blocks.array("size_bytes"), rows),
    nInstructions: pick(Uint32Array, blocks.array("n_instructions"), rows),
    exitKind: pick(Int8Array, blocks.array("exit_kind"), rows),
    codeVersion: pick(Uint32Array, blocks.array("code_version"), rows),
    first: pick(Float64Array, blocks.array("first"), rows),
    isRecorded: pick(Uint8Array, blocks.array("is_recorded"), rows),
    distance: null,
  };
}

type Ends = Pick<Blocks, "edgeIndex" | "edgeSource" | "edgeTarget" | "edgeKind" | "edgeCallee">;

function takeEdges({ edges }: LiveGraph, blockOfRow: Int32Array): Ends & { edgeRows: Uint32Array } {
  const [source, target] = [edges.array("source"), edges.array("target")];
  const callee = edges.array("callee");
  const isGone = edges.gone.array;
  const indexOf = (row: number) => (row >= 0 && row < blockOfRow.length ? blockOfRow[row] : -1);
  const kept: number[] = [];
  for (let row = 0; row < edges.count; row++) {
    if (!isGone[row] && indexOf(target[row]) >= 0) {
      kept.push(row);
    }
  }
  const edgeRows = Uint32Array.from(kept);
  return {
    edgeRows,
    edgeIndex: Uint32Array.from(kept, (_, index) => index),
    edgeSource: Int32Array.from(kept, (row) => indexOf(source[row])),
    edgeTarget: Int32Array.from(kept, (row) => indexOf(target[row])),
    edgeKind: pick(Int8Array, edges.array("kind"), edgeRows),
    edgeCallee: Int32Array.from(kept, (row) => indexOf(callee[row])),
  };
}

/** Edges between functions. Returns are not among them: they lead from a call to behind it, within who called. */
function findLinks(edges: Ends, of: Uint32Array, nFunctions: number) {
  const { edgeSource, edgeTarget, edgeKind } = edges;
  const known = new Map<number, number>();
  const linkOfEdge = new Int32Array(edgeSource.length).fill(-1);
  const ends: [number[], number[], number[]] = [[], [], []];
  for (let edge = 0; edge < edgeSource.length; edge++) {
    if (edgeSource[edge] < 0 || edgeKind[edge] === EDGE_KIND.return) {
      continue;
    }
    const [from, to] = [of[edgeSource[edge]], of[edgeTarget[edge]]];
    const isCall = CALLS.has(edgeKind[edge]) ? 1 : 0;
    if (from === to && !isCall) {
      continue;
    }
    const key = 2 * (from * nFunctions + to) + isCall;
    let link = known.get(key);
    if (link === undefined) {
      link = known.size;
      known.set(key, link);
      ends[0].push(from);
      ends[1].push(to);
      ends[2].push(isCall);
    }
    linkOfEdge[edge] = link;
  }
  return {
    linkOfEdge,
    linkSource: Uint32Array.from(ends[0]),
    linkTarget: Uint32Array.from(ends[1]),
    linkCall: Uint8Array.from(ends[2]),
  };
}

interface Maker<A> {
  new (length: number): A;
}

function pick<A extends { [index: number]: number }>(make: Maker<A>, from: A, rows: Uint32Array): A {
  const found = new make(rows.length);
  for (let i = 0; i < rows.length; i++) {
    found[i] = from[rows[i]];
  }
  return found;
}

function pickBig(from: BigUint64Array, rows: Uint32Array): BigUint64Array<ArrayBuffer> {
  const found = new BigUint64Array(rows.length);
  for (let i = 0; i < rows.length; i++) {
    found[i] = from[rows[i]];
  }
  return found;
}
