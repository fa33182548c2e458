// The graph of both processes as the graph's picture takes it.
import { computed, signal } from "@preact/signals";
import { MOST_BLOCKS } from "../../protocol/generated.ts";
import { colorEdges } from "../graph/edge-colors.ts";
import { type DrawnCounts, type DrawnGraph, foldCounts, foldGraph } from "../graph/folding.ts";
import { paintNodes } from "../graph/node-colors.ts";
import { type GraphScene, layOutGraph } from "../graph/scene.ts";
import { recentBlocks } from "../recent.ts";
import { type Camera, dimensions, EMPTY_FILTER, layout, updateCompare } from "../view-state.ts";
import { colorOf, countsWords, entriesWords } from "./classes.ts";
import { compareText, comparedSelection, pair, selectCompared, union } from "./compare-session.ts";
import { paintCompared, unionCounts } from "./paint-compared.ts";

export const drawnGraph = computed<DrawnGraph | null>(() => {
  const of = union.value;
  return of && foldGraph(of.functions, of.blocks.count <= MOST_BLOCKS ? of.blocks : null, EMPTY_FILTER);
});

const drawnCounts = computed(() => {
  const [graph, of] = [drawnGraph.value, union.value];
  return graph && of && foldCounts(graph, unionCounts(of));
});

export const nodeColors = computed(() => {
  const [graph, counts, of] = [drawnGraph.value, drawnCounts.value, union.value];
  if (!graph || !counts || !of || graph.functions !== of.functions) {
    return null;
  }
  const painter = paintCompared(of, graph, counts.blocks !== null);
  return paintNodes(painter, { graph, counts, text: compareText.value, highlights: [] });
});

/** Colours of the edges that were taken as `counts` has it. */
export function colorComparedEdges(counts: DrawnCounts | null) {
  const [graph, of, ofNodes] = [drawnGraph.value, union.value, nodeColors.value];
  if (!graph || !counts || !of || !ofNodes) {
    return null;
  }
  const { edges, links } = of.compared;
  const paint =
    ({ a, b }: typeof edges) =>
    (index: number) =>
      colorOf(a[index], b[index], true);
  const ends = counts.edges ? graph.edges : { ...graph.edges, source: new Int32Array(0), target: new Int32Array(0) };
  const executions = counts.edges ?? new Float64Array(0);
  return {
    edges: colorEdges(ends, executions, "heat", false, ofNodes.blocks, of.compared.isCounted, paint(edges)),
    links: colorEdges(graph.links, counts.links, "heat", true, ofNodes.functions, of.compared.isCounted, paint(links)),
  };
}

/** By block of A the first node of it. */
const nodeOfBlock = computed(() => {
  const found = new Map<number, number>();
  union.value?.compared.block.a.forEach((block, node) => {
    if (block >= 0 && !found.has(block)) {
      found.set(block, node);
    }
  });
  return found;
});

/** Where the reader looked at the graph from, and of what in which layout that was: from there others are seen otherwise. */
const looked = signal<{ at: string; camera: Camera | null }>({ at: "", camera: null });
const shown = computed(() => JSON.stringify([pair.value, layout.value, dimensions.value]));

export const comparedScene: GraphScene = {
  label: "Graph of both processes",
  drawnGraph,
  drawnCounts,
  nodeColors,
  edgeColors: computed(() => colorComparedEdges(drawnCounts.value)),
  ...layOutGraph(drawnGraph),
  selection: comparedSelection,
  select: selectCompared,
  open: () => updateCompare({ part: "function" }),
  camera: computed(() => (looked.value.at === shown.value ? looked.value.camera : null)),
  setCamera: (camera) => (looked.value = { at: shown.peek(), camera }),
  text: compareText,
  recent: computed(() => {
    const nodes = nodeOfBlock.value;
    return (
      recentBlocks.value?.flatMap(({ block, weight }) => {
        const node = nodes.get(block);
        return node === undefined ? [] : [{ block: node, weight }];
      }) ?? null
    );
  }),
  tellEntries: (drawn) => {
    const of = union.peek()?.compared;
    return of?.isCounted ? entriesWords(of.entries.a[drawn], of.entries.b[drawn]) : "";
  },
  describe: ({ kind, index }) => {
    const of = union.peek()?.compared;
    if (!of) {
      return "";
    }
    return kind === "block"
      ? `executed: ${countsWords(of.executions.a[index], of.executions.b[index], of.isComparable[index] > 0)}`
      : `instructions: ${countsWords(of.instructions.a[index], of.instructions.b[index], true)}`;
  },
};
