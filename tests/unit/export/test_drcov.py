"""drcov files are read here as coverage viewers read them: by splitting lines at commas."""

from __future__ import annotations

import io
import struct

from clew.export.drcov import DrcovExporter
from clew.export.formats import EXPORTERS
from clew.store.trace import Trace
from tests.unit.small_trace import MakeTrace, Rows


def export(trace: Trace) -> tuple[list[str], list[list[str]], list[tuple[int, ...]]]:
    """Header lines, module rows, and records."""
    file = io.BytesIO()
    n = DrcovExporter().export(trace, file)
    text, _, data = file.getvalue().partition(b" bbs\n")
    lines = text.decode().split("\n")
    n_modules = int(lines[2].rsplit(" ", 1)[1])
    modules = [[cell.strip() for cell in line.split(",")] for line in lines[4 : 4 + n_modules]]
    assert lines[4 + n_modules] == f"BB Table: {n}"
    assert len(data) == 8 * n
    return lines[:4], modules, list(struct.iter_unpack("<IHH", data))


def test_small_trace(make_trace: MakeTrace, rows: Rows) -> None:
    header, modules, records = export(make_trace(rows))
    assert header == [
        "DRCOV VERSION: 2",
        "DRCOV FLAVOR: drcov",
        "Module Table: version 2, count 1",
        "Columns: id, base, end, entry, path",
    ]
    assert modules == [["0", "0x0000000000400000", "0x0000000000401000", "0x0000000000000000", "/bin/it"]]
    assert records == [(0x10, 8, 0), (0x18, 2, 0), (0x1A, 3, 0), (0x40, 3, 0)]


def test_only_what_ran_in_images(make_trace: MakeTrace, rows: Rows) -> None:
    del rows["counts"][2]
    rows["blocks"][3] |= {"image_id": None, "offset": None}
    _, _, records = export(make_trace(rows))
    assert [record[0] for record in records] == [0x10, 0x18]


def test_coverage(make_trace: MakeTrace, rows: Rows) -> None:
    rows["counts"] = []
    rows["blocks"][0]["is_recorded"] = False
    _, _, records = export(make_trace(rows, mode="coverage"))
    assert [record[0] for record in records] == [0x18, 0x1A, 0x40]


def test_paths_cannot_break_lines_or_columns(make_trace: MakeTrace, rows: Rows) -> None:
    rows["images"][0]["path"] = "/tmp/a,b\nBB Table: 9 bbs\x1b[2J"
    _, modules, _ = export(make_trace(rows))
    assert len(modules) == 1
    assert modules[0][4] == "/tmp/a_b_BB Table: 9 bbs_[2J"


def test_formats_are_listed() -> None:
    assert EXPORTERS["drcov"].suffix == ".drcov.log"
