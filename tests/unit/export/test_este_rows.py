"""Rows and graphs of Este's files, of executions that are made up: runs, losses, signals, hostile names."""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from clew.analysis.order.path_code import load_process_code
from clew.export.este.code import NO_BLOCK, EsteCode
from clew.export.este.config import EsteScope
from clew.export.este.graph import ThreadGraph
from clew.export.este.images import ImageFiles, list_images
from clew.export.este.order import EsteThread, Run
from clew.export.este.routines import Routines, escape_field
from clew.export.este.rows import BlockRows, TraceRows
from clew.store.trace import Trace
from tests.oracle.este_truth import count_links
from tests.unit.small_trace import BASE, MakeTrace, Rows

LIBRARY = 0x700000
CALL, JUMP, END, F, G, MADE = range(6)
"""Blocks of `program`, by their ids, which are their indices as well."""


@pytest.fixture
def program(rows: Rows) -> Rows:
    """The small trace, whose first block calls through a pointer: f and g, which are a library's, or code without an
    image. The second block jumps to f, or goes on."""
    rows["images"].append(
        rows["images"][0] | {"image_id": 1, "path": "/lib/it's, lib\n.so", "base": LIBRARY, "loaded_ns": 1200}
    )
    f = rows["blocks"][F]
    f |= {"image_id": 1, "app_pc": LIBRARY + 0x40, "symbol": "f,g\n"}
    rows["blocks"].append(
        f | {"block_id": G, "offset": 0x80, "app_pc": LIBRARY + 0x80, "symbol": None, "symbol_offset": None}
        | {"function_offset": 0x80}
    )  # fmt: skip
    none = {"image_id": None, "offset": None, "symbol": None, "symbol_offset": None, "function_offset": None}
    rows["blocks"].append(f | none | {"block_id": MADE, "app_pc": 0x900000})
    edge = rows["edges"][1]
    rows["edges"][1] |= {"kind": "indirect_call"}
    rows["edges"] += [
        edge | {"edge_id": 5, "kind": "indirect_call", "target_block_id": G},
        edge | {"edge_id": 6, "kind": "indirect_call", "target_block_id": MADE},
        edge | {"edge_id": 7, "kind": "jump", "source_block_id": JUMP, "target_block_id": F},
    ]
    end = {"process_id": 0, "pid": 7, "target_pc": None, "is_taken": False}
    rows["path_blocks"] = [
        end | {"block_id": CALL, "ending": "indirect_call", "branch_pc": BASE + 0x13},
        end | {"block_id": JUMP, "ending": "jump", "branch_pc": BASE + 0x18, "target_pc": LIBRARY + 0x40},
        end | {"block_id": END, "ending": "fall_through", "branch_pc": BASE + 0x1B},
        *(
            end | {"block_id": block, "ending": "return", "branch_pc": pc + 2}
            for block, pc in ((F, LIBRARY + 0x40), (G, LIBRARY + 0x80), (MADE, 0x900000))
        ),
    ]
    return rows


class Export:
    """What becomes of the runs of some threads."""

    def __init__(self, trace: Trace, scope: EsteScope | None = None) -> None:
        scope = scope or EsteScope()
        images = list_images(trace.images.to_pylist(), "/bin/it", scope, ImageFiles())
        code = EsteCode(trace, 0, load_process_code(trace, 0), images, scope)
        self.routine_file, self.block_file, self.trace_file = io.StringIO(), io.BytesIO(), io.BytesIO()
        self.routines = Routines(code, self.routine_file)
        self.blocks = BlockRows(code, self.block_file)
        self.rows = TraceRows(code, self.blocks, self.routines, self.trace_file)

    def add(
        self,
        *blocks: int,
        behind: int = NO_BLOCK,
        tid: int = 7,
        n_lost: int = 0,
        interrupted: dict[int, int] | None = None,
    ) -> None:
        thread = EsteThread(tid - 7, tid, {}, {})
        find = (interrupted or {}).get
        self.rows.add(Run(thread, np.array(blocks, np.int64), behind, n_lost > 0, n_lost, find))

    @property
    def table(self) -> list[list[int]]:
        lines = self.trace_file.getvalue().decode().splitlines()
        assert lines[0] == "bb_idx,os_tid,pin_tid,rtn_called_idx"
        return [[int(field) for field in line.split(",")] for line in lines[1:]]

    def links(self, pin_tid: int = 0) -> list[dict[str, Any]]:
        return list(self.rows.graphs[pin_tid].iter_links(self.routines))


def test_routines_and_blocks(program: Rows, make_trace: MakeTrace) -> None:
    export = Export(make_trace(program, mode="full"))
    export.add(END, CALL, MADE, END)
    text = export.routine_file.getvalue()
    assert text.count("\n") == 4
    rows = list(csv.reader(text.splitlines()))
    assert rows[0] == ["idx", "addr", "rtn_name", "image_idx", "section_idx"]
    assert rows[1:] == [
        ["0", str(LIBRARY + 0x40), "f,g\\n", "1", "-1"],
        ["1", str(LIBRARY + 0x80), "sub_700080", "1", "-1"],
        ["2", str(0x900000), "sub_900000", "-1", "-1"],
    ]
    assert export.block_file.getvalue().decode().splitlines() == [
        "idx,addr,size,bytes,image_idx,section_idx",
        f"0,{BASE + 0x1A},3,900F05,0,-1",
        f"1,{BASE + 0x10},8,909090E800000000,0,-1",
    ]


def test_a_stretch_outside_is_one_row(program: Rows, make_trace: MakeTrace) -> None:
    export = Export(make_trace(program, mode="full"))
    export.add(F, G, CALL, F, G, F, END, JUMP, F)
    export.add(G, behind=END)
    export.add(END)
    # Before it was inside, nothing was left.
    assert export.table == [[0, 7, 0, 0], [-1, 7, 0, -1], [1, 7, 0, -1], [2, 7, 0, 0], [-1, 7, 0, -1], [1, 7, 0, -1]]
    assert export.links() == [
        {"source": 0, "target": 1, "count": 1, "non_white": 1, "rtn_called": "f,g\n"},
        {"source": 1, "target": 2, "count": 1},
        {"source": 2, "target": 1, "count": 1, "non_white": 1, "rtn_called": "f,g\n"},
    ]


def test_runs_may_be_cut_anywhere(program: Rows, make_trace: MakeTrace) -> None:
    trace = make_trace(program, mode="full")
    chosen = random.Random(5)
    path = [chosen.choice([CALL, JUMP, END, F, G, MADE]) for _ in range(400)]
    whole = Export(trace)
    whole.add(*path)
    pieces = Export(trace)
    at = 0
    while at < len(path):
        end = min(at + chosen.randint(1, 9), len(path))
        pieces.add(*path[at:end], behind=path[end] if end < len(path) else NO_BLOCK)
        at = end
    assert pieces.table == whole.table
    assert pieces.block_file.getvalue() == whole.block_file.getvalue()
    assert pieces.links() == whole.links()
    # Counted from the rows, by a plain loop.
    names = {number: whole.routines.name(number) for number in range(len(whole.routines))}
    rows = [(row[0], row[3]) for row in whole.table]
    found = {
        (link["source"], link["target"], "non_white" in link, link.get("rtn_called")): link["count"]
        for link in whole.links()
    }
    assert found == count_links(rows, names)
    nodes = {node["id"]: node["count"] for node in whole.rows.graphs[0].iter_nodes(whole.blocks)}
    assert nodes == Counter(block for block, _ in rows if block >= 0)


def test_no_link_leads_over_a_loss(program: Rows, make_trace: MakeTrace) -> None:
    export = Export(make_trace(program, mode="full"))
    export.add(END, END)
    export.add(JUMP, F, n_lost=9)
    export.add(END, n_lost=9)
    assert [row[0] for row in export.table] == [0, 0, -1, 1, -1, 0]
    assert export.links() == [{"source": 0, "target": 0, "count": 1}]
    # In front of all that is told of, there is nothing to break off.
    export.add(END, n_lost=1, tid=8)
    assert export.table[-1] == [0, 8, 1, -1] and export.links(1) == []


def test_a_signal_comes_between_a_call_and_its_routine(program: Rows, make_trace: MakeTrace) -> None:
    trace = make_trace(program, mode="full")
    export = Export(trace)
    # END is a handler: the direct jump's routine is known; of the indirect call it is one of three.
    export.add(JUMP, END, CALL, END, CALL, F)
    assert [row[3] for row in export.table] == [0, -1, -1, -1, 0, -1]
    assert export.rows.n_ambiguous == 1
    # Where the path tells what was interrupted, it is that one.
    export = Export(trace)
    export.add(CALL, END, CALL, END, CALL, behind=END, interrupted={1: LIBRARY + 0x80, 3: 0x123, 5: LIBRARY + 0x40})
    assert [row[3] for row in export.table] == [1, -1, -1, -1, 0]
    assert export.rows.n_ambiguous == 1
    program["edges"] = [edge for edge in program["edges"] if edge["target_block_id"] not in (G, MADE)]
    export = Export(make_trace(program, "u.clew", mode="full"))
    export.add(CALL, END, CALL)
    assert [row[3] for row in export.table] == [0, -1, 0]
    assert export.rows.n_ambiguous == 0


def test_code_without_an_image_is_told_of_if_wanted(program: Rows, make_trace: MakeTrace) -> None:
    export = Export(make_trace(program, mode="full"), EsteScope(has_dynamic=True))
    export.add(CALL, MADE, CALL, F)
    assert export.table == [[0, 7, 0, -1], [1, 7, 0, -1], [0, 7, 0, 0], [-1, 7, 0, -1]]
    assert export.block_file.getvalue().decode().splitlines()[2] == f"1,{0x900000},3,31C0C3,-1,-1"


def test_a_block_is_known_by_its_first_address(program: Rows, make_trace: MakeTrace) -> None:
    again = program["blocks"][END] | {"block_id": 6, "code_version": 1, "bytes": b"\x91\x0f\x05"}
    same = program["blocks"][END] | {"block_id": 7, "code_version": 2}
    program["blocks"] += [again, same]
    export = Export(make_trace(program, mode="full"))
    # In the order of addresses and versions: END, as it was, as it became, and as it was again.
    export.add(2, 3, 4)
    assert [row[0] for row in export.table] == [0, 0, 0]
    assert len(export.blocks) == 1 and export.blocks.changed == [BASE + 0x1A]
    assert export.blocks.row(0)[2] == b"\x90\x0f\x05"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("_ZN3foo3barEv", "_ZN3foo3barEv"),
        ("main.(*T).m[go.shape.int]", "main.(*T).m[go.shape.int]"),
        ("operator new", "operator new"),
        ("a,b", '"a,b"'),
        ('say "no"', '"say ""no"""'),
        ("two\nlines\r\n", "two\\nlines\\r\\n"),
        ("\x1b[31mred\0", "\\x1b[31mred\\x00"),
        ("\u202egpj", "\\u202egpj"),
    ],
)
def test_fields_are_escaped(name: str, field: str) -> None:
    assert escape_field(name) == field


def test_an_empty_graph() -> None:
    graph = ThreadGraph()
    graph.add(np.array([-1]), np.array([-1]))
    assert graph.n_executions == 0
