// What the graph view shows, as signals: the graph as the filter has it, its layout, its colours.
import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { LayoutResult } from "../layout/layout.ts";
import { KeptLayouts } from "../layout/kept-layouts.ts";
import { prepareLayouts, requestLayout } from "../layout/layout-client.ts";
import { MovedByLayout, type MovedNodes } from "../layout/moved-nodes.ts";
import type { ShownPicture } from "../export/shown-picture.ts";
import { MOST_BLOCKS } from "../../protocol/generated.ts";
import { highlights } from "../highlights.ts";
import { type RecentBlock, recentBlocks } from "../recent.ts";
import { blocks, counts, failure, functions, isCounted, isLive } from "../session.ts";
import {
  type Camera,
  dimensions,
  filter,
  layout,
  mode,
  type Selection,
  selection,
  update,
  viewState,
} from "../view-state.ts";
import { type NodePlaces, nodePlaces } from "./detail.ts";
import { colorEdges, type EdgeColors } from "./edge-colors.ts";
import { type DrawnCounts, type DrawnGraph, foldCounts, foldGraph, type Folding, layoutInput } from "./folding.ts";
import { colorNodes } from "./node-colors.ts";
import { isExecuted, type NodeColors } from "./paint.ts";

/** A layout of a graph that is drawn. */
export interface PlacedGraph {
  graph: DrawnGraph;
  result: LayoutResult;
  places: NodePlaces;
  /** What the reader put elsewhere: `places` has it there. */
  moved: MovedNodes;
  /** Else a better one of the same comes. */
  isFinal: boolean;
  /** The graph is the one before, grown: what was there is where it was. */
  isGrown?: boolean;
}

/** All that a picture of a graph shows, and what it does: of the process that is looked at, or of two that are compared. */
export interface GraphScene {
  /** What it is of, for who can't see it. */
  label: string;
  drawnGraph: ReadonlySignal<DrawnGraph | null>;
  drawnCounts: ReadonlySignal<DrawnCounts | null>;
  nodeColors: ReadonlySignal<NodeColors | null>;
  edgeColors: ReadonlySignal<{ edges: EdgeColors; links: EdgeColors } | null>;
  /** The latest layout, which may be of the graph or the layout before while the next is made. */
  placedGraph: ReadonlySignal<PlacedGraph | null>;
  /** Ask for a layout whenever what it is made of changes. Returns what ends that. */
  followLayout: () => () => void;
  selection: ReadonlySignal<Selection | null>;
  select: (chosen: Selection | null) => void;
  /** Look at what is selected by itself. */
  open: () => void;
  /** null: everything is in the picture. */
  camera: ReadonlySignal<Camera | null>;
  setCamera: (camera: Camera | null) => void;
  /** Functions whose names hold it have labels. */
  text: ReadonlySignal<string>;
  /** What was executed just before the cursor. */
  recent: ReadonlySignal<RecentBlock[] | null>;
  /** In place of how often a node was executed, in words. */
  describe?: (chosen: Selection) => string;
  /** How often a drawn function was entered, in words: `×10`, where the picture is of one process. */
  tellEntries?: (drawn: number, entries: number) => string;
  /** Only a part of the graph is drawn, beside another picture of it; else all of it. */
  part?: ScenePart;
}

/** What two pictures have in common that each draw what one of two processes executed of a graph. */
export interface ScenePart {
  /** How often all was executed: both are fitted into their frames by it. */
  whole: ReadonlySignal<DrawnCounts | null>;
  /** From where both look while one is moved; `eye` is null for all of it. Told by one of them. */
  eye: Signal<{ by: object; eye: Camera | null } | null>;
  /** Whether the legend of both is in files of this one. */
  hasLegend: boolean;
  /** Has the picture, for what makes files of it. */
  shown: Signal<ShownPicture | null>;
}

/** By drawn block and by drawn function whether it is left out of a picture. */
export interface LeftOut {
  blocks: Uint8Array;
  functions: Uint8Array;
}

/** What was not executed. */
export function findLeftOut(graph: DrawnGraph, counts: DrawnCounts): LeftOut {
  return {
    blocks: Uint8Array.from(counts.blocks ?? [], (n) => (n > 0 ? 0 : 1)),
    functions: Uint8Array.from({ length: graph.nFunctions }, (_, of) => (isExecuted(counts, of) ? 0 : 1)),
  };
}

/** The filter without its text, which only dims; as text, so that equal ones are one. */
const foldingWords = computed(() => {
  const { hideStubs, hiddenImages, foldedImages, foldedFunctions, foldLoops } = filter.value;
  return JSON.stringify({ hideStubs, hiddenImages, foldedImages, foldedFunctions, foldLoops });
});

const filterText = computed(() => filter.value.text);

/** The graph that is drawn; null until all that it needs is loaded. */
export const drawnGraph = computed<DrawnGraph | null>(() => {
  const of = functions.value;
  if (!of || (of.nBlocks <= MOST_BLOCKS && !blocks.value)) {
    return null;
  }
  return foldGraph(of, blocks.value, JSON.parse(foldingWords.value) as Folding);
});

export const drawnCounts = computed(() => {
  const graph = drawnGraph.value;
  const executed = counts.value;
  return graph && executed && executed.functionInstructions.length === graph.functions.count
    ? foldCounts(graph, executed)
    : null;
});

export const nodeColors = computed(() => {
  const graph = drawnGraph.value;
  const drawn = drawnCounts.value;
  return (
    graph &&
    drawn &&
    colorNodes({
      graph,
      counts: drawn,
      edgeExecutions: counts.value?.edgeExecutions ?? null,
      mode: mode.value,
      text: filterText.value,
      // While the cursor moves only the mode that shows it makes new colours: of the others a ring tells where it is.
      recent: mode.value === "recency" && !isLive.value ? recentBlocks.value : null,
      isCounted: isCounted.value,
      highlights: highlights.value,
    })
  );
});

/** The colours of edges between blocks, and of links between functions. */
export const edgeColors = computed(() => {
  const graph = drawnGraph.value;
  const drawn = drawnCounts.value;
  const ofNodes = nodeColors.value;
  if (!graph || !drawn || !ofNodes) {
    return null;
  }
  const executions = drawn.edges ?? new Float64Array(0);
  const edges = drawn.edges ? graph.edges : { ...graph.edges, source: new Int32Array(0), target: new Int32Array(0) };
  return {
    edges: colorEdges(edges, executions, mode.value, false, ofNodes.blocks, isCounted.value),
    links: colorEdges(graph.links, drawn.links, mode.value, true, ofNodes.functions, isCounted.value),
  };
});

/** Layouts of a graph: the latest, and what asks for it. */
export function layOutGraph(
  drawn: ReadonlySignal<DrawnGraph | null>,
): Pick<GraphScene, "followLayout"> & { placedGraph: Signal<PlacedGraph | null> } {
  const placedGraph = signal<PlacedGraph | null>(null);
  const keptLayouts = new KeptLayouts();
  const moved = new MovedByLayout();
  const followLayout = () => {
    prepareLayouts();
    // A picture that grows has layouts of its own: live-layout.ts.
    return effect(() => (isLive.value ? undefined : askForLayout(drawn.value, placedGraph, keptLayouts, moved)));
  };
  return { placedGraph, followLayout };
}

function askForLayout(
  graph: DrawnGraph | null,
  placedGraph: Signal<PlacedGraph | null>,
  keptLayouts: KeptLayouts,
  movedBy: MovedByLayout,
): (() => void) | undefined {
  const [asked, inDimensions] = [layout.value, dimensions.value];
  const before = placedGraph.peek();
  if (!graph) {
    placedGraph.value = null;
    return undefined;
  }
  const isThere = before?.graph === graph && before.isFinal;
  if (isThere && before.result.layout === asked && before.result.dimensions === inDimensions) {
    return undefined;
  }
  const place = (result: LayoutResult, isFinal: boolean) => {
    const moved = movedBy.of(graph, result.layout, result.dimensions);
    const places = nodePlaces(graph, result);
    moved.write(moved.nodes(), basePlaces(result), places.positions);
    placedGraph.value = { graph, result, places, moved, isFinal };
  };
  const kept = keptLayouts.find(graph, asked, inDimensions);
  if (kept) {
    place(kept, true);
    return undefined;
  }
  return requestLayout(
    layoutInput(graph, asked, inDimensions),
    (result, isFinal) => {
      if (isFinal) {
        keptLayouts.keep(graph, result);
      }
      place(result, isFinal);
    },
    (message) => {
      failure.value = message;
    },
  );
}

const layouts = layOutGraph(drawnGraph);

/** The latest layout of the process' graph, which may be of the graph or the layout before while the next is made. */
export const { placedGraph } = layouts;
/** Where the layout has nodes, whatever was moved. */
export function basePlaces({ blocks, functions }: LayoutResult): (node: number, axis: number) => number {
  return (node, axis) => {
    const at = 3 * node + axis;
    return at < blocks.length ? blocks[at] : functions[at - blocks.length];
  };
}

/** The graph of the process that is looked at. */
export const processScene: GraphScene = {
  label: "Graph of the process",
  drawnGraph,
  drawnCounts,
  nodeColors,
  edgeColors,
  ...layouts,
  selection,
  select: (chosen) => update({ selection: chosen }),
  open: () => update({ view: "function" }),
  camera: computed(() => viewState.value.camera),
  setCamera: (camera) => update({ camera }),
  text: filterText,
  recent: recentBlocks,
};
