// Rows of a recording that goes on, as frames tell of them: numbered as they came, in typed arrays that grow with the code
// that ran and with nothing else. Pure.
import type { Container, TypedArray } from "../../protocol/container.ts";

interface Arrays {
  u8: Uint8Array<ArrayBuffer>;
  i8: Int8Array<ArrayBuffer>;
  u32: Uint32Array<ArrayBuffer>;
  i32: Int32Array<ArrayBuffer>;
  u64: BigUint64Array<ArrayBuffer>;
  f64: Float64Array<ArrayBuffer>;
}

type Kind = keyof Arrays;

const MAKE: Record<Kind, (length: number) => TypedArray> = {
  u8: (length) => new Uint8Array(length),
  i8: (length) => new Int8Array(length),
  u32: (length) => new Uint32Array(length),
  i32: (length) => new Int32Array(length),
  u64: (length) => new BigUint64Array(length),
  f64: (length) => new Float64Array(length),
};

/** A column whose array is at least as long as there are rows, and at most twice that. */
class Column<A extends TypedArray> {
  array: A;

  constructor(private readonly kind: Kind) {
    this.array = MAKE[kind](64) as A;
  }

  reserve(length: number): void {
    if (length > this.array.length) {
      const grown = MAKE[this.kind](Math.max(length, 2 * this.array.length)) as A;
      (grown as Uint8Array).set(this.array as Uint8Array);
      this.array = grown;
    }
  }

  take(rows: Uint32Array, values: TypedArray): void {
    for (let i = 0; i < rows.length; i++) {
      this.array[rows[i]] = values[i];
    }
  }
}

/** Rows of one kind. `isGone` tells which are not there any more; `executions` is told apart from the other columns. */
export class LiveRows<const Names extends Record<string, Kind>> {
  count = 0;
  readonly gone = new Column<Uint8Array<ArrayBuffer>>("u8");
  readonly executions = new Column<Float64Array<ArrayBuffer>>("f64");
  private readonly columns = new Map<string, Column<TypedArray>>();

  constructor(
    private readonly prefix: string,
    private readonly kinds: Names,
  ) {
    this.clear();
  }

  clear(): void {
    this.count = 0;
    for (const [name, kind] of Object.entries(this.kinds)) {
      this.columns.set(name, new Column(kind));
    }
    this.gone.array.fill(0);
    this.executions.array.fill(0);
  }

  /** A column's array, which may be longer than there are rows. */
  array<Name extends keyof Names & string>(name: Name): Arrays[Names[Name]] {
    return this.columns.get(name)!.array as Arrays[Names[Name]];
  }

  /** The numbers of the rows that a frame tells of, after taking them. */
  take(frame: Container): Uint32Array {
    const rows = frame.get(this.prefix, "u32");
    this.reserve(rows);
    for (const [name, column] of this.columns) {
      column.take(rows, frame.get(`${this.prefix}_${name}`, this.kinds[name]));
    }
    this.gone.take(rows, frame.get(`${this.prefix}_gone`, "u8"));
    return rows;
  }

  /** The numbers of the rows whose executions a frame tells of, after taking them. */
  takeCounts(frame: Container): Uint32Array {
    const rows = frame.get(`counted_${this.prefix}`, "u32");
    this.reserve(rows);
    this.executions.take(rows, frame.get(`counted_${this.prefix}_executions`, "f64"));
    return rows;
  }

  /** Bytes of all arrays. */
  get bytes(): number {
    return [...this.columns.values(), this.gone, this.executions].reduce((sum, one) => sum + one.array.byteLength, 0);
  }

  private reserve(rows: Uint32Array): void {
    for (const row of rows) {
      this.count = Math.max(this.count, row + 1);
    }
    for (const column of [...this.columns.values(), this.gone, this.executions]) {
      column.reserve(this.count);
    }
  }
}
