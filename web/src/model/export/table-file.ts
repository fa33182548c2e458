// A table as a file: the server writes it (src/clew/server/table_files.py); where the page is a file it writes the same CSV
// itself.
import type { Parameters } from "../../api/client.ts";
import { type Column, formatCsv } from "../../base/csv.ts";
import { client, isFile } from "../session.ts";
import { viewState } from "../view-state.ts";

export type TableKind = "csv" | "arrow";

const MEDIA_TYPES: Record<TableKind, string> = {
  csv: "text/csv;charset=utf-8",
  arrow: "application/vnd.apache.arrow.file",
};

/**
 * The table `of` that name, of what `words` choose in a process, or of all (null); `columnsHere` has the same where there is no server. Rejects with an
 * Error that says why it can't be had.
 */
export async function tableFile(
  of: string,
  kind: TableKind,
  words: Parameters,
  process: number | null,
  columnsHere: () => Column[] | Promise<Column[]>,
): Promise<Blob> {
  const type = MEDIA_TYPES[kind];
  if (!isFile.peek()) {
    const whose = process === null ? "" : `/processes/${process}`;
    const path = `traces/${viewState.peek().trace}${whose}/table`;
    return new Blob([await client().bytes(path, { ...words, of, as: kind })], { type });
  }
  if (kind !== "csv") {
    throw new Error("Arrow needs the server: open the trace with `clew view`");
  }
  return new Blob([formatCsv(await columnsHere())], { type });
}
