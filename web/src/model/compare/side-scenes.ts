// The graph of both processes as two pictures beside each other: in each what one of them executed, where the layout of both
// has it. Both are looked at from the same place.
import { computed, signal } from "@preact/signals";
import type { ShownPicture } from "../export/shown-picture.ts";
import { foldCounts } from "../graph/folding.ts";
import type { GraphScene, ScenePart } from "../graph/scene.ts";
import { entriesWords } from "./classes.ts";
import { colorComparedEdges, comparedScene, drawnGraph } from "./compare-scene.ts";
import { union } from "./compare-session.ts";
import { sideCounts } from "./paint-compared.ts";

const eye: ScenePart["eye"] = signal(null);

function makeScene(side: "a" | "b"): GraphScene & { part: ScenePart } {
  const drawnCounts = computed(() => {
    const [graph, of] = [drawnGraph.value, union.value];
    return graph && of && graph.functions === of.functions ? foldCounts(graph, sideCounts(of, side)) : null;
  });
  return {
    ...comparedScene,
    label: `Graph of ${side.toUpperCase()}`,
    drawnCounts,
    tellEntries: (_, entries) => {
      const of = union.peek()?.compared;
      return of?.isCounted ? entriesWords(side === "a" ? entries : 0, side === "b" ? entries : 0) : "";
    },
    edgeColors: computed(() => colorComparedEdges(drawnCounts.value)),
    // One of both asks for the layout that both have; and the cursor is A's.
    ...(side === "b" && { followLayout: () => () => undefined, recent: signal(null) }),
    part: { whole: comparedScene.drawnCounts, eye, hasLegend: side === "a", shown: signal<ShownPicture | null>(null) },
  };
}

export const sideScenes = { a: makeScene("a"), b: makeScene("b") };
