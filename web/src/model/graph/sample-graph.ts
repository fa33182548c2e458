// A small graph for tests: a program, a stub, a library, with a loop and a conditional branch.
import { type Blocks, type Counts, type Functions, NO_OFFSET } from "../../api/graph.ts";
import { EDGE_KIND, EXIT_KIND } from "../../protocol/generated.ts";
import { FUNCTION_FLAG } from "../../protocol/generated.ts";

/** [from, to, kind, executions]. */
export type SampleEdge = readonly [number, number, keyof typeof EDGE_KIND, number];

/**
 * Blocks of `main` 0 to 3 (1 and 2 are a loop), of `puts@plt` 4, of the library's `puts` 5 and 6, of its `flush` 7.
 */
export const SAMPLE_EDGES: readonly SampleEdge[] = [
  [-1, 0, "start", 1],
  [0, 1, "fall_through", 1],
  [1, 2, "not_taken", 10],
  [2, 1, "jump", 10],
  [1, 3, "taken", 1],
  [3, 4, "call", 6],
  [4, 5, "indirect_jump", 6],
  [5, 6, "taken", 6],
  [6, 7, "call", 6],
  [7, 6, "return", 6],
];

export const SAMPLE_EXECUTIONS = [1, 11, 10, 6, 6, 6, 6, 6];

export function sampleGraph(): { functions: Functions; blocks: Blocks; counts: Counts } {
  const firstBlock = Uint32Array.from([0, 4, 5, 7, 8]);
  const functionOf = Uint32Array.from([0, 0, 0, 0, 1, 2, 2, 3]);
  const address = BigUint64Array.from({ length: 8 }, (_, i) => 0x1000n + 16n * BigInt(i));
  const functions: Functions = {
    processId: 1,
    count: 4,
    nBlocks: 8,
    nEdges: SAMPLE_EDGES.length,
    images: [
      { path: "/bin/program", name: "program", base: 0n, sizeBytes: 4096 },
      { path: "/lib/library.so", name: "library.so", base: 4096n, sizeBytes: 4096 },
    ],
    mainImage: 0,
    threads: [10, 11],
    names: ["main", "puts@plt", "puts", "flush"],
    image: Int32Array.from([0, 0, 1, 1]),
    offset: new BigUint64Array(4).fill(NO_OFFSET),
    address: BigUint64Array.from([0x1000n, 0x1040n, 0x1050n, 0x1070n]),
    entryBlock: Uint32Array.from([0, 4, 5, 7]),
    firstBlock,
    discovered: Float64Array.from([0, 10, 20, 30]),
    caller: Int32Array.from([-1, 0, 1, 2]),
    depth: Int32Array.from([0, 1, 1, 2]),
    flags: Uint8Array.from([FUNCTION_FLAG.main_image, FUNCTION_FLAG.main_image | FUNCTION_FLAG.stub, 0, 0]),
    linkSource: Uint32Array.from([0, 1, 2]),
    linkTarget: Uint32Array.from([1, 2, 3]),
    linkCall: Uint8Array.from([1, 0, 1]),
  };
  const blocks: Blocks = {
    firstBlock: 0,
    count: 8,
    function: functionOf,
    blockId: Float64Array.from({ length: 8 }, (_, i) => i),
    address,
    sizeBytes: new Uint32Array(8).fill(16),
    nInstructions: new Uint32Array(8).fill(4),
    exitKind: Int8Array.from([
      EXIT_KIND.fall_through,
      EXIT_KIND.conditional,
      EXIT_KIND.jump,
      EXIT_KIND.call,
      EXIT_KIND.indirect_jump,
      EXIT_KIND.conditional,
      EXIT_KIND.call,
      EXIT_KIND.return,
    ]),
    codeVersion: new Uint32Array(8),
    first: Float64Array.from([0, 1, 2, 3, 10, 20, 21, 30]),
    isRecorded: new Uint8Array(8).fill(1),
    distance: null,
    edgeIndex: Uint32Array.from(SAMPLE_EDGES, (_, i) => i),
    edgeSource: Int32Array.from(SAMPLE_EDGES, (edge) => edge[0]),
    edgeTarget: Int32Array.from(SAMPLE_EDGES, (edge) => edge[1]),
    edgeKind: Int8Array.from(SAMPLE_EDGES, (edge) => EDGE_KIND[edge[2]]),
    edgeCallee: new Int32Array(SAMPLE_EDGES.length).fill(-1),
  };
  const counts: Counts = {
    functionInstructions: Float64Array.from([112, 24, 48, 24]),
    functionEntries: Float64Array.from([1, 6, 6, 6]),
    linkExecutions: Float64Array.from([6, 6, 6]),
    blockExecutions: Float64Array.from(SAMPLE_EXECUTIONS),
    edgeExecutions: Float64Array.from(SAMPLE_EDGES, (edge) => edge[3]),
    blockOwner: Int32Array.from([0, 0, 0, 0, -2, 1, 1, 1]),
  };
  return { functions, blocks, counts };
}
