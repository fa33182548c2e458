// Measures layouts, for tests.

/** The distance of each place (x, y, z one after the other) to the one nearest to it; Infinity where there is no other. */
export function nearestDistances(places: ArrayLike<number>): Float64Array {
  const n = places.length / 3;
  // Along a line no two of a grid lie on one spot of, places are at most as far apart as they are in space.
  const along = Float64Array.from(
    { length: n },
    (_, i) => 0.605 * places[3 * i] + 0.534 * places[3 * i + 1] + 0.59 * places[3 * i + 2],
  );
  const order = Uint32Array.from({ length: n }, (_, i) => i).sort((a, b) => along[a] - along[b]);
  const nearest = new Float64Array(n).fill(Infinity);
  for (let at = 0; at < n; at++) {
    const i = order[at];
    for (const step of [-1, 1]) {
      for (let other = at + step; other >= 0 && other < n; other += step) {
        const j = order[other];
        if (Math.abs(along[j] - along[i]) >= nearest[i]) {
          break;
        }
        const x = places[3 * j] - places[3 * i];
        const y = places[3 * j + 1] - places[3 * i + 1];
        const z = places[3 * j + 2] - places[3 * i + 2];
        nearest[i] = Math.min(nearest[i], Math.sqrt(x * x + y * y + z * z));
      }
    }
  }
  return nearest;
}

export function median(values: ArrayLike<number>): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[sorted.length >> 1] ?? 0;
}
