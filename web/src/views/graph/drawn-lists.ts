// What of a graph is drawn: which nodes and edges, and which of them stand out, as the renderer has them. When it is drawn, and
// from where it is seen, is not known here.
import type { Eye } from "../../base/projection.ts";
import { listEdges, listNodes, nodeOfSelection, openFunctions } from "../../model/graph/detail.ts";
import { chooseParticles, NO_PARTICLES, type Particles } from "../../model/graph/particles.ts";
import type { PlacedGraph } from "../../model/graph/scene.ts";
import type { RecentBlock } from "../../model/recent.ts";
import type { Selection } from "../../model/view-state.ts";
import { sampleEdges } from "./edge-strength.ts";
import { FramePace, MOST_EDGES } from "./frame-pace.ts";
import { findMarkedEdges, findTrail, functionOfSelection, isDrawn, type Neighbour } from "./marked-edges.ts";
import type { GraphRenderer } from "./renderer.ts";
import { type PictureColors, SeenNodes } from "./seen-nodes.ts";

export class DrawnLists extends SeenNodes {
  /** Where the edges at what is selected lead and come from. */
  neighbours: readonly Neighbour[] = [];
  isMoving = false;

  protected selection: Selection | null = null;
  protected recent: readonly RecentBlock[] | null = null;
  protected readonly pace = new FramePace();
  protected listsAre: "none" | "moving" | "rest" = "none";
  protected edgeCount = 0;
  /** Of the edges that the picture at rest has. */
  protected edgeSample = sampleEdges(new Uint32Array(0));
  protected mustDrawEdges = true;
  protected particles: Particles = NO_PARTICLES;
  protected hasParticles = false;

  constructor(
    protected readonly renderer: GraphRenderer,
    /** Particles were drawn where they are now, so many; or there are none any more. */
    protected readonly onParticles: (count: number) => void,
  ) {
    super();
  }

  get selected(): Selection | null {
    return this.selection;
  }

  /** The nodes that were executed just before the cursor as they are drawn, the last first. */
  trail(): { node: number; weight: number }[] {
    const { placed, recent, isOpen } = this;
    const leftOut = this.colors?.leftOut ?? null;
    const found = placed && recent ? findTrail(placed, isOpen, recent) : [];
    return found.filter(({ node }) => isDrawn(placed!, isOpen, node, leftOut));
  }

  /** The lists of nodes and edges, as far as they are others than those of the frame before, as seen from `eye`. */
  protected makeLists(placed: PlacedGraph, colors: PictureColors, eye: Eye): void {
    const { graph, places } = placed;
    const always = functionOfSelection(placed, this.selection);
    const isOther = openFunctions(places, eye, this.frame, always, this.isOpen);
    const quality = this.isMoving ? "moving" : "rest";
    if (isOther || this.listsAre === "none") {
      this.nodes = listNodes(graph, places.nBlocks, this.isOpen, colors.leftOut);
      this.renderer.setNodes(this.nodes);
    }
    if (isOther || this.listsAre !== quality) {
      const most = this.isMoving ? this.pace.movingEdges : MOST_EDGES;
      const list = listEdges(graph, places.nBlocks, this.isOpen, colors.edges, colors.links, most);
      this.edgeCount = list.count;
      if (!this.isMoving || isOther || this.edgeSample.count === 0) {
        this.edgeSample = sampleEdges(list.ends);
      }
      this.renderer.setEdges(list);
      this.mustDrawEdges = true;
      const selected = nodeOfSelection(graph, places.nBlocks, this.isOpen, this.selection);
      this.selectedNode = isDrawn(placed, this.isOpen, selected, colors.leftOut) ? selected : -1;
      this.markEdges();
    }
    this.listsAre = quality;
  }

  /** The edges at what is selected and what is under the pointer stand out, and both are in front of the rest. */
  protected markEdges(): void {
    const { placed, colors, hoveredNode } = this;
    if (!placed || !colors) {
      return;
    }
    const whole = this.selection?.kind === "function" ? functionOfSelection(placed, this.selection) : -1;
    const found = findMarkedEdges(placed, this.isOpen, this.selectedNode, hoveredNode, whole, colors);
    const { atHovered } = found;
    this.renderer.setMarkedEdges({ ends: found.ends, colors: found.colors, heat: found.heats });
    this.neighbours = found.neighbours;
    // Of what is pointed at the neighbours stay as they are, and all else fades.
    this.renderer.setNear([...new Set(atHovered.ends)], hoveredNode >= 0);
    [this.renderer.chosen, this.renderer.pointed] = [this.selectedNode, hoveredNode];
    const before = this.particles.count;
    this.particles = this.hasParticles
      ? chooseParticles(atHovered.ends, atHovered.colors, atHovered.heats)
      : NO_PARTICLES;
    this.renderer.setParticles(this.particles);
    if (before > 0 && this.particles.count === 0) {
      this.onParticles(0);
    }
    const front = new Set([this.hottest, hoveredNode, this.selectedNode]);
    this.renderer.setFront([...front].filter((node) => isDrawn(placed, this.isOpen, node, colors.leftOut)));
  }
}
