// How wide texts are, measured once. Bounded: where counts change all the time there is no end of texts. Pure but for what
// measures.

/** So many widths are kept at most. */
export const MOST_WIDTHS = 4096;

export class TextWidths {
  private readonly known = new Map<string, number>();

  constructor(private readonly measure: (text: string) => number) {}

  /** How many are kept. */
  get size(): number {
    return this.known.size;
  }

  /** The width of a text, in whole pixels. */
  of(text: string): number {
    let width = this.known.get(text);
    if (width === undefined) {
      width = Math.ceil(this.measure(text));
      if (this.known.size === MOST_WIDTHS) {
        this.known.clear();
      }
      this.known.set(text, width);
    }
    return width;
  }

  /** Forget all: letters have another size. */
  clear(): void {
    this.known.clear();
  }
}
