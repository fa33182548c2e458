// How large nodes are, and how far the picture reaches: by the layout's places. Pure.
import { nodeGrowth } from "../../model/graph/count-effect.ts";
import type { NodeSize } from "../../model/graph/picking.ts";
import type { PlacedGraph } from "../../model/graph/scene.ts";

/** Diameters of nodes in pixels: least and most of blocks, least and most of functions. */
export const NODE_PIXELS = { leastBlock: 3.2, mostBlock: 30, leastFunction: 5, mostFunction: 34 };

/** The least diameter in pixels of nodes that are drawn over all others. */
export const LEAST_FRONT_PX = 9;

/** What is selected is so much larger than it else would be. */
export const CHOSEN_GROWTH = 1.6;

export interface NodeSizes {
  /** Of each node x, y, z and its diameter in units of space, as the renderer takes them. */
  cells: Float32Array;
  /** The middle of all nodes, and how far they are from it at most. */
  center: [number, number, number];
  radius: number;
  nBlocks: number;
}

export const NO_SIZES: NodeSizes = { cells: new Float32Array(0), center: [0, 0, 0], radius: 1, nBlocks: 0 };

export function measureNodes({ graph, places, result }: PlacedGraph): NodeSizes {
  const { positions, nBlocks, radii, spacing } = places;
  const finite = spacing.filter((value) => Number.isFinite(value) && value > 0).sort();
  const unit = finite[finite.length >> 1] ?? (result.radii.slice().sort()[result.radii.length >> 1] || 1);
  // Where blocks lie by their edges alone, small ones leave room for the edges between neighbours.
  const share = result.layout === "blocks" ? 0.46 : 0.72;
  const cells = new Float32Array((4 * positions.length) / 3);
  const least = [Infinity, Infinity, Infinity];
  const most = [-Infinity, -Infinity, -Infinity];
  for (let node = 0; node < positions.length / 3; node++) {
    for (let axis = 0; axis < 3; axis++) {
      const value = positions[3 * node + axis];
      cells[4 * node + axis] = value;
      least[axis] = Math.min(least[axis], value);
      most[axis] = Math.max(most[axis], value);
    }
    const of = node < nBlocks ? graph.functionOfBlock[node] : node - nBlocks;
    if (node < nBlocks) {
      cells[4 * node + 3] = graph.isFolded[of] ? unit * Math.sqrt(graph.size[of]) : share * Math.min(spacing[of], unit);
    } else {
      cells[4 * node + 3] = nBlocks > 0 ? 0.9 * unit * Math.sqrt(graph.size[of]) : 1.3 * radii[of];
    }
  }
  if (positions.length === 0) {
    return { ...NO_SIZES, cells };
  }
  const size = Math.hypot(most[0] - least[0], most[1] - least[1], most[2] - least[2]);
  const center: [number, number, number] = [
    (least[0] + most[0]) / 2,
    (least[1] + most[1]) / 2,
    (least[2] + most[2]) / 2,
  ];
  return { cells, center, radius: Math.max(size / 2, 1e-3), nBlocks };
}

/** How a node differs from others of its kind. */
export interface NodeLook {
  /** Its heat, 0 to 1, and how strongly that changes its size. */
  heat: number;
  countEffect: number;
  /** Drawn over all others. */
  isFront: boolean;
  isChosen: boolean;
}

/** The diameter of a node in units of space, and within which pixels it stays; as the shader has it (shaders.ts). */
export function sizeOfNode({ cells, nBlocks }: NodeSizes, node: number, look: NodeLook): NodeSize {
  const { leastBlock, mostBlock, leastFunction, mostFunction } = NODE_PIXELS;
  const growth = nodeGrowth(look.heat, look.countEffect);
  const [leastOf, mostOf] = node < nBlocks ? [leastBlock, mostBlock] : [leastFunction, mostFunction];
  const least = Math.max(leastOf * Math.max(growth, 1), look.isFront ? LEAST_FRONT_PX : 0);
  const larger = look.isChosen ? CHOSEN_GROWTH : 1;
  return {
    world: larger * growth * cells[4 * node + 3],
    least: larger * least,
    most: larger * Math.max(mostOf * growth, least),
  };
}

/** Nodes were put elsewhere: `positions` has them there. */
export function moveSizes(sizes: NodeSizes, nodes: Iterable<number>, positions: Float32Array): void {
  for (const node of nodes) {
    const place: [number, number, number] = [positions[3 * node], positions[3 * node + 1], positions[3 * node + 2]];
    sizes.cells.set(place, 4 * node);
    const { center } = sizes;
    const away = Math.hypot(place[0] - center[0], place[1] - center[1], place[2] - center[2]);
    sizes.radius = Math.max(sizes.radius, away);
  }
}

/** How far a place is from what is farthest away from it. */
export function reachFrom({ center, radius }: NodeSizes, place: readonly [number, number, number]): number {
  return radius + Math.hypot(place[0] - center[0], place[1] - center[1], place[2] - center[2]);
}
