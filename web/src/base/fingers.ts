// The pointers that are down on a picture, and what two of them mean: moved together they move it, apart they enlarge it.

export interface Place {
  x: number;
  y: number;
}

/** What a movement of one of two fingers does: the picture goes by `dx`, `dy`, and then grows by `factor` around `x`, `y`. */
export interface Pinch extends Place {
  dx: number;
  dy: number;
  factor: number;
}

export class Fingers {
  private readonly places = new Map<number, Place>();

  get count(): number {
    return this.places.size;
  }

  put(id: number, place: Place): void {
    this.places.set(id, place);
  }

  /** Whether it was down. */
  lift(id: number): boolean {
    return this.places.delete(id);
  }

  /** Where a pointer that is down was last; undefined if it is not. */
  placeOf(id: number): Place | undefined {
    return this.places.get(id);
  }

  /** A pointer that is down moved: what it does together with another one, or null where it is alone. */
  move(id: number, now: Place): Pinch | null {
    const before = this.places.get(id) ?? now;
    this.places.set(id, now);
    for (const [other, at] of this.places) {
      if (other !== id) {
        // Two fingers on one spot have no distance to compare with.
        const was = Math.max(Math.hypot(before.x - at.x, before.y - at.y), 1);
        const is = Math.max(Math.hypot(now.x - at.x, now.y - at.y), 1);
        return {
          x: (now.x + at.x) / 2,
          y: (now.y + at.y) / 2,
          dx: (now.x - before.x) / 2,
          dy: (now.y - before.y) / 2,
          factor: is / was,
        };
      }
    }
    return null;
  }
}
