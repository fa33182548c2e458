// How long a video lasts, written into it: browsers record WebM (Matroska, RFC 9559) as it comes, and leave that out, so
// that players neither show it nor let one go to a place. Pure.

const SEGMENT = 0x18538067;
const INFO = 0x1549a966;
const CLUSTER = 0x1f43b675;
const TIMESTAMP_SCALE = 0x2ad7b1;
const DURATION = 0x4489;
const NS_BY_MS = 1e6;

interface Element {
  id: number;
  /** Where it begins, where its content does, and where it ends; Infinity where it says not how long it is. */
  start: number;
  content: number;
  end: number;
}

/** The same file with its duration; as it is where it has one, or is not understood. */
export function writeDuration(file: Uint8Array<ArrayBuffer>, durationMs: number): Uint8Array<ArrayBuffer> {
  const segment = find(file, SEGMENT, 0, file.length);
  // A segment that says how long it is would have to be told anew; recorders don't know it.
  const info = segment?.end === Infinity ? find(file, INFO, segment.content, file.length) : null;
  if (!info || info.end === Infinity || find(file, DURATION, info.content, info.end)) {
    return file;
  }
  const scale = find(file, TIMESTAMP_SCALE, info.content, info.end);
  const unitNs = scale ? readNumber(file, scale.content, scale.end) : NS_BY_MS;
  const duration = new DataView(new ArrayBuffer(11));
  duration.setUint16(0, DURATION);
  duration.setUint8(2, 0x88);
  duration.setFloat64(3, (durationMs * NS_BY_MS) / unitNs);
  const size = info.end - info.content + duration.byteLength;
  const head = new DataView(new ArrayBuffer(12));
  head.setUint32(0, INFO);
  // A size of 8 bytes: the first of them says so.
  head.setUint32(4, 0x01000000);
  head.setUint32(8, size);
  const parts = [
    file.subarray(0, info.start),
    new Uint8Array(head.buffer),
    new Uint8Array(duration.buffer),
    file.subarray(info.content),
  ];
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The first element of a kind from a place on, up to where clusters of pictures begin. */
function find(file: Uint8Array, id: number, from: number, to: number): Element | null {
  for (let at = from; at < to;) {
    const found = readElement(file, at);
    if (!found || found.end <= at) {
      return null;
    }
    if (found.id === id) {
      return found;
    }
    if (found.id === CLUSTER || found.end === Infinity) {
      return null;
    }
    at = found.end;
  }
  return null;
}

function readElement(file: Uint8Array, start: number): Element | null {
  const idBytes = Math.clz32(file[start] ?? 0) - 23;
  const sizeAt = start + idBytes;
  const sizeBytes = Math.clz32(file[sizeAt] ?? 0) - 23;
  const content = sizeAt + sizeBytes;
  if (idBytes > 4 || sizeBytes > 8 || content > file.length) {
    return null;
  }
  const isUnknown =
    file.subarray(sizeAt + 1, content).every((byte) => byte === 0xff) && isAllOnes(file[sizeAt], sizeBytes);
  const mask = 0xff >> sizeBytes;
  const size = readNumber(file, sizeAt + 1, content) + (file[sizeAt] & mask) * 256 ** (sizeBytes - 1);
  return { id: readNumber(file, start, sizeAt), start, content, end: isUnknown ? Infinity : content + size };
}

/** Whether the bits of a size's first byte that are not its length are all set. */
function isAllOnes(byte: number, sizeBytes: number): boolean {
  const mask = 0xff >> sizeBytes;
  return (byte & mask) === mask;
}

function readNumber(file: Uint8Array, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at++) {
    value = value * 256 + file[at];
  }
  return value;
}
