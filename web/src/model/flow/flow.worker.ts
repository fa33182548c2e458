// Lays out large functions away from the page's own thread.
import type { FlowInput } from "./flow-graph.ts";
import { layOutFlow } from "./flow-layout.ts";

self.onmessage = (event: MessageEvent<{ number: number; input: FlowInput }>) => {
  self.postMessage({ number: event.data.number, layout: layOutFlow(event.data.input) });
};
