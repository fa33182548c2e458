// Makes any of the layouts. Pure: the same graph gets the same places, to the bit.
import { layOutCircle } from "./circle.ts";
import { layOutCylinder } from "./cylinder.ts";
import { layOutForce } from "./force.ts";
import { layOutBlocks } from "./force-on-blocks.ts";
import type { LayoutInput, LayoutResult } from "./layout.ts";
import { paceProgress } from "./progress.ts";

/** Places of functions and blocks, about one unit apart; `onProgress` is given what there is on the way, if it takes long. */
export function computeLayout(input: LayoutInput, onProgress?: (partial: LayoutResult) => void): LayoutResult {
  const progress = paceProgress(onProgress);
  switch (input.layout) {
    case "cylinder":
      return layOutCylinder(input);
    case "circle":
      return layOutCircle(input);
    case "force":
      return layOutForce(input, progress);
    case "blocks":
      return input.hasBlocks ? layOutBlocks(input, progress) : layOutForce(input, progress);
  }
}
