// What is compared with what, if nobody says: the next trace, and of its processes the one that executed the same. Pure.
import type { ProcessSummary, TraceName } from "../../api/traces.ts";

/** The trace to compare trace `a` with: `asked` if there is such a one, else another one; -1 if there is only `a`. */
export function chooseTrace(traces: readonly TraceName[], a: number, asked: number): number {
  if (traces.some((one) => one.index === asked)) {
    return asked;
  }
  return (traces.find((one) => one.index > a) ?? traces.find((one) => one.index !== a))?.index ?? -1;
}

/**
 * The process to compare `a` with: `asked` if there is such a one, else the like of `a`, else the one that did the most. In the
 * trace of `a` (`isOwn`) that is another one, if there is one.
 */
export function chooseProcess(
  all: readonly ProcessSummary[],
  a: ProcessSummary,
  asked: number,
  isOwn: boolean,
): number {
  const processes = isOwn && all.length > 1 ? all.filter((one) => one.process_id !== a.process_id) : all;
  const name = (path: string) => path.slice(path.lastIndexOf("/") + 1);
  const work = (one: ProcessSummary) => one.threads.reduce((sum, thread) => sum + thread.instructions, 0);
  const found =
    all.find((one) => one.process_id === asked) ??
    processes.find((one) => one.executable === a.executable && one.command.join("\0") === a.command.join("\0")) ??
    processes.find((one) => one.executable === a.executable) ??
    processes.find((one) => name(one.executable) === name(a.executable)) ??
    processes.reduce<ProcessSummary | undefined>(
      (best, one) => (best && work(best) >= work(one) ? best : one),
      undefined,
    );
  return found?.process_id ?? -1;
}
