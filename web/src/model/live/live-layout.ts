// Where the graph of a running program is drawn: what is new comes next to what led to it, and nothing else moves, until the
// reader wants all laid out anew, or there is twice as much as the last time.
import { effect, signal } from "@preact/signals";
import { basePlaces, placedGraph, drawnGraph } from "../graph/scene.ts";
import { nodePlaces } from "../graph/detail.ts";
import { type DrawnGraph, layoutInput } from "../graph/folding.ts";
import { requestLayout } from "../layout/layout-client.ts";
import type { LayoutResult } from "../layout/layout.ts";
import { MovedByLayout } from "../layout/moved-nodes.ts";
import { failure } from "../session.ts";
import { dimensions, layout } from "../view-state.ts";
import type { LiveStructure } from "./live-picture.ts";
import { LivePlaces, numberByRow } from "./live-places.ts";

/** Whether something was placed as it came, so that laying out anew would change the picture. */
export const canLayOut = signal(false);

const wish = signal(0);
const places = new LivePlaces();

/** Lay all out anew. */
export function layOut(): void {
  wish.value++;
}

/** Bytes of all places that are kept. */
export function placesBytes(): number {
  return places.bytes;
}

interface Pending {
  key: string;
  stop: () => void;
}

/**
 * Place what is drawn; `structureOf` finds the rows of a graph, null if it is none of the recording, and rows are the same as
 * long as `generation` is. Returns what ends that.
 */
export function followLiveLayout(
  structureOf: (graph: DrawnGraph) => LiveStructure | null,
  generation: () => number,
): () => void {
  let last: { key: string; result: LayoutResult; wish: number } | null = null;
  let pending: Pending | null = null;
  let shownFor = generation();
  const movedBy = new MovedByLayout();
  const show = (graph: DrawnGraph, structure: LiveStructure, result: LayoutResult, isGrown: boolean) => {
    // What the reader moved is known by what it stands for: nodes have other numbers whenever the picture grows.
    const moved = movedBy.of(movedBy, result.layout, result.dimensions);
    const places = nodePlaces(graph, result);
    moved.renumber(numberByRow(graph, structure, places.nBlocks));
    moved.write(moved.nodes(), basePlaces(result), places.positions);
    placedGraph.value = { graph, result, places, moved, isFinal: true, isGrown };
  };
  const request = (graph: DrawnGraph, structure: LiveStructure, key: string, wished: number) => {
    pending?.stop();
    const stop = requestLayout(
      layoutInput(graph, layout.peek(), dimensions.peek()),
      (result, isFinal) => {
        if (!isFinal) {
          return;
        }
        pending = null;
        places.adopt(result, graph, structure);
        last = { key, result, wish: wished };
        const now = drawnGraph.peek();
        const current = now && structureOf(now);
        if (now && current) {
          show(now, current, now === graph ? result : places.grow(now, current, result), false);
          canLayOut.value = now !== graph;
        }
      },
      (message) => {
        pending = null;
        failure.value = message;
      },
    );
    pending = { key, stop };
  };
  const end = effect(() => {
    const graph = drawnGraph.value;
    const key = `${layout.value} ${dimensions.value}`;
    const wished = wish.value;
    const structure = graph && structureOf(graph);
    if (shownFor !== generation()) {
      // Rows are those of another process.
      shownFor = generation();
      last = null;
      pending?.stop();
      pending = null;
      movedBy.forget();
    }
    if (!graph || !structure) {
      last = null;
      return;
    }
    const isKnown = last?.key === key;
    if (last && isKnown && placedGraph.peek()?.graph !== graph) {
      show(graph, structure, places.grow(graph, structure, last.result), true);
      canLayOut.value = true;
    }
    const isWanted = !last || !isKnown || wished !== last.wish || graph.nBlocks > 2 * places.laidOut;
    if (isWanted && pending?.key !== key) {
      request(graph, structure, key, wished);
    }
  });
  return () => {
    end();
    pending?.stop();
  };
}
