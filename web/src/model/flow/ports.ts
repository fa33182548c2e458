// Where edges leave a box below and come into it above: as nearly over what they lead to as the box is wide.
import type { Bundle } from "./bundles.ts";
import { type FlowInput, SPACE } from "./flow-graph.ts";
import { settleWithin } from "./places.ts";

/** How far from a box' corners. */
const INSET = 12;

export interface Ports {
  /** Where the bundle leaves the box, and where it comes into it: x. Every bundle of a box has a place of its own. */
  out: (box: number, bundle: number) => number;
  into: (box: number, bundle: number) => number;
}

interface Wish {
  box: number;
  bundle: number;
  x: number;
}

/** Places of all ports, given the middles of boxes and lanes. */
export function placePorts(
  input: FlowInput,
  layer: Int32Array,
  bundles: Bundle[],
  ofEdge: Uint32Array,
  laneOf: (bundle: number, layer: number) => number,
  middle: Float64Array,
): Ports {
  const key = (box: number, bundle: number) => box * bundles.length + bundle;
  const settleAll = (wishes: Map<number, { sum: number; n: number; box: number; bundle: number }>) => {
    const ofBox = new Map<number, Wish[]>();
    for (const { sum, n, box, bundle } of wishes.values()) {
      const own = ofBox.get(box) ?? [];
      own.push({ box, bundle, x: sum / n });
      ofBox.set(box, own);
    }
    const found = new Map<number, number>();
    for (const [box, own] of ofBox) {
      own.sort((a, b) => a.x - b.x || a.bundle - b.bundle);
      const inset = Math.min(INSET, input.widths[box] / 4);
      const low = middle[box] - input.widths[box] / 2 + inset;
      const high = middle[box] + input.widths[box] / 2 - inset;
      const x = settleWithin(
        Float64Array.from(own, (wish) => wish.x),
        SPACE.lane,
        low,
        high,
      );
      own.forEach((wish, i) => found.set(key(box, wish.bundle), x[i]));
    }
    return found;
  };
  const collect = (ends: Int32Array, wish: (edge: number) => number) => {
    const wishes = new Map<number, { sum: number; n: number; box: number; bundle: number }>();
    for (let edge = 0; edge < ends.length; edge++) {
      const [box, bundle] = [ends[edge], ofEdge[edge]];
      const known = wishes.get(key(box, bundle)) ?? { sum: 0, n: 0, box, bundle };
      known.sum += wish(edge);
      known.n++;
      wishes.set(key(box, bundle), known);
    }
    return settleAll(wishes);
  };
  const { source, target } = input;
  const out = collect(source, (edge) => {
    const at = layer[source[edge]];
    const lane = laneOf(ofEdge[edge], bundles[ofEdge[edge]].isUp ? at : at + 1);
    const isNext = !bundles[ofEdge[edge]].isUp && layer[target[edge]] === at + 1;
    return middle[isNext || lane < 0 ? target[edge] : lane];
  });
  const into = collect(target, (edge) => {
    const at = layer[target[edge]];
    const bundle = ofEdge[edge];
    const isNext = !bundles[bundle].isUp && layer[source[edge]] === at - 1;
    return isNext ? out.get(key(source[edge], bundle))! : middle[laneOf(bundle, bundles[bundle].isUp ? at : at - 1)];
  });
  return {
    out: (box, bundle) => out.get(key(box, bundle))!,
    into: (box, bundle) => into.get(key(box, bundle))!,
  };
}
