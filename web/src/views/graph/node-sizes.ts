// How large nodes are, and how far the picture reaches: by the layout's places. Pure.
import type { NodeSize } from "../../model/graph/picking.ts";
import type { PlacedGraph } from "../../model/graph/scene.ts";
import { NODE_PIXELS } from "./renderer.ts";

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

/** The diameter of a node in units of space, and within which pixels it stays. */
export function sizeOfNode({ cells, nBlocks }: NodeSizes, node: number): NodeSize {
  const { leastBlock, mostBlock, leastFunction, mostFunction } = NODE_PIXELS;
  const world = cells[4 * node + 3];
  return node < nBlocks
    ? { world, least: leastBlock, most: mostBlock }
    : { world, least: leastFunction, most: mostFunction };
}

/** How far a place is from what is farthest away from it. */
export function reachFrom({ center, radius }: NodeSizes, place: readonly [number, number, number]): number {
  return radius + Math.hypot(place[0] - center[0], place[1] - center[1], place[2] - center[2]);
}
