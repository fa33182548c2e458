// A gradual change of where a graph is seen from, and of where its nodes are.
import { type Eye, mixEyes } from "../../base/projection.ts";

const CHANGE_MS = 650;

export class EyeChange {
  /** How far it is: 0 to 1. */
  share = 0;
  private readonly start = performance.now();

  constructor(
    private readonly from: Eye,
    readonly to: Eye,
    /** Nodes move from where they were before. */
    readonly movesNodes: boolean,
  ) {}

  /** Go on to a time, in ms as performance.now() counts. */
  advance(now: number): void {
    const t = Math.min(Math.max((now - this.start) / CHANGE_MS, 0), 1);
    this.share = t * t * (3 - 2 * t);
  }

  get isAtEnd(): boolean {
    return this.share >= 1;
  }

  get eye(): Eye {
    return this.isAtEnd ? this.to : mixEyes(this.from, this.to, this.share);
  }

  /** How far nodes are from the places before to those now. */
  get between(): number {
    return this.movesNodes ? this.share : 1;
  }
}
