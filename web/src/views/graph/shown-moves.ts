// The picture whose nodes can be put elsewhere just now, for the buttons that are not in it.
import { signal } from "@preact/signals";
import type { GraphScene } from "../../model/graph/scene.ts";
import type { NodeDrag } from "./node-drag.ts";

/** Null where no graph is shown. */
export const shownMoves = signal<{ scene: GraphScene; drag: NodeDrag } | null>(null);
