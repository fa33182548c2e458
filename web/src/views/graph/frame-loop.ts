// When frames are drawn: one at a time, when one is wanted, and none before the last one is there: else they would queue up
// behind a moving pointer.

export class FrameLoop {
  /** How long the last frame took that is there, in ms; 0 if none is. */
  frameMs = 0;

  private request = 0;
  private isWanted = false;
  /** When the frame began that is not there yet. */
  private start: number | null = null;

  constructor(
    private readonly draw: (now: number) => void,
    /** Whether the last frame is not there yet; changes between tasks only. */
    private readonly isBusy: () => boolean,
    private readonly onDone: (frameMs: number) => void,
  ) {}

  want(): void {
    this.isWanted = true;
    this.request ||= requestAnimationFrame(this.tick);
  }

  /** `draw` began a frame at a time. */
  began(start: number): void {
    this.start = start;
  }

  dispose(): void {
    cancelAnimationFrame(this.request);
  }

  private readonly tick = (now: number): void => {
    this.request = 0;
    if (this.start !== null && !this.isBusy()) {
      this.frameMs = performance.now() - this.start;
      this.start = null;
      this.onDone(this.frameMs);
    }
    if (this.isWanted && this.start === null) {
      this.isWanted = false;
      this.draw(now);
    }
    if (this.isWanted || this.start !== null) {
      this.request ||= requestAnimationFrame(this.tick);
    }
  };
}
