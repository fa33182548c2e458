"""Answers about two processes that are compared, of which is known by construction what differs."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from clew.server.app import make_app
from clew.server.served_trace import ServedTrace
from clew.store.columns import Array
from tests.unit.server.asking import LOOPBACK, TOKEN, ask_well
from tests.unit.small_trace import BASE, MakeTrace, Rows, small_trace
from tests.web.made_up_trace import write_made_up_trace

if TYPE_CHECKING:
    from starlette.applications import Starlette

MOVED = 0x7000


def other_trace() -> Rows:
    """`small_trace` as a run that was loaded elsewhere: its loop ran 7 times, it did not come to its last block (0x1a),
    and it called a function `g` (0x50) 3 times."""
    rows = deepcopy(small_trace())
    rows["images"][0]["base"] += MOVED
    for block in rows["blocks"]:
        block["app_pc"] += MOVED
    g = rows["blocks"][3] | {"block_id": 4, "symbol": "g", "offset": 0x50, "app_pc": BASE + MOVED + 0x50}
    rows["blocks"] = [row for row in rows["blocks"] if row["block_id"] != 2] + [g | {"function_offset": 0x50}]
    call = rows["edges"][1] | {"edge_id": 5, "source_block_id": 1, "target_block_id": 4}
    rows["edges"] = [row for row in rows["edges"] if row["edge_id"] != 4] + [call]
    executions = {("block_id", 0): 7, ("block_id", 1): 7, ("block_id", 3): 7, ("block_id", 4): 3}
    executions |= {("edge_id", 0): 1, ("edge_id", 1): 7, ("edge_id", 2): 7, ("edge_id", 3): 6, ("edge_id", 5): 3}
    row = rows["counts"][0] | {"block_id": None}
    rows["counts"] = [row | {name: number, "executions": n} for (name, number), n in executions.items()]
    return rows


@pytest.fixture
def app(make_trace: MakeTrace, page: Path) -> Starlette:
    """Serves as 0 and 1 the small traces, as 2 the first one again as mode coverage has it."""
    traces = [
        make_trace(small_trace(), "a.clew"),
        make_trace(other_trace(), "b.clew"),
        make_trace(small_trace() | {"counts": []}, "c.clew", mode="coverage"),
    ]
    return make_app([ServedTrace(one.directory, index) for index, one in enumerate(traces)], TOKEN, LOOPBACK, page)


def texts(arrays: dict[str, Array], name: str) -> list[str]:
    ends = arrays[f"{name}.ends"].tolist()
    content = arrays[f"{name}.bytes"].tobytes()
    return [content[begin:end].decode() for begin, end in zip([0, *ends], ends, strict=False)]


def ask_union(app: Starlette, a: int, b: int) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
    path = f"/api/traces/{a}/processes/0/compared/{b}/0"
    functions, blocks, compared = (
        ask_well(app, f"{path}/{what}").arrays()[1] for what in ("functions", "blocks", "comparison")
    )
    return functions, blocks, compared


def list_nodes(app: Starlette, a: int, b: int) -> dict[tuple[str, int], tuple[float, float]]:
    """Executions in both by function and distance from the image's start."""
    functions, blocks, compared = ask_union(app, a, b)
    names = texts(functions, "name")
    is_moved = compared["block_a"] < 0 if a == 0 else np.ones(len(blocks["address"]), bool)
    offset = blocks["address"].astype(np.int64) - BASE - MOVED * is_moved
    return {
        (names[function], int(at)): (float(in_a), float(in_b))
        for function, at, in_a, in_b in zip(
            blocks["function"], offset, compared["executions_a"], compared["executions_b"], strict=True
        )
    }


NODES = {
    ("main", 0x10): (5, 7),
    ("main", 0x18): (5, 7),
    ("main", 0x1A): (1, 0),
    ("f", 0x40): (5, 7),
    ("g", 0x50): (0, 3),
}


def test_nodes_are_those_of_both_with_their_executions(app: Starlette) -> None:
    assert list_nodes(app, 0, 1) == NODES


def test_functions_and_edges_are_those_of_both(app: Starlette) -> None:
    functions, blocks, compared = ask_union(app, 0, 1)
    names = texts(functions, "name")
    assert names == ["main", "f", "g"]
    told = {
        name: [
            float(compared[f"{what}_{side}"][index])
            for what in ("instructions", "blocks", "only", "entries")
            for side in "ab"
        ]
        for index, name in enumerate(names)
    }
    assert told == {
        "main": [27, 35, 3, 2, 1, 0, 1, 1],
        "f": [10, 14, 1, 1, 0, 0, 5, 7],
        "g": [0, 6, 0, 1, 0, 1, 0, 3],
    }
    assert compared["function_difference"].tolist() == [2 * 4 + 2 * 1 + 2, 4, 6]
    assert compared["function_differing"].tolist() == [3, 1, 1]
    at = blocks["address"].tolist()
    edges = {
        (at[source] - BASE if source >= 0 else None, at[target] - BASE): (in_a, in_b)
        for source, target, in_a, in_b in zip(
            blocks["edge_source"].tolist(),
            blocks["edge_target"].tolist(),
            compared["edge_a"].tolist(),
            compared["edge_b"].tolist(),
            strict=True,
        )
    }
    assert edges == {
        (None, 0x10): (1, 1),
        (0x10, 0x40): (5, 7),
        (0x10, 0x18): (5, 7),
        (0x18, 0x10): (4, 6),
        (0x18, 0x1A): (1, 0),
        (0x18, MOVED + 0x50): (0, 3),
    }
    links = zip(functions["link_source"], functions["link_target"], compared["link_a"], compared["link_b"], strict=True)
    assert {(int(a), int(b)): (x, y) for a, b, x, y in links} == {(0, 1): (5, 7), (0, 2): (0, 3)}


def test_distances_are_counted_on_their_own_side(app: Starlette) -> None:
    """Block 0x1a is told of where the other one has it, and the function of where this one does."""
    _, blocks, compared = ask_union(app, 1, 0)
    told = zip(blocks["address"].tolist(), compared["distance"].tolist(), strict=True)
    expected = {BASE + MOVED + 0x10: 0, BASE + MOVED + 0x18: 8, BASE + 0x1A: 10}
    assert {address: distance for address, distance in told if address in expected} == expected


def test_b_with_a_is_the_mirror(app: Starlette) -> None:
    assert list_nodes(app, 1, 0) == {
        **{(name, at): (b, a) for (name, at), (a, b) in NODES.items() if at != 0x1A},
        # Told of the other trace, which alone has it.
        ("main", 0x1A - MOVED): (0, 1),
    }


def test_the_summary_counts_them(app: Starlette) -> None:
    found = ask_well(app, "/api/traces/0/processes/0/compared/1/0").json()
    assert found["functions"] == {"same": 0, "differ": 2, "only_in_a": 0, "only_in_b": 1}
    assert found["blocks"] == {"same": 0, "differ": 3, "only_in_a": 1, "only_in_b": 1}
    assert found["edges"] == {"same": 1, "differ": 3, "only_in_a": 1, "only_in_b": 1}
    assert (found["equal"], found["is_same"], found["is_ordered"]) == (False, False, False)
    assert found["no_order"] == "A is of mode counts, B of counts: where they part is known only of two of mode full"


def test_a_trace_equals_itself(app: Starlette) -> None:
    found = ask_well(app, "/api/traces/0/processes/0/compared/0/0").json()
    assert (found["equal"], found["is_same"]) == (True, True)
    assert found["blocks"] == {"same": 4, "differ": 0, "only_in_a": 0, "only_in_b": 0}


def test_with_coverage_only_what_ran_is_compared(app: Starlette) -> None:
    meta, arrays = ask_well(app, "/api/traces/2/processes/0/compared/1/0/comparison").arrays()
    assert meta["is_counted"] is False
    assert sorted(zip(arrays["executions_a"].tolist(), arrays["executions_b"].tolist(), strict=True)) == [
        *[(0, 1), (1, 0)],
        *[(1, 1)] * 3,
    ]


def test_code_of_a_function_is_told_of_both(app: Starlette) -> None:
    path = "/api/traces/0/processes/0/compared/1/0/functions"
    main = ask_well(app, f"{path}/0").json()
    assert main["name"] == "main"

    def describe(side: str) -> list[tuple[int, int, int]]:
        base = BASE + MOVED * (side == "b")
        return [
            (int(block["address"], 16) - base, block["executions"], len(block["instructions"]))
            for block in main[side]["blocks"]
        ]

    assert describe("a") == [(0x10, 5, 4), (0x18, 5, 1), (0x1A, 1, 2)]
    assert describe("b") == [(0x10, 7, 4), (0x18, 7, 1)]
    # What is the same code is of one number.
    numbers = [[block["block"] for block in main[side]["blocks"]] for side in "ab"]
    assert numbers == [[0, 1, 2], [0, 1]]
    assert sorted((edge["source"], edge["target"], edge["executions"]) for edge in main["b"]["edges"]) == [
        (0, 1, 7),
        (1, 0, 6),
    ]
    assert [(way["function"], way["name"], way["executions"]) for way in main["b"]["ways_out"]] == [
        (1, "f", 7),
        (2, "g", 3),
    ]
    g = ask_well(app, f"{path}/2").json()
    assert g["a"] is None
    assert g["b"]["entry_block"] == g["b"]["blocks"][0]["block"]


@pytest.mark.parametrize(
    "path",
    [
        "0/processes/0/compared/9/0",
        "0/processes/0/compared/1/9",
        "0/processes/9/compared/1/0",
        "9/processes/0/compared/1/0",
    ],
)
@pytest.mark.parametrize("what", ["", "/functions", "/blocks", "/comparison", "/functions/0", "/order"])
def test_what_there_is_not_is_refused(app: Starlette, path: str, what: str) -> None:
    answer = ask_well(app, f"/api/traces/{path}{what}")
    assert (answer.status, list(answer.json())) == (400, ["error"])


@pytest.mark.parametrize(
    "what", ["functions/3", "order?partings=0", "order?partings=101", "order?start=main", "order?only=x"]
)
def test_what_makes_no_sense_is_refused(app: Starlette, what: str) -> None:
    answer = ask_well(app, f"/api/traces/0/processes/0/compared/1/0/{what}")
    assert (answer.status, list(answer.json())) == (400, ["error"])


def test_without_order_it_is_said_why(app: Starlette) -> None:
    found = ask_well(app, "/api/traces/0/processes/0/compared/1/0/order").json()
    assert found["threads"] == []
    assert "known only of two of mode full" in found["reason"]


def test_of_one_process_twice_it_is_its_graph(tmp_path: Path, page: Path) -> None:
    """Nothing is cut: the graph of both is that of the one, whatever is asked of it."""
    written = write_made_up_trace(tmp_path / "one.clew", 3000, n_threads=3)
    app = make_app([ServedTrace(written.directory, 0)], TOKEN, LOOPBACK, page)
    functions, blocks, compared = ask_union(app, 0, 0)
    own = {
        what: ask_well(app, f"/api/traces/0/processes/0/{what}").arrays()[1]
        for what in ("functions", "blocks", "counts?blocks=1")
    }
    for name, array in own["functions"].items():
        assert np.array_equal(functions[name], array), name
    for name, array in own["blocks"].items():
        if not name.startswith("edge_"):
            assert np.array_equal(blocks[name], array), name
    counts = own["counts?blocks=1"]
    for side in "ab":
        assert np.array_equal(compared[f"block_{side}"], np.arange(written.n_blocks))
        assert np.array_equal(compared[f"function_{side}"], np.arange(written.n_functions))
        for mine, its in (("executions", "block_executions"), ("instructions", "function_instructions")):
            assert np.array_equal(compared[f"{mine}_{side}"], counts[its])
        for mine, its in (("entries", "function_entries"), ("link", "link_executions")):
            assert np.array_equal(compared[f"{mine}_{side}"], counts[its])

    def sort_edges(arrays: dict[str, Array], executions: Array) -> list[tuple[Any, ...]]:
        columns = [arrays[f"edge_{name}"].tolist() for name in ("source", "target", "kind", "callee")]
        return sorted(zip(*columns, executions.tolist(), strict=True))

    assert sort_edges(blocks, compared["edge_a"]) == sort_edges(own["blocks"], counts["edge_executions"])


@pytest.mark.parametrize("seed", [2, 3])
def test_of_two_processes_the_graph_of_both_has_all_of_each(tmp_path: Path, page: Path, seed: int) -> None:
    """Two programs that have little in common: each side adds up to its own, and callers come before their callees."""
    directories = [
        write_made_up_trace(tmp_path / f"{number}.clew", 2000 + number, seed=number).directory for number in (1, seed)
    ]
    app = make_app([ServedTrace(one, index) for index, one in enumerate(directories)], TOKEN, LOOPBACK, page)
    functions, blocks, compared = ask_union(app, 0, 1)
    first = functions["first_block"].astype(np.int64)
    assert (np.diff(first) > 0).all()
    assert np.array_equal(blocks["function"], np.repeat(np.arange(len(first) - 1), np.diff(first)))
    assert np.array_equal(blocks["function"][functions["entry_block"]], np.arange(len(first) - 1))
    assert (functions["caller"] < np.arange(len(first) - 1)).all()
    assert (np.diff(functions["discovered"]) >= 0).all()
    for side, directory in zip("ab", directories, strict=True):
        graph = ProcessGraph(Trace(directory), 0)
        counts = graph.count()
        executed = compared[f"executions_{side}"] * blocks["n_instructions"]
        assert executed.sum() == (counts.blocks * graph.n_instructions).sum()
        known = compared[f"block_{side}"] >= 0
        assert set(compared[f"block_{side}"][known].tolist()) == set(range(graph.n_blocks))
        assert np.array_equal(
            compared[f"executions_{side}"][known], counts.blocks[compared[f"block_{side}"][known]].astype(float)
        )
        assert set(compared[f"function_{side}"].tolist()) - {-1} == set(range(graph.n_functions))
