// The change from one layout to another: each is fitted into the frame, but for those whose camera the reader had set.
import { type Camera, type Layout, update, viewState } from "../view-state.ts";

/** Cameras of the layouts that were left, by layout and dimensions: they come back with their layout. */
const left = new Map<string, Camera | null>();
let leftProcess = "";

/** Show the graph in another layout, keeping what is selected. */
export function showLayout(layout: Layout, dimensions: 2 | 3): void {
  const now = viewState.value;
  if (now.layout === layout && now.dimensions === dimensions) {
    return;
  }
  const process = `${now.trace} ${now.process}`;
  if (process !== leftProcess) {
    left.clear();
    leftProcess = process;
  }
  left.set(`${now.layout} ${now.dimensions}`, now.camera);
  update({ layout, dimensions, camera: left.get(`${layout} ${dimensions}`) ?? null });
}
