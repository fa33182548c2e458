"""Two traces compared, of which is known what differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from clew.analysis.comparison.trace_diff import TraceDiff
from tests.unit.small_trace import BASE, MakeTrace, Rows, repeated_trace, small_trace

Diff = Callable[..., TraceDiff]


@pytest.fixture
def diff(make_trace: MakeTrace) -> Diff:
    """Compares two traces of rows, in both directions: one says of A what the other says of B."""
    number = iter(range(1000))

    def compare(a: Rows, b: Rows, *, merge: bool = False, modes: tuple[str, str] = ("counts", "counts")) -> TraceDiff:
        traces = [
            make_trace(rows | ({"counts": []} if mode == "coverage" else {}), f"{next(number)}.clew", mode=mode)
            for rows, mode in zip((a, b), modes, strict=True)
        ]
        found = TraceDiff(*traces, merge=merge)
        content, mirrored = (
            json.loads(json.dumps(one.to_dict(n=100))) for one in (found, TraceDiff(*reversed(traces), merge=merge))
        )
        for name in ("blocks", "edges"):
            assert content[name]["only_in_a"] == mirrored[name]["only_in_b"]
            assert content[name]["only_in_b"] == mirrored[name]["only_in_a"]
        assert content["not_comparable"]["a"] == mirrored["not_comparable"]["b"]
        assert content["equal"] == mirrored["equal"]
        for mine, other in (("only_in_a", "only_in_b"), ("only_in_b", "only_in_a"), ("rows", "rows")):
            assert [(row["a"], row["b"]) for row in content[mine]] == [(row["b"], row["a"]) for row in mirrored[other]]
        return found

    return compare


def move(rows: Rows, by: int) -> Rows:
    """The same run, loaded `by` bytes further up, with other ids."""
    moved = deepcopy(rows)
    for image in moved["images"]:
        image["base"] += by
    for block in moved["blocks"]:
        block["app_pc"] += by
    for content in moved.values():
        for row in content:
            for name in row:
                if name in ("pid", "tid") or (name.endswith("_id") and name != "build_id" and row[name] is not None):
                    row[name] += 1000
    return moved


def split(rows: Rows, number: int, into: int, n_instructions: int) -> Rows:
    """The same run, in which a block was entered `into` bytes from its start, after `n_instructions`, too."""
    rows = deepcopy(rows)
    first = rows["blocks"][number]
    second = deepcopy(first)
    new = max(block["block_id"] for block in rows["blocks"]) + 1
    for name in ("offset", "app_pc", "symbol_offset"):
        if second[name] is not None:
            second[name] += into
    second |= {
        "block_id": new,
        "size_bytes": first["size_bytes"] - into,
        "n_instructions": first["n_instructions"] - n_instructions,
        "bytes": first["bytes"][into:],
    }
    first |= {
        "size_bytes": into,
        "n_instructions": n_instructions,
        "bytes": first["bytes"][:into],
        "exit_kind": "fall_through",
    }
    edge_id = max(edge["edge_id"] for edge in rows["edges"]) + 1
    for edge in rows["edges"]:
        if edge["source_block_id"] == first["block_id"] and edge["kind"] not in ("signal", "fault"):
            edge["source_block_id"] = new
    whose = {name: first[name] for name in ("process_id", "pid")}
    ends = {"source_block_id": first["block_id"], "target_block_id": new, "callee_block_id": None}
    rows["edges"].append(whose | ends | {"edge_id": edge_id, "kind": "fall_through"})
    for count in [count for count in rows["counts"] if count["block_id"] == first["block_id"]]:
        rows["counts"] += [
            count | {"block_id": new},
            count | {"block_id": None, "edge_id": edge_id},
        ]
    rows["blocks"].append(second)
    return rows


def count(rows: Rows, column: str, number: int) -> dict[str, Any]:
    return next(row for row in rows["counts"] if row[column] == number)


def test_a_trace_and_itself(diff: Diff, rows: Rows) -> None:
    found = diff(rows, rows)
    assert found.is_equal and not found.differs
    for by in ("function", "block", "edge"):
        assert found.rows(by) == found.rows_only_in("a", by) == found.rows_only_in("b", by) == []
    assert found.to_dict()["blocks"] == {"same": 4, "differ": 0, "only_in_a": 0, "only_in_b": 0}


def test_elsewhere_in_memory(diff: Diff, rows: Rows) -> None:
    assert diff(rows, move(rows, 0x7F0000)).is_equal


def test_executions_side_by_side(diff: Diff, rows: Rows) -> None:
    other = deepcopy(rows)
    count(other, "block_id", 3)["executions"] = 20
    count(other, "edge_id", 1)["executions"] = 20
    found = diff(rows, other)
    (function,) = found.rows("function")
    assert (function["function"], function["image"], function["ratio"]) == ("f", "/bin/it", 4.0)
    assert (function["a"]["instructions"], function["b"]["instructions"], function["difference"]) == (10, 40, 30)
    assert function["a"]["offset"] == function["b"]["offset"] == "0x40"
    (block,) = found.rows("block")
    assert (block["symbol"], block["a"]["executions"], block["b"]["executions"]) == ("f", 5, 20)
    (edge,) = found.rows("edge")
    assert (edge["kind"], edge["difference"], edge["a"]["source"]["offset"]) == ("call", 15, "0x10")
    assert not found.rows_only_in("a") and not found.rows_only_in("b")


def test_what_matters_most_comes_first(diff: Diff, rows: Rows) -> None:
    other = deepcopy(rows)
    # In main as many more here as less there: its sum is the same, and it differs all the same.
    for number, n in ((0, 6), (1, 1), (3, 6)):
        count(other, "block_id", number)["executions"] = n
    found = diff(rows, other)
    main, f = found.rows("function")
    assert (main["function"], main["difference"], main["ratio"]) == ("main", 8, 1.0)
    assert (f["function"], f["difference"]) == ("f", 2)
    assert [row["difference"] for row in found.rows("block")] == [4, 4, 2]
    assert [row["difference"] for row in found.rows("block", 1)] == [4]


def test_code_in_one_only(diff: Diff, rows: Rows) -> None:
    other = deepcopy(rows)
    other["blocks"] = [block for block in other["blocks"] if block["block_id"] != 2]
    other["edges"] = [edge for edge in other["edges"] if edge["target_block_id"] != 2]
    other["counts"] = [row for row in other["counts"] if row["block_id"] != 2 and row["edge_id"] != 4]
    found = diff(rows, other)
    (function,) = found.rows_only_in("a")
    assert (function["function"], function["only"]) == ("main", {"blocks": 1, "executions": 1, "instructions": 2})
    assert function["b"]["blocks"] == 2
    (block,) = found.rows_only_in("a", "block")
    assert (block["a"]["offset"], block["b"], block["a"]["bytes"]) == ("0x1a", None, "900f05")
    (edge,) = found.rows_only_in("a", "edge")
    assert (edge["kind"], edge["b"]) == ("not_taken", None)
    assert found.rows_only_in("b") == []
    (image,) = found.to_dict()["images"]
    assert image["a"]["only"] == {"blocks": 1, "instructions": 2}
    assert image["b"]["only"] == {"blocks": 0, "instructions": 0}


@pytest.mark.parametrize(("number", "into", "n_instructions"), [(0, 1, 1), (0, 3, 3), (2, 1, 1), (3, 2, 1)])
def test_a_block_that_is_split_in_one(diff: Diff, rows: Rows, number: int, into: int, n_instructions: int) -> None:
    other = split(rows, number, into, n_instructions)
    found = diff(rows, move(other, 0x3000))
    assert found.is_equal
    assert found.to_dict()["blocks"]["same"] == 5
    assert found.to_dict()["edges"]["same"] == 6
    assert diff(split(rows, 0, 1, 1), split(rows, 0, 3, 3)).to_dict()["blocks"]["same"] == 6


def test_what_split_the_block_differs_alone(diff: Diff, rows: Rows) -> None:
    """The block at 0x10 was entered at 0x12 once by a jump, in place of from its start."""
    other = split(rows, 0, 2, 2)
    other["edges"].append(other["edges"][3] | {"edge_id": 9, "target_block_id": 4})
    for column, number, n in (("block_id", 0, 4), ("edge_id", 5, 4), ("edge_id", 3, 3)):
        count(other, column, number)["executions"] = n
    other["counts"].append(count(other, "edge_id", 3) | {"edge_id": 9, "executions": 1})
    found = diff(rows, other)
    (block,) = found.rows("block")
    assert (block["a"]["offset"], block["a"]["size_bytes"], block["a"]["n_instructions"]) == ("0x10", 2, 2)
    assert (block["a"]["executions"], block["b"]["executions"]) == (5, 4)
    edges = [(row["kind"], row["a"]["executions"], row["b"]["executions"]) for row in found.rows("edge")]
    assert sorted(edges) == [("fall_through", 5, 4), ("taken", 4, 3)]
    (edge,) = found.rows_only_in("b", "edge")
    assert (edge["kind"], edge["b"]["target"]["offset"]) == ("taken", "0x12")
    assert found.rows_only_in("a", "edge") == []


@pytest.mark.parametrize("kind", ["signal", "fault"])
def test_what_came_before_a_block_leaves_its_first_piece(diff: Diff, rows: Rows, kind: str) -> None:
    rows["edges"].append(rows["edges"][1] | {"edge_id": 5, "kind": kind})
    rows["counts"].append(count(rows, "edge_id", 1) | {"edge_id": 5, "executions": 1})
    assert diff(rows, split(rows, 0, 2, 2)).is_equal


def test_code_that_overlaps_out_of_step_cuts_nothing(diff: Diff, rows: Rows) -> None:
    other = deepcopy(rows)
    # In the middle of the call's instruction.
    other["blocks"].append(
        other["blocks"][0]
        | {"block_id": 4, "offset": 0x15, "app_pc": BASE + 0x15, "symbol_offset": 5, "size_bytes": 2}
        | {"bytes": bytes(2), "n_instructions": 1}
    )
    other["counts"].append(count(other, "block_id", 0) | {"block_id": 4, "executions": 3})
    found = diff(rows, other)
    assert found.to_dict()["blocks"] == {"same": 4, "differ": 0, "only_in_a": 0, "only_in_b": 1}


def test_other_bytes_at_the_same_place_are_other_code(diff: Diff, rows: Rows) -> None:
    other = deepcopy(rows)
    other["blocks"][3] |= {"bytes": b"\x31\xdb\xc3", "code_version": 1}
    found = diff(rows, other)
    assert found.to_dict()["blocks"] == {"same": 3, "differ": 0, "only_in_a": 1, "only_in_b": 1}
    # The number of the version says nothing: it counts what changed before.
    other["blocks"][3]["bytes"] = rows["blocks"][3]["bytes"]
    assert diff(rows, other).is_equal


def test_the_same_build_at_another_path(diff: Diff, rows: Rows) -> None:
    other = deepcopy(rows)
    rows["images"][0]["build_id"] = "ab" * 20
    other["images"][0] |= {"build_id": "ab" * 20, "path": "/opt/that"}
    found = diff(rows, other)
    assert found.is_equal
    assert found.to_dict()["images"][0]["matched_by"] == "build_id"


def test_another_build_is_compared_by_symbol(diff: Diff, rows: Rows) -> None:
    other = deepcopy(rows)
    rows["images"][0]["build_id"] = "ab" * 20
    other["images"][0] |= {"build_id": "cd" * 20, "path": "/opt/new/it"}
    # Another call, and the function lies further on.
    other["blocks"][0]["bytes"] = b"\x90" * 3 + b"\xe8\x20" + bytes(3)
    other["blocks"][3] |= {"offset": 0x60, "app_pc": BASE + 0x60, "function_offset": 0x60}
    found = diff(rows, other)
    assert found.is_equal
    content = found.to_dict()
    assert content["images"][0]["matched_by"] == "name"
    assert any("another build" in note for note in content["notes"])
    count(other, "block_id", 3)["executions"] = 9
    (function,) = diff(rows, other).rows()
    assert (function["function"], function["a"]["offset"], function["b"]["offset"]) == ("f", "0x40", "0x60")


def test_what_compared_processes_execute_is_compared_whatever_it_is_called(diff: Diff, rows: Rows) -> None:
    """Builds that were named `it-1` and `it-2`: of the two files no other one is nearer."""
    other = deepcopy(rows)
    for number, of in enumerate((rows, other), 1):
        of["images"][0]["path"] = of["processes"][0]["executable"] = f"/bin/it-{number}"
    other["blocks"][3] |= {"offset": 0x60, "app_pc": BASE + 0x60, "function_offset": 0x60}
    found = diff(rows, other)
    assert found.is_equal
    content = found.to_dict()
    assert content["images"][0]["matched_by"] == "executable"
    assert any("another build" in note for note in content["notes"])


def test_other_builds_with_two_functions_of_one_name(diff: Diff, rows: Rows) -> None:
    for block in rows["blocks"][:3]:
        block["symbol"] = "f"
    other = deepcopy(rows)
    rows["images"][0]["build_id"], other["images"][0]["build_id"] = "ab" * 20, "cd" * 20
    other["blocks"][3] |= {"offset": 0x60, "app_pc": BASE + 0x60, "function_offset": 0x60}
    assert diff(rows, other).is_equal


def outside(rows: Rows, by: int = 0, numbers: tuple[int, ...] = (0, 1, 2, 3)) -> Rows:
    """The same run, with blocks outside of images, `by` bytes further up."""
    rows = deepcopy(rows)
    for number in numbers:
        block = rows["blocks"][number]
        block["app_pc"] += by
        block |= dict.fromkeys(("image_id", "offset", "symbol", "symbol_offset", "function_offset"))
    return rows


@pytest.mark.parametrize("by", [0, 0x1000, 0x7F0000001000, -0x10])
def test_code_outside_of_images_goes_by_its_bytes(diff: Diff, rows: Rows, by: int) -> None:
    a, b = outside(rows), outside(rows, by)
    assert diff(a, b).is_equal
    count(b, "block_id", 2)["executions"] = 3
    (block,) = diff(a, b).rows("block")
    assert (block["image"], block["a"]["app_pc"]) == (None, hex(BASE + 0x1A))
    # Split code, and code of one trace only, is found by what lies beside it.
    assert diff(outside(rows), split(outside(rows, by), 0, 2, 2)).is_equal


def test_what_is_not_comparable_is_counted(diff: Diff, rows: Rows) -> None:
    a, b = outside(rows, numbers=(3,)), outside(rows, 0x5000, numbers=(3,))
    b["blocks"][3]["bytes"] = b"\x31\xdb\xc3"
    found = diff(a, b)
    assert not found.is_equal and not found.differs
    content = found.to_dict()
    what = {"blocks": 1, "executions": 5, "instructions": 10, "edges": 2}
    assert content["not_comparable"] == {"a": what, "b": what}
    assert content["blocks"] == {"same": 3, "differ": 0, "only_in_a": 0, "only_in_b": 0}
    assert content["only_in_a"] == content["only_in_b"] == content["rows"] == []
    assert content["images"][-1]["a"]["image"] is None


def test_coverage_compares_sets(diff: Diff, rows: Rows) -> None:
    other = deepcopy(rows)
    other["blocks"][2]["is_recorded"] = False
    other["edges"] = other["edges"][:4]
    for modes in (("coverage", "coverage"), ("coverage", "counts"), ("counts", "coverage")):
        same = deepcopy(rows)
        count(same, "block_id", 0)["executions"] = 77
        assert diff(rows, same, modes=modes).is_equal
    found = diff(rows, other, modes=("counts", "coverage"))
    assert not found.is_counted
    (function,) = found.rows_only_in("a")
    assert function["only"] == {"blocks": 1, "instructions": 2}
    assert [row["kind"] for row in found.rows_only_in("a", "edge")] == ["not_taken"]
    assert any("of mode counts, B of mode coverage" in note for note in found.to_dict()["notes"])
    (function,) = found.rows()
    assert (function["a"]["blocks"], function["b"]["blocks"]) == (3, 2)


def test_processes_go_by_what_they_executed_and_by_order(diff: Diff) -> None:
    a, b = repeated_trace(3), repeated_trace(3)
    for rows, paths in ((a, ("/bin/sh", "/bin/it", "/bin/it")), (b, ("/bin/it", "/bin/sh", "/bin/it"))):
        for process, path in zip(rows["processes"], paths, strict=True):
            process |= {"executable": path, "command": [path, str(process["pid"])]}
    # The second /bin/it of both ran the function twice as often.
    for rows in (a, b):
        for row in rows["counts"]:
            if row["process_id"] == 2:
                row["executions"] *= 2
    found = diff(a, b)
    assert found.is_equal
    pairs = [(pair.row_a, pair.row_b, pair.matched_by) for pair in found.processes.pairs]
    assert sorted(pairs) == [(0, 1, "executable"), (1, 0, "executable"), (2, 2, "command")]


def test_a_process_alone(diff: Diff, rows: Rows) -> None:
    found = diff(rows, repeated_trace(2))
    content = found.to_dict()
    assert content["blocks"] == {"same": 4, "differ": 0, "only_in_a": 0, "only_in_b": 4}
    assert [row["b"]["pid"] for row in content["only_in_b"]] == [8, 8]
    assert [(row["matched_by"], row["a"] is None) for row in content["processes"]] == [("command", False), (None, True)]
    merged = diff(rows, repeated_trace(2), merge=True).to_dict()
    assert merged["blocks"] == {"same": 0, "differ": 4, "only_in_a": 0, "only_in_b": 0}
    assert [row["ratio"] for row in merged["rows"]] == [2.0, 2.0]
    assert "pid" not in merged["rows"][0]["a"]


def test_programs_of_different_names_are_compared_as_they_come_first(diff: Diff, rows: Rows) -> None:
    other = small_trace()
    other["processes"][0]["executable"] = other["images"][0]["path"] = "/bin/it2"
    rows["images"][0]["build_id"] = other["images"][0]["build_id"] = "ab" * 20
    assert diff(rows, other).is_equal


def test_notes_of_filters_and_losses(make_trace: MakeTrace, rows: Rows) -> None:
    a = make_trace(rows, "a", include=["it"])
    b = make_trace(rows, "b", losses={"dropped_records": 2})
    notes = TraceDiff(a, b).to_dict()["notes"]
    assert any("other filters" in note for note in notes)
    assert any(note.startswith("B is not whole") for note in notes)


def test_empty_traces(diff: Diff, rows: Rows) -> None:
    empty: Rows = rows | {"blocks": [], "edges": [], "counts": [], "images": []}
    assert diff(empty, empty).is_equal
    assert diff(rows, empty).to_dict()["blocks"]["only_in_a"] == 4
