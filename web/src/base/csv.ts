// Tables as CSV, as src/clew/server/table_files.py writes them: texts quoted, numbers not, nothing where there is no
// value. A spreadsheet takes a text that begins with = + - @ for a formula: such a text has an apostrophe in front.

/** A column: its name, and the value in each row. Addresses are bigints, which are told in hexadecimal. */
export interface Column {
  name: string;
  values: readonly (string | number | bigint | null)[];
}

const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const CONTROL = /[\x00-\x1f\x7f-\x9f]/g;

/** Rows in lines that end in a newline, with the names of the columns on top. */
export function formatCsv(columns: readonly Column[]): string {
  const lines = [columns.map(({ name }) => quote(name)).join(",")];
  for (let row = 0; row < (columns[0]?.values.length ?? 0); row++) {
    lines.push(columns.map(({ values }) => formatCell(values[row])).join(","));
  }
  return `${lines.join("\n")}\n`;
}

function formatCell(value: string | number | bigint | null): string {
  if (value === null) {
    return "";
  }
  if (typeof value === "bigint") {
    return quote(`0x${value.toString(16)}`);
  }
  return typeof value === "number" ? String(value) : quote(makeSafe(value));
}

/** One line, and no formula. */
function makeSafe(text: string): string {
  const safe = text.replace(CONTROL, (letter) => `\\x${letter.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return FORMULA.test(text) ? `'${safe}` : safe;
}

function quote(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
