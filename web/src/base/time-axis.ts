// A time axis: where its marks are, and what they say. Times are nanoseconds.

const STEPS = [1, 2, 5];

/** The smallest of 1, 2, 5, 10, 20, 50 ... that is at least `least`. */
export function niceStep(least: number): number {
  let decade = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  for (;;) {
    const found = STEPS.find((step) => step * decade >= least);
    if (found !== undefined) {
      return found * decade;
    }
    decade *= 10;
  }
}

/** Times of marks between `from` and `to`, at most so many, evenly apart. */
export function axisTimes(from: number, to: number, most: number): number[] {
  const step = niceStep((to - from) / Math.max(most, 1));
  const times: number[] = [];
  for (let time = Math.ceil(from / step) * step; time <= to && times.length <= most + 1; time += step) {
    times.push(time);
  }
  return times;
}

/** A time as a mark of an axis says it whose marks are `step` apart: with no more digits than tell two of them apart. */
export function formatAxisTime(time: number, step: number): string {
  const [unit, size] = step >= 1e8 ? ["s", 1e9] : step >= 1e5 ? ["ms", 1e6] : step >= 100 ? ["µs", 1e3] : ["ns", 1];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / (size as number)) - 1e-9));
  return `${(time / (size as number)).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
}

/** Zoomed by `factor` (above 1: closer) around `center`, inside of `whole`, and never closer than `least` ns. */
export function zoomSpan(
  span: readonly [number, number],
  center: number,
  factor: number,
  whole: readonly [number, number],
  least = 100,
): [number, number] {
  const width = Math.min(Math.max((span[1] - span[0]) / factor, least), whole[1] - whole[0]);
  const share = (center - span[0]) / (span[1] - span[0]);
  return moveInside([center - share * width, center + (1 - share) * width], whole);
}

/** As wide as `span`, moved inside of `whole`. */
export function moveInside(span: readonly [number, number], whole: readonly [number, number]): [number, number] {
  const width = Math.min(span[1] - span[0], whole[1] - whole[0]);
  const from = Math.min(Math.max(span[0], whole[0]), whole[1] - width);
  return [from, from + width];
}
