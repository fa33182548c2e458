// The picture of a graph, or in its place why there is none, with a button that tries again.
import { GraphCanvas } from "./graph-canvas.tsx";
import type { GraphScene } from "../../model/graph/scene.ts";

interface Properties {
  scene: GraphScene;
  /** Set to what fits the picture into the frame. */
  fit: { current: () => void };
  /** Why there is no picture; null if there is one. */
  failure: string | null;
  setFailure: (failure: string | null) => void;
  /** Where the reader finds the same facts without it. */
  elsewhere: string;
}

export function GraphOrMessage({ scene, fit, failure, setFailure, elsewhere }: Properties) {
  if (failure === null) {
    return <GraphCanvas scene={scene} onFailure={setFailure} fit={fit} />;
  }
  return (
    <div class="graph-message" role="alert">
      <h2>The graph cannot be drawn</h2>
      <p>
        It needs WebGL2: {failure}. {elsewhere}
      </p>
      <button type="button" onClick={() => setFailure(null)}>
        Try again
      </button>
    </div>
  );
}
