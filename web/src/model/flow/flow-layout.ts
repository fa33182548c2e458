// The layout of a function's control flow: boxes on layers, edges downwards in between, and around the boxes upwards.
//
// In steps: edges that lead back are found, the others give the layers; edges that share an end and a style are bundled;
// a bundle that passes a layer gets a lane there, a place among the boxes; boxes and lanes are ordered so that few lines
// cross, placed from side to side, and connected by level lines on tracks between the layers. So lines run in lanes,
// between layers, or under their own box only: never through a box.
import { type Bundle, bundleEdges } from "./bundles.ts";
import { placeItems, straightenLanes } from "./coordinates.ts";
import { findDispatch } from "./dispatch.ts";
import { type FlowInput, type FlowLayout, SPACE } from "./flow-graph.ts";
import { assignLayers, findBackEdges } from "./layers.ts";
import { type Items, orderItems } from "./order.ts";
import { placePorts, type Ports } from "./ports.ts";
import { assignTracks, type Net } from "./tracks.ts";

/** With more items than this they are sorted fewer times: it takes long, and nobody sees the difference. */
const MANY_ITEMS = 20_000;

/** The same input gives the same layout. */
export function layOutFlow(input: FlowInput): FlowLayout {
  const { source, target, widths, heights, entry } = input;
  const n = widths.length;
  const dispatch = findDispatch(source, target, input.style, n, entry);
  const isBack = findBackEdges(dispatch.source, dispatch.target, n, entry, dispatch.isElsewhere);
  const layer = assignLayers(dispatch.source, dispatch.target, isBack, widths, mostWidth(widths, heights));
  const { bundles, ofEdge } = bundleEdges(source, target, input.style, layer, dispatch.group);
  const { items, laneOf, runs } = makeItems(input, layer, bundles);
  orderItems(items, items.layer.length > MANY_ITEMS ? 8 : 16);
  const middle = placeItems(items, widths);
  straightenLanes(items, widths, runs, middle);
  straightenLanes(items, widths, runs, middle);
  const ports = placePorts(input, layer, bundles, ofEdge, laneOf, middle);
  const { nets, ofGap } = makeNets(items.layers.length, input, layer, bundles, laneOf, middle, ports);
  const { y, height, trackY } = stack(input, layer, items.layers.length, nets, ofGap);
  const left = Math.min(...Array.from(middle, (x, item) => x - (widths[item] ?? 0) / 2));
  const right = Math.max(...Array.from(middle, (x, item) => x + (widths[item] ?? 0) / 2));
  const shift = Math.round(SPACE.margin - left);
  const x = Float64Array.from({ length: n }, (_, box) => middle[box] - widths[box] / 2 + shift);
  const routes = routeEdges(input, layer, bundles, ofEdge, laneOf, middle, ports, y, trackY);
  for (let i = 0; i < routes.points.length; i += 2) {
    routes.points[i] += shift;
  }
  return { width: right + shift + SPACE.margin, height, x, y, ...routes };
}

/** As wide as high, about; and never less than a screen. */
function mostWidth(widths: Float64Array, heights: Float64Array): number {
  let area = 0;
  for (let box = 0; box < widths.length; box++) {
    area += (widths[box] + SPACE.box) * (heights[box] + 4 * SPACE.gap);
  }
  return Math.max(1500, Math.sqrt(area));
}

/** Which item is the lane of a bundle on a layer; -1 where it has none. */
export type LaneOf = (bundle: number, layer: number) => number;

function makeItems(input: FlowInput, layerOfBox: Int32Array, bundles: Bundle[]) {
  const layers: number[][] = [];
  const layer: number[] = Array.from(layerOfBox);
  layer.forEach((at, box) => (layers[at] ??= []).push(box));
  const firstLane: number[] = [];
  const runs: Int32Array[] = [];
  const [upper, lower, beside]: number[][] = [[], [], []];
  for (const bundle of bundles) {
    firstLane.push(layer.length);
    for (let at = bundle.first; at <= bundle.last; at++) {
      layers[at].push(layer.length);
      layer.push(at);
    }
    runs.push(
      Int32Array.from({ length: Math.max(bundle.last - bundle.first + 1, 0) }, (_, i) => firstLane.at(-1)! + i),
    );
  }
  const laneOf: LaneOf = (index, at) => {
    const bundle = bundles[index];
    return at >= bundle.first && at <= bundle.last ? firstLane[index] + at - bundle.first : -1;
  };
  bundles.forEach((bundle, index) => {
    const seen = new Set<number>();
    const connect = (above: number, below: number, pairs: (a: number, b: number) => void) => {
      const key = above * layer.length + below;
      if (!seen.has(key)) {
        seen.add(key);
        pairs(above, below);
      }
    };
    const across = (above: number, below: number) => connect(above, below, (a, b) => (upper.push(a), lower.push(b)));
    const around = (box: number, lane: number) => connect(box, lane, (a, b) => beside.push(a, b));
    for (let at = bundle.first; at < bundle.last; at++) {
      across(laneOf(index, at), laneOf(index, at + 1));
    }
    for (const edge of bundle.edges) {
      const [from, to] = [input.source[edge], input.target[edge]];
      if (bundle.isUp) {
        around(from, laneOf(index, layer[from]));
        around(to, laneOf(index, layer[to]));
      } else if (layer[to] === layer[from] + 1) {
        across(from, to);
      } else {
        across(from, laneOf(index, layer[from] + 1));
        across(laneOf(index, layer[to] - 1), to);
      }
    }
  });
  const items: Items = {
    layers,
    layer: Int32Array.from(layer),
    upper: Int32Array.from(upper),
    lower: Int32Array.from(lower),
    beside: Int32Array.from(beside),
  };
  return { items, laneOf, runs: runs.filter((run) => run.length > 1) };
}

/** What each bundle connects in each gap; gap g is above layer g, the last is below all layers. `ofGap` has nets by bundle. */
function makeNets(
  nLayers: number,
  input: FlowInput,
  layer: Int32Array,
  bundles: Bundle[],
  laneOf: LaneOf,
  middle: Float64Array,
  ports: Ports,
) {
  const ofGap: Map<number, number>[] = Array.from({ length: nLayers + 1 }, () => new Map());
  const nets: Net[][] = Array.from({ length: nLayers + 1 }, () => []);
  const netAt = (gap: number, bundle: number): Net => {
    let index = ofGap[gap].get(bundle);
    if (index === undefined) {
      index = nets[gap].push({ tops: [], bottoms: [] }) - 1;
      ofGap[gap].set(bundle, index);
    }
    return nets[gap][index];
  };
  bundles.forEach((bundle, index) => {
    for (let at = bundle.first; at <= bundle.last; at++) {
      netAt(at, index).bottoms.push(middle[laneOf(index, at)]);
      netAt(at + 1, index).tops.push(middle[laneOf(index, at)]);
    }
    for (const box of new Set(bundle.edges.map((edge) => input.source[edge]))) {
      netAt(layer[box] + 1, index).tops.push(ports.out(box, index));
    }
    for (const box of new Set(bundle.edges.map((edge) => input.target[edge]))) {
      netAt(layer[box], index).bottoms.push(ports.into(box, index));
    }
  });
  return { nets, ofGap };
}

/** Heights: of layers, and of the tracks in the gaps between them. */
function stack(input: FlowInput, layer: Int32Array, nLayers: number, nets: Net[][], ofGap: Map<number, number>[]) {
  const rowHeight = new Float64Array(nLayers);
  layer.forEach((at, box) => (rowHeight[at] = Math.max(rowHeight[at], input.heights[box])));
  const rowY = new Float64Array(nLayers);
  const trackY: Map<number, number>[] = [];
  let at: number = SPACE.margin;
  for (let gap = 0; gap <= nLayers; gap++) {
    const { track, nTracks } = assignTracks(nets[gap]);
    const isOuter = gap === 0 || gap === nLayers;
    const top = at + (gap === 0 ? 0 : SPACE.gap);
    trackY.push(
      new Map(Array.from(ofGap[gap], ([bundle, net]) => [bundle, top + Math.max(track[net], 0) * SPACE.track])),
    );
    at = isOuter && nTracks === 0 ? at : top + Math.max(nTracks - 1, 0) * SPACE.track + SPACE.gap;
    if (gap < nLayers) {
      rowY[gap] = at;
      at += rowHeight[gap];
    }
  }
  return { y: Float64Array.from(layer, (of) => rowY[of]), height: at + SPACE.margin, trackY };
}

/** Corners of every edge; in x still as the items stand. */
function routeEdges(
  input: FlowInput,
  layer: Int32Array,
  bundles: Bundle[],
  ofEdge: Uint32Array,
  laneOf: LaneOf,
  middle: Float64Array,
  ports: Ports,
  y: Float64Array,
  trackY: Map<number, number>[],
): { first: Uint32Array; points: Float64Array } {
  const first = new Uint32Array(input.source.length + 1);
  const points: number[] = [];
  for (let edge = 0; edge < input.source.length; edge++) {
    const [from, to, bundle] = [input.source[edge], input.target[edge], ofEdge[edge]];
    let x = ports.out(from, bundle);
    points.push(x, y[from] + input.heights[from]);
    const cross = (gap: number, next: number) => {
      if (Math.abs(next - x) > 0) {
        const level = trackY[gap].get(bundle)!;
        points.push(x, level, next, level);
        x = next;
      }
    };
    if (bundles[bundle].isUp) {
      cross(layer[from] + 1, middle[laneOf(bundle, layer[from])]);
      for (let at = layer[from] - 1; at >= layer[to]; at--) {
        cross(at + 1, middle[laneOf(bundle, at)]);
      }
    } else {
      for (let at = layer[from] + 1; at < layer[to]; at++) {
        cross(at, middle[laneOf(bundle, at)]);
      }
    }
    cross(layer[to], ports.into(to, bundle));
    points.push(x, y[to]);
    first[edge + 1] = points.length / 2;
  }
  return { first, points: Float64Array.from(points) };
}
