// The keys of whatever is made of rows: to the next one, a page on, to the last.
import type { Binding } from "../../model/keys.ts";

/** Rows, of which one is the current one. */
export interface Rows {
  count: number;
  /** How many are a page. */
  page: number;
  /** Make the one current that comes so many later, or the first or last where there are not so many. */
  move: (by: number) => void;
}

/** What the help says: of a step, of a page, of the first and last. */
interface Words {
  step: string;
  page?: string;
  ends?: string;
}

export function rowKeys({ step, page = "A page back or on", ends = "To the first or last" }: Words): Binding<Rows>[] {
  const when = (rows: Rows) => rows.count > 0;
  return [
    { key: "ArrowUp", what: step, when, run: (rows) => rows.move(-1) },
    { key: "ArrowDown", what: step, when, run: (rows) => rows.move(1) },
    { key: "PageUp", what: page, when, run: (rows) => rows.move(-rows.page) },
    { key: "PageDown", what: page, when, run: (rows) => rows.move(rows.page) },
    { key: "Home", what: ends, when, run: (rows) => rows.move(-rows.count) },
    { key: "End", what: ends, when, run: (rows) => rows.move(rows.count) },
  ];
}
