// Bodies that push each other away and springs that hold them together, step by step: what was a tangle unfolds.
import { SpaceTree } from "./space-tree.ts";

/** Springs between bodies: `length` is how long one wants to be, `strength` from 0 to 1. */
export interface Springs {
  source: Uint32Array;
  target: Uint32Array;
  length: Float64Array;
  strength: Float64Array;
}

export interface Bodies {
  dimensions: 2 | 3;
  /** x, y, z one after the other; changed by steps. */
  places: Float64Array;
  charges: Float64Array;
}

/** What a body keeps of its velocity from step to step. */
const KEPT = 0.6;
/** How strongly bodies are drawn to the middle. */
const GRAVITY = 0.05;
/** Size by distance up to which a group counts as one body; of many bodies more coarsely. */
const THETA = 1.1;
const COARSE_THETA = 1.4;
const MANY = 30_000;
/** Of the force at the end by that at the beginning. */
const LAST_HEAT = 0.03;

export class Simulation {
  private readonly n: number;
  private readonly tree: SpaceTree;
  private readonly velocity: Float64Array;
  /** By spring the share of its pull that moves its target: who has more springs moves less. */
  private readonly share: Float64Array;

  constructor(
    private readonly bodies: Bodies,
    private readonly springs: Springs,
  ) {
    this.n = bodies.charges.length;
    this.tree = new SpaceTree(this.n, bodies.dimensions);
    this.velocity = new Float64Array(3 * this.n);
    const degree = countSprings(this.n, springs);
    this.share = Float64Array.from(springs.source, (source, i) => {
      const target = springs.target[i];
      return degree[source] / (degree[source] + degree[target]);
    });
  }

  /** Step number `step` of `steps`; forces get weaker from step to step. */
  step(step: number, steps: number): void {
    const heat = LAST_HEAT ** (step / Math.max(1, steps - 1));
    const { places, charges } = this.bodies;
    const theta = this.n > MANY ? COARSE_THETA : THETA;
    this.pull(heat);
    this.tree.build(places, charges);
    this.tree.repel(places, charges, this.velocity, { factor: heat, theta, softening: 0.05 });
    const { velocity } = this;
    for (let i = 0; i < velocity.length; i++) {
      velocity[i] = (velocity[i] - places[i] * GRAVITY * heat) * KEPT;
      places[i] += velocity[i];
    }
  }

  private pull(heat: number): void {
    const { velocity, share } = this;
    const { places } = this.bodies;
    const { source, target, length, strength } = this.springs;
    for (let i = 0; i < source.length; i++) {
      const from = 3 * source[i];
      const to = 3 * target[i];
      const x = places[to] + velocity[to] - places[from] - velocity[from];
      const y = places[to + 1] + velocity[to + 1] - places[from + 1] - velocity[from + 1];
      const z = places[to + 2] + velocity[to + 2] - places[from + 2] - velocity[from + 2];
      const long = Math.sqrt(x * x + y * y + z * z) + 1e-9;
      const pull = ((long - length[i]) / long) * heat * strength[i];
      const toShare = pull * share[i];
      const fromShare = pull - toShare;
      velocity[to] -= x * toShare;
      velocity[to + 1] -= y * toShare;
      velocity[to + 2] -= z * toShare;
      velocity[from] += x * fromShare;
      velocity[from + 1] += y * fromShare;
      velocity[from + 2] += z * fromShare;
    }
  }
}

/** Springs by body. */
export function countSprings(n: number, { source, target }: Pick<Springs, "source" | "target">): Uint32Array {
  const degree = new Uint32Array(n);
  for (let i = 0; i < source.length; i++) {
    degree[source[i]]++;
    degree[target[i]]++;
  }
  return degree;
}
