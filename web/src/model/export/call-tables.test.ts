import { expect, test } from "vitest";
import type { CallRow } from "../../api/calls.ts";
import { formatCsv } from "../../base/csv.ts";
import { callColumns, entityColumns, placeColumns, touchColumns } from "./call-tables.ts";

const NAMES = ["main", '=cmd|"x"'];

const CALL: CallRow = {
  call: 0,
  process: 2,
  time: 10,
  duration: null,
  tid: 7,
  kind: "system_call",
  name: "read",
  block: 5,
  function: 1,
  filter: "File",
  library: null,
  arguments: [{ name: "fd", value: "3" }, { name: "to", value: "0x10", text: "a\nb" }, {}],
  result: "-1",
  error: "ENOENT",
  injected: ["result", "delay_enter"],
};

test("calls: nothing where nothing is known, and no formula", () => {
  const unknown = { tid: null, block: -1, function: -1, arguments: [], result: null, error: null, injected: [] };
  const nowhere: CallRow = { ...CALL, call: 1, filter: "Other", ...unknown };
  expect(formatCsv(callColumns([CALL, nowhere], NAMES, new Map([[2, 77]])))).toBe(
    `"call","process_id","pid","time_ns","duration_ns","tid","kind","filter","name","library","arguments","result","error","injected","block","function"\n` +
      `0,2,77,10,,7,"system_call","File","read",,"fd=3, to=a\\x0ab, ?","'-1","ENOENT","result,delay_enter",5,"'=cmd|""x"""\n` +
      `1,2,77,10,,,"system_call","Other","read",,"",,,,,\n`,
  );
});

test("places of calls", () => {
  const rows = [
    { block: 0, function: 0, name: null, calls: 3, filter: "Other" as const },
    { block: -1, function: -1, name: "read", calls: null, filter: null },
  ];
  expect(formatCsv(placeColumns(rows, NAMES))).toBe(`"block","function","name","calls"\n0,"main",,3\n,,"read",\n`);
});

test("entities, and who did what with them", () => {
  const life = { process: null, tid: null, parent: null, from: 1, to: 2, calls: 3, all_calls: 4, bytes: 5 };
  const details: [string, string][] = [
    ["path", "/x"],
    ["inode", "5"],
  ];
  expect(formatCsv(entityColumns([{ entity: 9, kind: "file", name: "/x", details, ...life }]))).toBe(
    `"entity_id","kind","name","process_id","tid","parent_entity_id","first_ns","last_ns","calls","all_calls","bytes","details"\n` +
      `9,"file","/x",,,,1,2,3,4,5,"path=/x, inode=5"\n`,
  );
  const roles: [string, number][] = [
    ["read", 2],
    ["opened", 1],
  ];
  const touch = { process: 1, entity: 9, kind: "file", name: "/x", calls: 3, roles, bytes_read: 8, bytes_written: 0 };
  expect(formatCsv(touchColumns([touch, { ...touch, process: 2 }], new Map([[1, 70]])))).toBe(
    `"process_id","pid","entity_id","kind","name","calls","roles","bytes_read","bytes_written"\n` +
      `1,70,9,"file","/x",3,"read 2, opened 1",8,0\n` +
      `2,,9,"file","/x",3,"read 2, opened 1",8,0\n`,
  );
});
