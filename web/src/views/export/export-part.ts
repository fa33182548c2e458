// What each part of the dialog is given.

export interface ExportPart {
  /** Whether another part is at work. */
  isBusy: boolean;
  /** Do some work, and tell how it ended: in words, null for none. */
  run: (work: () => Promise<string | null>) => void;
  /** Give the reader a file; `what` ends its name. Gives what is to be told. */
  save: (content: Blob, what: string) => string;
}
