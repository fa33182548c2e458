// Gives the reader a file: under a name made of the trace's, without whatever a name of a file may not have.
import { process, summary } from "../../model/session.ts";

const MOST_LETTERS = 60;

/** `collatz-4242-graph.png`, of `graph.png`. */
export function fileName(what: string): string {
  const trace = (summary.peek()?.name ?? "trace").replace(/\.clew$/, "");
  const safe = trace
    .replace(/[^\w.-]+/g, "_")
    .replace(/^[.-]+/, "_")
    .slice(0, MOST_LETTERS);
  return `${safe || "trace"}-${process.peek()?.pid ?? 0}-${what}`;
}

export function download(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
