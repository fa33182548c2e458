// The mode "structure": blocks by image. Pure.
import { CATEGORIES, COLD, mixColors, type Rgb } from "../../base/color.ts";
import { type ColoringInput, DIM, isExecuted, type Legend, OTHER, type Paint, type Painter, plain } from "./paint.ts";
import { FUNCTION_FLAG } from "../../protocol/generated.ts";

/** The colour of images other than the executable's, in the order of how many blocks they have. */
const IMAGE_COLORS = [CATEGORIES[1], CATEGORIES[2], CATEGORIES[3], CATEGORIES[4], CATEGORIES[5], CATEGORIES[6]];
const MAIN_COLOR = CATEGORIES[0];

export function paintStructure({ graph, counts }: ColoringInput): Painter {
  const { functions, functionOf } = graph;
  const sizes = new Map<number, number>();
  let stubs = 0;
  for (let i = 0; i < graph.nFunctions; i++) {
    if (functions.flags[functionOf[i]] & FUNCTION_FLAG.stub) {
      stubs += graph.size[i];
    } else if (isExecuted(counts, i)) {
      sizes.set(graph.image[i], (sizes.get(graph.image[i]) ?? 0) + graph.size[i]);
    }
  }
  const colors = new Map<number, Rgb>();
  const swatches: Legend["swatches"] = [];
  const main = functions.mainImage;
  const others = [...sizes.keys()].filter((image) => image !== main && image >= 0);
  others.sort((a, b) => sizes.get(b)! - sizes.get(a)! || a - b);
  if (sizes.has(main) && main >= 0) {
    colors.set(main, MAIN_COLOR);
    swatches.push({ color: MAIN_COLOR, label: functions.images[main].name, count: sizes.get(main)! });
  }
  others.slice(0, IMAGE_COLORS.length).forEach((image, rank) => {
    colors.set(image, IMAGE_COLORS[rank]);
    swatches.push({ color: IMAGE_COLORS[rank], label: functions.images[image].name, count: sizes.get(image)! });
  });
  const rest = [...sizes.entries()].filter(([image]) => !colors.has(image));
  if (rest.length > 0) {
    const label = rest.every(([image]) => image < 0) ? "outside of images" : "other code";
    swatches.push({ color: OTHER, label, count: rest.reduce((sum, [, size]) => sum + size, 0) });
  }
  if (stubs > 0) {
    swatches.push({ color: mixColors(OTHER, COLD, 0.6), label: "stubs, dim", count: stubs });
  }
  const paintFunction = (drawn: number): Paint => {
    const flags = functions.flags[functionOf[drawn]];
    const color = flags & FUNCTION_FLAG.outside ? OTHER : (colors.get(graph.image[drawn]) ?? OTHER);
    return flags & FUNCTION_FLAG.stub ? { color: mixColors(color, COLD, 0.6), strength: DIM } : plain(color);
  };
  return {
    legend: { title: "Blocks by image", swatches, ramp: null },
    paintFunction,
    paintBlock: (drawn) => paintFunction(graph.functionOfBlock[drawn]),
  };
}
