// The picture in the page: a canvas for the graph, one for labels over it, and what connects both to the state.
import { effect, type Signal, useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { formatShort } from "../../base/format.ts";
import type { Rectangle } from "../../base/label-placement.ts";
import { FOLDED_IMAGE } from "../../model/graph/folding.ts";
import { nodeHeats } from "../../model/graph/count-effect.ts";
import { freshFunctions } from "../../model/recent.ts";
import { isCounted } from "../../model/session.ts";
import { findLeftOut, type GraphScene } from "../../model/graph/scene.ts";
import { prefersReducedMotion, settings } from "../../model/settings.ts";
import { tell } from "../../model/shell-state.ts";
import { dimensions, layout, type Selection } from "../../model/view-state.ts";
import { controlCamera } from "./camera-controls.ts";
import { findOverlays, fitPadding, groundColor, labelColors, viewOf } from "./canvas-surroundings.ts";
import { type LabelledFunction, LabelsLayer } from "./labels-layer.ts";
import { linkPicture } from "./linked-pictures.ts";
import { GraphPictures } from "./graph-pictures.ts";
import { countWords, factsOf } from "./node-facts.ts";
import { NodeDrag } from "./node-drag.ts";
import { type FrameReport, GraphPicture } from "./picture.ts";
import { rankFunctions } from "./ranked-functions.ts";
import { shownMoves } from "./shown-moves.ts";
import { type Hovered, Tooltip } from "./tooltip.tsx";
import { FUNCTION_FLAG } from "../../protocol/generated.ts";
import { themeVariables } from "../theme-variables.ts";

/** Finer screens gain nothing that the eye could see, and cost four times the time. */
const MOST_RATIO = 2;
/** So many functions may have a label, the hottest. */
const MOST_LABELLED = 400;

export function GraphCanvas({
  scene,
  onFailure,
  fit,
}: {
  scene: GraphScene;
  onFailure: (message: string) => void;
  /** Set to what fits the picture into the frame. */
  fit: { current: () => void };
}) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const place = useRef<HTMLLIElement>(null);
  const hovered = useSignal<Hovered | null>(null);
  const keys = useId();
  useEffect(() => {
    const parts = { box: box.current!, canvas: canvas.current!, overlay: overlay.current!, place: place.current! };
    try {
      return connect(scene, parts, hovered, fit, onFailure);
    } catch (error) {
      onFailure(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }, []);
  return (
    <div class="graph-box" ref={box}>
      <canvas
        class="graph-canvas"
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={scene.label}
        aria-roledescription="graph"
        aria-describedby={keys}
        data-layout-state="waiting"
      />
      <canvas class="graph-overlay" ref={overlay} aria-hidden="true" />
      <p id={keys} class="visually-hidden">
        Arrows turn the picture, with shift they move it; plus and minus come nearer and go away; f fits it into the
        frame; escape clears the selection; enter opens the selected function. O points at what is selected; with
        control, arrows move it and z takes that back; r puts it where it was. The table beside it has the same facts.
      </p>
      <ul class="visually-hidden" aria-hidden="true">
        <li ref={place} data-selected-place />
      </ul>
      <Tooltip hovered={hovered.value} />
    </div>
  );
}

interface Parts {
  box: HTMLDivElement;
  canvas: HTMLCanvasElement;
  overlay: HTMLCanvasElement;
  place: HTMLLIElement;
}

/** Make the picture, and have it follow the state. Returns what ends that. Throws an Error where there is no WebGL2. */
function connect(
  scene: GraphScene,
  parts: Parts,
  hovered: Signal<Hovered | null>,
  fit: { current: () => void },
  onFailure: (message: string) => void,
): () => void {
  const { box, canvas, overlay, place } = parts;
  const { drawnGraph, drawnCounts, nodeColors, edgeColors, placedGraph, selection } = scene;
  const labels = new LabelsLayer(overlay);
  const tellEntries =
    scene.tellEntries ??
    ((_: number, entries: number) => (entries > 0 && isCounted.value ? `×${formatShort(entries)}` : ""));
  let ranked: LabelledFunction[] = [];
  let byDrawn = new Map<number, LabelledFunction>();
  let taken: Rectangle[] = [];
  let colors = labelColors(box);
  let frames = 0;
  const onFrame = (report: FrameReport) => {
    if (!report.isMoving) {
      // To ask where things are takes the browser long; while moving they are where they were.
      taken = findOverlays(box);
    }
    const captions = labels.draw(picture, ranked, byDrawn, colors, settings.peek().labels, taken);
    const { dataset } = canvas;
    dataset.frames = String(++frames);
    dataset.drawnNodes = String(report.nodes);
    dataset.drawnEdges = String(report.edges);
    dataset.frameMs = report.frameMs.toFixed(1);
    dataset.layoutState = layoutState(scene, report.isMoving);
    dataset.quality = report.isMoving ? "moving" : report.isWhole ? "whole" : "part";
    if (report.isWhole) {
      dataset.inFrame = picture.inFrame().toFixed(4);
    }
    dataset.lastNode = String(picture.trail()[0]?.node ?? -1);
    writePlace(place, picture);
    place.dataset.captions = captions.join("\n");
    pictures.afterFrame(report);
  };
  const onParticles = (count: number) => {
    canvas.dataset.particles = String(count);
    canvas.dataset.particleFrames = String(Number(canvas.dataset.particleFrames ?? 0) + 1);
  };
  const picture = new GraphPicture(canvas, onFrame, onParticles, scene.setCamera, prefersReducedMotion);
  const drag = new NodeDrag(picture);
  shownMoves.value = { scene, drag };
  picture.corner = () => {
    // Of two pictures the legend lies below.
    const legend = scene.part ? null : viewOf(box).querySelector<HTMLElement>(".graph-legend");
    return legend ? { width: legend.offsetWidth + 24, height: legend.offsetHeight + 24 } : null;
  };
  fit.current = () => {
    picture.fit();
    scene.setCamera(null);
    if (scene.part) {
      scene.part.eye.value = { by: picture, eye: null };
    }
  };
  const factsAt = (node: number) => {
    const [graph, counts, placed] = [drawnGraph.peek(), drawnCounts.peek(), placedGraph.peek()];
    return node >= 0 && graph && counts && placed?.graph === graph
      ? factsOf(graph, placed.places.nBlocks, counts, node)
      : null;
  };
  const select = (chosen: Selection | null) => {
    const now = selection.peek();
    if (now?.kind !== chosen?.kind || now?.index !== chosen?.index) {
      scene.select(chosen);
    }
  };
  const pointAt = (node: number, x: number, y: number) => {
    const facts = factsAt(node);
    picture.setHovered(facts ? node : -1);
    const words = facts && (scene.describe?.(facts) ?? countWords(facts));
    hovered.value = facts && { x, y, facts, words: words!, width: box.clientWidth, height: box.clientHeight };
    return facts;
  };
  const leave = () => {
    picture.setHovered(-1);
    hovered.value = null;
  };
  const endControls = controlCamera(canvas, {
    isFlat: () => dimensions.peek() === 2,
    move: (change) => {
      hovered.value = null;
      picture.move(change);
    },
    fit: () => fit.current(),
    hover: (x, y) => {
      canvas.style.cursor = pointAt(picture.pick(x, y), x, y) ? "pointer" : "";
    },
    leave,
    click: (x, y) => {
      const facts = factsAt(picture.pick(x, y));
      select(facts && { kind: facts.kind, index: facts.index });
    },
    open: (x, y) => {
      const facts = factsAt(picture.pick(x, y));
      if (facts) {
        select({ kind: facts.kind, index: facts.index });
        scene.open();
      }
    },
    clear: () => {
      leave();
      select(null);
    },
    enter: () => {
      if (selection.peek()) {
        scene.open();
      }
    },
    grab: (...at) => drag.grab(...at),
    drag: (dx, dy) => {
      hovered.value = null;
      drag.drag(dx, dy);
    },
    drop: () => drag.drop(),
    nudge: (dx, dy) => {
      if (!drag.nudge(dx, dy)) {
        tell("Nothing is selected that could be moved");
      }
    },
    undo: () => tellMoved(drag.undo(), "was moved back", "were moved back", "Nothing to take back"),
    release: (isAll) =>
      tellMoved(
        drag.release(isAll),
        "is where the layout has it",
        "are where the layout has them",
        "Nothing was moved",
      ),
    pointAtSelected: () => {
      const node = picture.selectedNode;
      if (node < 0 || node === picture.hoveredNode) {
        leave();
      } else {
        const [x, y] = picture.projector()(node);
        pointAt(node, x, y);
      }
    },
  });
  const setRatio = (wanted: number | null) => {
    const ratio = wanted ?? Math.min(window.devicePixelRatio || 1, MOST_RATIO);
    const [width, height] = [box.clientWidth, box.clientHeight];
    labels.setSize(width, height, ratio);
    picture.setSize({ width, height }, ratio, fitPadding(box));
  };
  const pictures = new GraphPictures({
    canvas,
    overlay,
    picture,
    labels,
    scene,
    ground: () => themeVariables(box)("--ground"),
    colors: () => colors,
    setRatio,
  });
  const resized = new ResizeObserver(() => setRatio(null));
  resized.observe(box);
  // What lies over the picture may have grown or shrunk: labels keep off it.
  const onToggle = () => picture.redraw();
  viewOf(box).addEventListener("toggle", onToggle, true);
  const onLost = (event: Event) => {
    // The browser gives it back if it can; until then the message stands in its place.
    event.preventDefault();
    onFailure("the browser took the graphics context away");
  };
  canvas.addEventListener("webglcontextlost", onLost);
  const ends = [
    scene.followLayout(),
    scene.part ? linkPicture(scene, scene.part, picture) : () => undefined,
    effect(() => {
      if (!isLayoutWanted(scene)) {
        canvas.dataset.layoutState = "waiting";
      }
      const placed = placedGraph.value;
      if (placed) {
        picture.setPlaced(placed, scene.camera.peek());
      }
    }),
    effect(() => {
      const [placed, graph, counts] = [placedGraph.value, drawnGraph.value, drawnCounts.value];
      const [ofNodes, ofEdges] = [nodeColors.value, edgeColors.value];
      if (placed && graph && placed.graph === graph && counts && ofNodes && ofEdges) {
        ranked = rankFunctions(graph, counts, tellEntries);
        byDrawn = new Map(ranked.map((one) => [one.drawn, one]));
        const whole = scene.part?.whole.value;
        const hot = whole ? rankFunctions(graph, whole, tellEntries) : ranked;
        const hottest = counts.blocks && hot.length > 0 ? hot[0].hottestBlock : -1;
        // A stub is named like the function it leads to, which has a label of its own.
        ranked = ranked.filter(
          ({ drawn }) =>
            graph.isFolded[drawn] === FOLDED_IMAGE ||
            !(graph.functions.flags[graph.functionOf[drawn]] & FUNCTION_FLAG.stub),
        );
        const text = scene.text.value.toLowerCase();
        ranked = ranked.filter((one) => one.name.toLowerCase().includes(text));
        const isFresh = (one: LabelledFunction) => freshFunctions.value.has(graph.functionOf[one.drawn]);
        ranked = [...ranked.filter(isFresh), ...ranked.filter((one) => !isFresh(one))].slice(0, MOST_LABELLED);
        const heats = nodeHeats(graph, counts, ofNodes.blocks.length / 4);
        const leftOut = scene.part ? findLeftOut(graph, counts) : null;
        const { blocks, functions } = ofNodes;
        picture.setColors({ blocks, functions, heats, leftOut, ...ofEdges }, hottest);
      }
    }),
    effect(() => picture.setSelection(selection.value)),
    effect(() => picture.setRecent(scene.recent.value)),
    effect(() => {
      const camera = scene.camera.value;
      // A change of the layout brings its camera with it.
      if (placedGraph.peek()?.result.layout === layout.peek() && isLayoutWanted(scene)) {
        picture.setCamera(camera);
      }
    }),
    effect(() => {
      const { theme, edgeOpacity, nodeOpacity, countEffect, labelSize, labels: hasLabels } = settings.value;
      colors = labelColors(box);
      labels.fontSize = labelSize;
      picture.setLook({ ground: groundColor(box), isDark: theme === "dark", nodeOpacity, countEffect }, edgeOpacity);
      canvas.dataset.labels = String(hasLabels);
    }),
    effect(() => picture.setParticles(settings.value.particles && !prefersReducedMotion())),
    effect(() => {
      canvas.dataset.moved = String(placedGraph.value?.moved.state.value.moved ?? 0);
    }),
  ];
  return () => {
    for (const end of ends) {
      end();
    }
    endControls();
    resized.disconnect();
    viewOf(box).removeEventListener("toggle", onToggle, true);
    canvas.removeEventListener("webglcontextlost", onLost);
    hovered.value = null;
    if (shownMoves.peek()?.drag === drag) {
      shownMoves.value = null;
    }
    pictures.dispose();
    picture.dispose();
  };
}

/** Tell how many nodes were moved. */
function tellMoved(n: number, one: string, several: string, none: string): void {
  tell(n === 0 ? none : n === 1 ? `A node ${one}` : `${n} nodes ${several}`);
}

/** Whether the layout that is shown is the one that the state asks for. */
function isLayoutWanted({ placedGraph, drawnGraph }: GraphScene): boolean {
  const placed = placedGraph.value;
  return (
    placed !== null &&
    placed.graph === drawnGraph.value &&
    placed.result.layout === layout.value &&
    placed.result.dimensions === dimensions.value
  );
}

/** "waiting" for the layout that is asked for, "moving" to it or on the way, "final" when it is there. */
function layoutState(scene: GraphScene, isMoving: boolean): string {
  return !isLayoutWanted(scene) ? "waiting" : isMoving || !scene.placedGraph.peek()?.isFinal ? "moving" : "final";
}

function writePlace(place: HTMLLIElement, picture: GraphPicture): void {
  const node = picture.selectedNode;
  if (node < 0) {
    delete place.dataset.x;
    delete place.dataset.y;
    delete place.dataset.node;
    return;
  }
  const [x, y] = picture.projector()(node);
  place.dataset.x = x.toFixed(1);
  place.dataset.y = y.toFixed(1);
  place.dataset.node = String(node);
}
