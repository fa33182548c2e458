// Two pictures of one graph beside each other: where one looks from the other looks from, and what one moves is moved in both.
import { effect } from "@preact/signals";
import type { GraphScene, PlacedGraph, ScenePart } from "../../model/graph/scene.ts";
import type { GraphPicture } from "./picture.ts";

/** Have a picture go with the other one. Returns what ends that. */
export function linkPicture({ placedGraph }: GraphScene, part: ScenePart, picture: GraphPicture): () => void {
  picture.onEye = (eye) => (part.eye.value = { by: picture, eye: { ...eye } });
  let seen: PlacedGraph | null = null;
  const ends = [
    effect(() => {
      const told = part.eye.value;
      if (told && told.by !== picture) {
        if (told.eye) {
          picture.follow(told.eye);
        } else {
          picture.fit();
        }
      }
    }),
    effect(() => {
      const placed = placedGraph.value;
      placed?.moved.state.value;
      if (placed && placed === seen) {
        // The picture in which it was moved writes where it is after it told of it.
        queueMicrotask(() => {
          if (picture.placed === placed) {
            picture.nodesMoved(Array.from({ length: placed.places.positions.length / 3 }, (_, node) => node));
          }
        });
      }
      seen = placed;
    }),
  ];
  return () => {
    ends.forEach((end) => end());
    part.eye.value = null;
  };
}
