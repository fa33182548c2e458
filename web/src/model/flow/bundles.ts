// Edges that share lines: of one style and direction, from several boxes to one or from one to several.
import { sortEdges } from "./layers.ts";

/** Edges of a bundle go down, or, if `isUp`, from a box to one on its own layer or above it. */
export interface Bundle {
  isUp: boolean;
  style: number;
  edges: number[];
  /** Layers on which the bundle passes beside boxes, the last included; none if last < first. */
  first: number;
  last: number;
}

/** Bundles of all edges. Those of several targets, as a table of jumps has, share the lines from their source on;
 * edges of one `group`, if it is not -1, share one trunk for each direction. */
export function bundleEdges(
  source: Int32Array,
  target: Int32Array,
  style: Uint8Array,
  layer: Int32Array,
  group?: Int32Array,
): { bundles: Bundle[]; ofEdge: Uint32Array } {
  const n = layer.length;
  const ways = countWays(source, target, style, layer, n);
  const bundles: Bundle[] = [];
  const ofEdge = new Uint32Array(source.length);
  const known = new Map<number, number>();
  for (let edge = 0; edge < source.length; edge++) {
    const isUp = layer[target[edge]] <= layer[source[edge]];
    const bySource = ways.out[edge] > 2 && ways.out[edge] > ways.into[edge];
    const of = group?.[edge] ?? -1;
    const shared = of >= 0 ? 2 * n + of : (bySource ? source[edge] : target[edge]) * 2 + Number(bySource);
    const key = shared * 64 + style[edge] * 2 + Number(isUp);
    let index = known.get(key);
    if (index === undefined) {
      index = bundles.length;
      known.set(key, index);
      bundles.push({ isUp, style: style[edge], edges: [], first: 0, last: -1 });
    }
    bundles[index].edges.push(edge);
    ofEdge[edge] = index;
  }
  for (const bundle of bundles) {
    const above = bundle.isUp ? target : source;
    const below = bundle.isUp ? source : target;
    const top = Math.min(...bundle.edges.map((edge) => layer[above[edge]]));
    const bottom = Math.max(...bundle.edges.map((edge) => layer[below[edge]]));
    bundle.first = bundle.isUp ? top : top + 1;
    bundle.last = bundle.isUp ? bottom : bottom - 1;
  }
  return { bundles, ofEdge };
}

/** By edge how many edges of its style and direction its source has, and how many its target. */
function countWays(source: Int32Array, target: Int32Array, style: Uint8Array, layer: Int32Array, n: number) {
  const kind = (edge: number) => style[edge] * 2 + Number(layer[target[edge]] <= layer[source[edge]]);
  const count = (ends: Int32Array) => {
    const found = new Uint32Array(ends.length);
    const { first, edges } = sortEdges(ends, n);
    const ofKind = new Uint32Array(64);
    for (let box = 0; box < n; box++) {
      const own = edges.subarray(first[box], first[box + 1]);
      own.forEach((edge) => ofKind[kind(edge)]++);
      own.forEach((edge) => (found[edge] = ofKind[kind(edge)]));
      ofKind.fill(0);
    }
    return found;
  };
  return { out: count(source), into: count(target) };
}
