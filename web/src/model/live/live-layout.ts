// Where the graph of a running program is drawn: what is new comes next to what led to it, and nothing else moves, until the
// reader wants all laid out anew, or there is twice as much as the last time.
import { effect, signal } from "@preact/signals";
import { type PlacedGraph, placedGraph, drawnGraph } from "../graph/scene.ts";
import { nodePlaces } from "../graph/detail.ts";
import { type DrawnGraph, layoutInput } from "../graph/folding.ts";
import { requestLayout } from "../layout/layout-client.ts";
import type { LayoutResult } from "../layout/layout.ts";
import { failure } from "../session.ts";
import { dimensions, layout } from "../view-state.ts";
import type { LiveStructure } from "./live-picture.ts";
import { LivePlaces } from "./live-places.ts";

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

/** Place what is drawn; `structureOf` finds the rows of a graph, null if it is none of the recording. Returns what ends that. */
export function followLiveLayout(structureOf: (graph: DrawnGraph) => LiveStructure | null): () => void {
  let last: { key: string; result: LayoutResult; wish: number } | null = null;
  let pending: Pending | null = null;
  const show = (graph: DrawnGraph, result: LayoutResult, isGrown: boolean) => {
    const placed: PlacedGraph = { graph, result, places: nodePlaces(graph, result), isFinal: true, isGrown };
    placedGraph.value = placed;
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
          show(now, now === graph ? result : places.grow(now, current, result), false);
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
    if (!graph || !structure) {
      last = null;
      return;
    }
    const isKnown = last?.key === key;
    if (last && isKnown && placedGraph.peek()?.graph !== graph) {
      show(graph, places.grow(graph, structure, last.result), true);
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
