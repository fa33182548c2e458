// Numbers, addresses and times as text.

const INTEGER = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** 1,234,567. */
export function formatInteger(value: number): string {
  return INTEGER.format(value);
}

/** 1.2k, 34M: at most four characters and a unit. */
export function formatShort(value: number): string {
  if (value < 1000) {
    return INTEGER.format(value);
  }
  for (const [unit, size] of [
    ["k", 1e3],
    ["M", 1e6],
    ["G", 1e9],
    ["T", 1e12],
    ["P", 1e15],
  ] as const) {
    const scaled = value / size;
    if (scaled < 9.95) {
      return `${scaled.toFixed(1)}${unit}`;
    }
    if (scaled < 999.5) {
      return `${Math.round(scaled)}${unit}`;
    }
  }
  return value.toExponential(1);
}

/** 0x55d0c0ffee. */
export function formatAddress(address: bigint): string {
  return `0x${address.toString(16)}`;
}

/** 12 ns, 3.4 µs, 5.6 ms, 7.8 s. */
export function formatDuration(ns: number): string {
  const size = Math.abs(ns);
  if (size < 1e3) {
    return `${Math.round(ns)} ns`;
  }
  if (size < 1e6) {
    return `${(ns / 1e3).toPrecision(3)} µs`;
  }
  if (size < 1e9) {
    return `${(ns / 1e6).toPrecision(3)} ms`;
  }
  return `${(ns / 1e9).toPrecision(4)} s`;
}

/** 12.3 %, 0.04 %, < 0.001 %. */
export function formatShare(part: number, whole: number): string {
  const percent = whole > 0 ? (100 * part) / whole : 0;
  if (percent > 0 && percent < 0.001) {
    return "< 0.001 %";
  }
  return `${percent >= 9.95 || percent === 0 ? percent.toFixed(1) : percent.toPrecision(2)} %`;
}

/** 4.2 MB. */
export function formatBytes(bytes: number): string {
  return `${formatShort(bytes)}B`;
}
