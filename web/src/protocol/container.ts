// Containers of typed arrays, as src/clew/server/container.py writes them: docs/format/container.md.
import { CONTAINER_MAGIC, CONTAINER_VERSION } from "./generated.ts";

export type TypedArray =
  | Uint8Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Int16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | BigUint64Array<ArrayBuffer>
  | BigInt64Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

const TYPES = {
  u8: Uint8Array,
  i8: Int8Array,
  u16: Uint16Array,
  i16: Int16Array,
  u32: Uint32Array,
  i32: Int32Array,
  u64: BigUint64Array,
  i64: BigInt64Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;

type TypeWord = keyof typeof TYPES;
type ArrayOf<W extends TypeWord> = InstanceType<(typeof TYPES)[W]> & { buffer: ArrayBuffer };

const HEAD_BYTES = 16;

interface Header {
  kind: string;
  meta: Record<string, unknown>;
  arrays: { name: string; type: TypeWord; offset: number; length: number }[];
}

/** What the server sends as typed arrays; they lie in the one buffer that was received. */
export class Container {
  readonly kind: string;
  readonly meta: Record<string, unknown>;
  private readonly arrays = new Map<string, { type: TypeWord; array: TypedArray }>();

  /** Throws an Error for what is no container of this version. */
  constructor(content: ArrayBuffer) {
    const view = new DataView(content);
    if (content.byteLength < HEAD_BYTES || view.getBigUint64(0, true) !== CONTAINER_MAGIC) {
      throw new Error("the server sent no container");
    }
    if (view.getUint32(8, true) !== CONTAINER_VERSION) {
      throw new Error("the server is of another version than this page: load the page again");
    }
    const base = HEAD_BYTES + view.getUint32(12, true);
    const header = JSON.parse(
      new TextDecoder().decode(new Uint8Array(content, HEAD_BYTES, base - HEAD_BYTES)),
    ) as Header;
    this.kind = header.kind;
    this.meta = header.meta;
    for (const { name, type, offset, length } of header.arrays) {
      this.arrays.set(name, { type, array: new TYPES[type](content, base + offset, length) as TypedArray });
    }
  }

  /** The array `name`, which is of type `type`. Throws an Error if there is none such. */
  get<W extends TypeWord>(name: string, type: W): ArrayOf<W> {
    const found = this.arrays.get(name);
    if (found?.type !== type) {
      throw new Error(`container ${this.kind}: no array ${name} of type ${type}`);
    }
    return found.array as unknown as ArrayOf<W>;
  }

  has(name: string): boolean {
    return this.arrays.has(name);
  }

  /** The texts packed as `name.bytes` and `name.ends`. */
  texts(name: string): string[] {
    const bytes = this.get(`${name}.bytes`, "u8");
    const ends = this.get(`${name}.ends`, "u32");
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    const texts = new Array<string>(ends.length);
    let start = 0;
    for (let i = 0; i < ends.length; i++) {
      texts[i] = decoder.decode(bytes.subarray(start, ends[i]));
      start = ends[i];
    }
    return texts;
  }
}
