// Where items of a row go if each wants a place of its own and they must keep their order and distances.

/** The places nearest to the wanted ones, by weighted squares, with at least `apart[i]` from item i to item i + 1. */
export function settle(wanted: Float64Array, weight: Float64Array, apart: Float64Array): Float64Array {
  const n = wanted.length;
  // Without the distances it is a sequence that must not fall: runs of it that would fall become one at their mean.
  const sum = new Float64Array(n);
  const weights = new Float64Array(n);
  const length = new Uint32Array(n);
  const offset = new Float64Array(n);
  let runs = 0;
  for (let i = 0; i < n; i++) {
    offset[i] = i === 0 ? 0 : offset[i - 1] + apart[i - 1];
    sum[runs] = (wanted[i] - offset[i]) * weight[i];
    weights[runs] = weight[i];
    length[runs] = 1;
    runs++;
    while (runs > 1 && sum[runs - 2] / weights[runs - 2] >= sum[runs - 1] / weights[runs - 1]) {
      sum[runs - 2] += sum[runs - 1];
      weights[runs - 2] += weights[runs - 1];
      length[runs - 2] += length[runs - 1];
      runs--;
    }
  }
  const found = new Float64Array(n);
  for (let run = 0, i = 0; run < runs; run++) {
    for (let k = 0; k < length[run]; k++, i++) {
      found[i] = sum[run] / weights[run] + offset[i];
    }
  }
  return found;
}

/** The same between `low` and `high`, where there is room for all; else evenly between them, in order. */
export function settleWithin(wanted: Float64Array, distance: number, low: number, high: number): Float64Array {
  const n = wanted.length;
  if ((n - 1) * distance > high - low) {
    return Float64Array.from({ length: n }, (_, i) => low + ((i + 0.5) * (high - low)) / n);
  }
  const found = settle(wanted, new Float64Array(n).fill(1), new Float64Array(n).fill(distance));
  for (let i = 0; i < n; i++) {
    found[i] = Math.min(Math.max(found[i], low + i * distance), high - (n - 1 - i) * distance);
  }
  return found;
}
