// The way of an edge that leads from a node back to itself: a circle beside the node, on the screen, whatever the dimensions.
// The shader has the same (shaders.ts). Pure.

/** To the right and up, in the screen's pixels, where y points down. */
export const LOOP_SIDE: readonly [number, number] = [0.6, -0.8];

const RADIUS_PX = { least: 4, most: 40 };

/** The circle's radius, and how far its middle is from the node's, in pixels, of a node of this diameter. */
export function selfLoop(diameter: number): { radius: number; away: number } {
  const radius = Math.min(Math.max(0.5 * diameter, RADIUS_PX.least), RADIUS_PX.most);
  return { radius, away: 0.3 * diameter + radius };
}
