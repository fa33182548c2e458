// The eye that has a whole graph in its frame: from which side, and beside what lies over the picture.
import { type Eye, fitEye, type Frame, type Padding, projectionMatrix, projectPoint } from "../../base/projection.ts";
import type { PlacedGraph } from "../../model/graph/scene.ts";

/** From a little above; and on a cylinder with the hottest block in front, so far to the side. */
export const START_ANGLES = { yaw: 0.55, pitch: 0.32 };

/** A part of the frame's lower left corner, in CSS pixels. */
export interface Corner {
  width: number;
  height: number;
}

/** Everything in the frame but its padding, and on a plane beside `corner`. `hottest` is a block's node, or -1. */
export function fittedEye(
  placed: PlacedGraph,
  hottest: number,
  frame: Frame,
  padding: Padding,
  corner: Corner | null,
): Eye {
  const { yaw, pitch } = startAngles(placed, hottest);
  const fitted = (inside: Padding) => fitEye(placed.places.positions, yaw, pitch, frame, inside);
  const eye = fitted(padding);
  if (!corner || placed.result.dimensions === 3 || !reachesInto(placed, eye, frame, corner)) {
    return eye;
  }
  // A plane fills the whole frame: it moves aside or up, whatever leaves it larger.
  const aside = fitted({ ...padding, left: Math.max(padding.left, corner.width) });
  const above = fitted({ ...padding, bottom: Math.max(padding.bottom, corner.height) });
  return aside.distance < above.distance ? aside : above;
}

/** Whether two eyes are the same but for what the address rounds off. */
export function isSameEye(a: Eye, b: Eye): boolean {
  const near = (x: number, y: number, size: number) => Math.abs(x - y) <= 1e-4 * size;
  return (
    near(a.yaw, b.yaw, 1) &&
    near(a.pitch, b.pitch, 1) &&
    near(a.distance, b.distance, a.distance) &&
    a.target.every((value, i) => near(value, b.target[i], a.distance + Math.abs(value)))
  );
}

function startAngles(placed: PlacedGraph, hottest: number): { yaw: number; pitch: number } {
  if (placed.result.dimensions === 2) {
    return { yaw: 0, pitch: 0 };
  }
  if (placed.result.cylinderRadius === 0 || hottest < 0) {
    return START_ANGLES;
  }
  const { positions } = placed.places;
  return { ...START_ANGLES, yaw: Math.atan2(positions[3 * hottest], positions[3 * hottest + 2]) - START_ANGLES.yaw };
}

/** Whether a node is within the lower left corner of the frame. */
function reachesInto(placed: PlacedGraph, eye: Eye, frame: Frame, corner: Corner): boolean {
  const { positions } = placed.places;
  const matrix = projectionMatrix(eye, frame, 1);
  const found = [0, 0, 0];
  for (let node = 0; node < positions.length / 3; node++) {
    projectPoint(matrix, frame, positions, node, found);
    if (found[0] < corner.width && found[1] > frame.height - corner.height) {
      return true;
    }
  }
  return false;
}
