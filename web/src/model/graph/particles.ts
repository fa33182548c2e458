// Particles that move along edges in the direction of flow: how many there are of each edge, and how quickly they go, by the
// edge's count. Pure.

/** So many are moved at a time, whatever there is at a node. */
export const MOST_PARTICLES = 600;
/** Of one edge: one for what was taken once, so many for the busiest. */
const MOST_BY_EDGE = 5;
/** Ways from end to end in a second. */
const SPEED = { least: 0.2, most: 0.9 };

/** By particle: both ends of its edge, where on its way it begins (0 to 1), and how many ways it makes in a second. */
export interface Particles {
  count: number;
  ends: Uint32Array;
  phases: Float32Array;
  speeds: Float32Array;
  /** Four bytes of colour. */
  colors: Uint8Array;
}

export const NO_PARTICLES: Particles = chooseParticles(new Uint32Array(0), new Uint8Array(0), new Uint8Array(0));

/** `ends` has two nodes by edge, `colors` four bytes, `heats` a byte that is 0 for one that was not taken: it has none. */
export function chooseParticles(ends: Uint32Array, colors: Uint8Array, heats: Uint8Array): Particles {
  // The busiest first: where there are too many edges, those have particles.
  const edges = [...heats.keys()].filter((edge) => heats[edge] > 0).sort((a, b) => heats[b] - heats[a] || a - b);
  const wanted = edges.map((edge) => numberOf(heats[edge]));
  const whole = wanted.reduce((sum, n) => sum + n, 0);
  const share = Math.min(MOST_PARTICLES / Math.max(whole, 1), 1);
  const chosen: { edge: number; phase: number }[] = [];
  edges.forEach((edge, i) => {
    const n = Math.max(Math.floor(wanted[i] * share), 1);
    // Of two edges the particles do not go in step.
    const first = (edge * 0.618) % 1;
    for (let k = 0; k < n && chosen.length < MOST_PARTICLES; k++) {
      chosen.push({ edge, phase: (first + k / n) % 1 });
    }
  });
  const found: Particles = {
    count: chosen.length,
    ends: new Uint32Array(2 * chosen.length),
    phases: new Float32Array(chosen.length),
    speeds: new Float32Array(chosen.length),
    colors: new Uint8Array(4 * chosen.length),
  };
  chosen.forEach(({ edge, phase }, i) => {
    found.ends.set(ends.subarray(2 * edge, 2 * edge + 2), 2 * i);
    found.colors.set(colors.subarray(4 * edge, 4 * edge + 4), 4 * i);
    found.phases[i] = phase;
    found.speeds[i] = SPEED.least + ((SPEED.most - SPEED.least) * (heats[edge] - 1)) / 254;
  });
  return found;
}

function numberOf(heat: number): number {
  return 1 + Math.round(((MOST_BY_EDGE - 1) * (heat - 1)) / 254);
}
