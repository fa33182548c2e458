"""Each invariant holds in a good trace, and finds what breaks it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from clew.analysis.invariants.check import check_invariants, list_invariants
from tests.unit.calls import add_calls
from tests.unit.small_trace import MakeTrace, Rows, put_together, repeated_trace, small_trace


def broken(make_trace: MakeTrace, rows: Rows, **fields: Any) -> set[str]:
    return {finding.invariant for finding in check_invariants(make_trace(rows, **fields))}


def test_good_trace(make_trace: MakeTrace, rows: Rows) -> None:
    assert broken(make_trace, rows) == set()


def test_empty_trace(make_trace: MakeTrace, rows: Rows) -> None:
    empty = {name: rows[name] if name == "processes" else [] for name in rows}
    assert broken(make_trace, empty) == set()


def test_names_are_sentences_of_their_own() -> None:
    names = [invariant.name for invariant in list_invariants()]
    assert len(set(names)) == len(names)


def change(table: str, row: int, **fields: Any) -> Callable[[Rows], None]:
    def apply(rows: Rows) -> None:
        rows[table][row].update(fields)

    return apply


def remove(table: str, row: int) -> Callable[[Rows], None]:
    def apply(rows: Rows) -> None:
        del rows[table][row]

    return apply


def repeat(table: str, row: int, **fields: Any) -> Callable[[Rows], None]:
    def apply(rows: Rows) -> None:
        rows[table].append(rows[table][row] | fields)

    return apply


DAMAGES = [
    (repeat("blocks", 0, app_pc=0x400500, offset=0x500), "ids are unique"),
    (change("blocks", 1, process_id=8), "every row belongs to a process of the trace"),
    (change("counts", 0, process_id=8), "every row belongs to a process of the trace"),
    (change("blocks", 0, size_bytes=9), "blocks have the bytes and instructions they say"),
    (change("blocks", 0, n_instructions=9), "blocks have the bytes and instructions they say"),
    (change("blocks", 0, n_instructions=0), "blocks have the bytes and instructions they say"),
    (change("blocks", 0, exit_kind="leap"), "blocks have the bytes and instructions they say"),
    (repeat("blocks", 0, block_id=9), "blocks have the bytes and instructions they say"),
    (change("blocks", 0, offset=0x11), "blocks lie in their images"),
    (change("blocks", 0, image_id=3), "blocks lie in their images"),
    (change("images", 0, size_bytes=0x20), "blocks lie in their images"),
    (change("edges", 3, target_block_id=77), "every edge starts at a block and ends where a block begins"),
    (change("edges", 3, source_block_id=77), "every edge starts at a block and ends where a block begins"),
    (change("edges", 3, source_block_id=None), "every edge starts at a block and ends where a block begins"),
    (change("edges", 3, callee_block_id=3), "every edge starts at a block and ends where a block begins"),
    (change("edges", 3, kind="leap"), "every edge starts at a block and ends where a block begins"),
    (repeat("edges", 3, edge_id=9), "every edge starts at a block and ends where a block begins"),
    (change("edges", 3, kind="jump"), "every edge leaves its block the way the block ends"),
    (change("edges", 4, target_block_id=3), "every edge leaves its block the way the block ends"),
    (change("edges", 2, callee_block_id=2), "every edge leaves its block the way the block ends"),
    (change("counts", 0, edge_id=1), "counts are of blocks, edges and threads of the trace"),
    (change("counts", 0, block_id=77), "counts are of blocks, edges and threads of the trace"),
    (change("counts", 5, edge_id=77), "counts are of blocks, edges and threads of the trace"),
    (change("counts", 0, executions=0), "counts are of blocks, edges and threads of the trace"),
    (change("counts", 0, tid=9), "counts are of blocks, edges and threads of the trace"),
    (repeat("counts", 0), "counts are of blocks, edges and threads of the trace"),
    (change("blocks", 0, is_recorded=False), "counts are of blocks, edges and threads of the trace"),
    (
        repeat(
            "blocks",
            0,
            block_id=4,
            app_pc=0x400011,
            offset=0x11,
            bytes=b"\x90\x90\xe8" + bytes(4),
            size_bytes=7,
            n_instructions=3,
        ),
        "an instruction lies in one block",
    ),
    (change("blocks", 0, first_ns=10), "times are in order"),
    (change("threads", 0, start_ns=8001), "times are in order"),
    (change("counts", 0, executions=6), "what comes into a block runs it"),
    (change("counts", 7, executions=3), "what comes into a block runs it"),
    (remove("counts", 4), "what comes into a block runs it"),
    (change("counts", 5, executions=4), "what runs a block leaves it by its exits"),
    (change("counts", 8, executions=2), "what runs a block leaves it by its exits"),
    (change("counts", 3, executions=6), "returns balance in every thread"),
    (change("counts", 6, executions=4), "returns balance in every thread"),
    (change("counts", 4, executions=2), "every thread started once"),
    (change("threads", 0, instructions=38), "totals of threads are the sums of their counts"),
    (change("threads", 0, block_executions=15), "totals of threads are the sums of their counts"),
]
"""What is changed, and the beginning of the invariant that does not hold any more."""


def one_of_each(damages: list[tuple[Callable[[Rows], None], str]]) -> list[ParameterSet]:
    """The first damage of each invariant; the others are for the long runs."""
    firsts = {invariant: number for number, (_, invariant) in reversed(list(enumerate(damages)))}
    return [
        pytest.param(*one, marks=() if firsts[one[1]] == number else pytest.mark.long)
        for number, one in enumerate(damages)
    ]


def apply_damage(damage: Callable[[Rows], None], invariant: str, rows: Rows) -> None:
    damage(rows)
    if invariant == "an instruction lies in one block":
        rows["counts"].append(rows["counts"][0] | {"block_id": 4})


@pytest.mark.parametrize(("damage", "invariant"), DAMAGES)
def test_damage_is_found(damage: Callable[[Rows], None], invariant: str, make_trace: MakeTrace, rows: Rows) -> None:
    apply_damage(damage, invariant, rows)
    assert any(name.startswith(invariant) for name in broken(make_trace, rows))


def test_stopped_thread_may_be_in_a_block(make_trace: MakeTrace, rows: Rows) -> None:
    """It came to the last block and did not run it to its end."""
    del rows["counts"][2]
    rows["threads"][0] |= {"instructions": 35, "block_executions": 15}
    assert broken(make_trace, rows, name="a") != set()
    rows["threads"][0]["end"] = "killed"
    assert broken(make_trace, rows, name="b") == set()


def test_only_one_system_call_may_not_come_back(make_trace: MakeTrace, rows: Rows) -> None:
    rows["counts"][2]["executions"] = 2
    rows["counts"][8]["executions"] = 2
    assert any("leaves it" in name for name in broken(make_trace, rows))


def test_threads_with_one_number(make_trace: MakeTrace, rows: Rows) -> None:
    """The second began when the first had ended, and ended in the same system call."""
    rows["threads"].append(rows["threads"][0] | {"start_ns": 8001, "end_ns": 9000})
    for count in rows["counts"]:
        count["executions"] *= 2
    assert broken(make_trace, rows, name="a") == set()
    del rows["threads"][1]
    assert any("leaves it" in name for name in broken(make_trace, rows, name="b"))


def test_returns_are_not_balanced_where_filters_hide_code(make_trace: MakeTrace, rows: Rows) -> None:
    rows["blocks"][3]["is_recorded"] = False
    del rows["counts"][3]
    rows["threads"][0] |= {"instructions": 27, "block_executions": 11}
    assert broken(make_trace, rows, name="a") == {"returns balance in every thread"}
    assert broken(make_trace, rows, name="b", exclude=["libx.so"]) == set()


def test_coverage_has_no_counts(make_trace: MakeTrace, rows: Rows) -> None:
    assert broken(make_trace, rows, name="a", mode="coverage") != set()
    rows["counts"] = []
    assert broken(make_trace, rows, name="b", mode="coverage") == set()


def test_examples_are_bounded(make_trace: MakeTrace, rows: Rows) -> None:
    for row in rows["blocks"]:
        row["exit_kind"] = "leap"
    finding = next(
        f for f in check_invariants(make_trace(rows), max_examples=2) if "bytes and instructions" in f.invariant
    )
    assert finding.n_places == 4
    assert len(finding.examples) == 2


@pytest.mark.parametrize(("damage", "invariant"), one_of_each(DAMAGES))
def test_damage_in_the_middle_of_many_processes(
    damage: Callable[[Rows], None], invariant: str, make_trace: MakeTrace
) -> None:
    """It is found process by process as in the trace as a whole, and told as it is where the process is alone."""
    processes = [small_trace() for _ in range(5)]
    apply_damage(damage, invariant, processes[2])
    trace = make_trace(put_together(processes, dict.fromkeys(("process", "image", "block", "edge"), 1000)), "many")
    whole = check_invariants(trace)
    for piece_rows in (1, 100):
        assert check_invariants(trace, piece_rows=piece_rows) == whole
    assert any(finding.invariant.startswith(invariant) for finding in whole)
    alone = small_trace()
    apply_damage(damage, invariant, alone)
    found = [(finding.invariant, finding.n_places) for finding in check_invariants(make_trace(alone, "alone"))]
    assert [(finding.invariant, finding.n_places) for finding in whole] == found


@pytest.mark.parametrize(
    "seed",
    [
        *range(10),
        *(pytest.param(n, marks=pytest.mark.long) for n in range(10, 40)),
        *(pytest.param(n, marks=pytest.mark.stress) for n in range(40, 200)),
    ],
)
def test_what_is_found_does_not_depend_on_the_pieces(seed: int, make_trace: MakeTrace) -> None:
    """Whatever was changed, moved, removed and doubled; also where rows name what is another process'."""
    chance = random.Random(seed)
    rows = repeated_trace(chance.choice([2, 3, 6]))
    for _ in range(chance.randint(1, 4)):
        scramble(rows, chance)
    trace = make_trace(rows, mode=chance.choice(["counts", "counts", "counts", "coverage"]))
    whole = check_invariants(trace, piece_rows=1 << 40)
    for piece_rows in (1, 30):
        assert check_invariants(trace, piece_rows=piece_rows) == whole


def scramble(rows: Rows, chance: random.Random) -> None:
    table = chance.choice(["blocks", "edges", "counts", "counts", "threads", "images", "processes"])
    content = rows[table]
    at = chance.randrange(len(content))
    way = chance.random()
    if way < 0.1 and len(content) > 1:
        del content[at]
    elif way < 0.3:
        content.insert(chance.randrange(len(content) + 1), dict(content[at]))
    elif way < 0.4:
        chance.shuffle(content)
    else:
        name = chance.choice([name for name, value in content[at].items() if type(value) is int])
        other = chance.choice(content)[name]
        near = max(content[at][name] + chance.choice([-1, 1, 2, 1000]), 0)
        content[at][name] = chance.choice([near, chance.randrange(40), near if other is None else other])


def test_more_processes_than_a_byte_counts(make_trace: MakeTrace) -> None:
    """Blocks of different processes lie at one address, and do not overlap."""
    rows = repeated_trace(300)
    assert check_invariants(make_trace(rows, "good"), piece_rows=1 << 40) == []
    block = rows["blocks"][4 * 290]
    code = {"bytes": b"\x90\x90\xe8" + bytes(4), "size_bytes": 7, "n_instructions": 3}
    rows["blocks"].append(block | code | {"block_id": 1200, "app_pc": block["app_pc"] + 1, "offset": 0x11})
    rows["counts"].append(rows["counts"][9 * 290] | {"block_id": 1200})
    found = check_invariants(make_trace(rows, "bad"), piece_rows=1 << 40)
    (overlap,) = (finding for finding in found if finding.invariant == "an instruction lies in one block")
    assert "blocks 1160 and 1200" in overlap.examples[0]


CALLS = "calls are of threads and blocks of the trace"
COUNTED = "a block makes as many calls as it ran"
REFERENCES = "references are of calls and entities of the trace"
CALL_DAMAGES = [
    (repeat("calls", 4), CALLS),
    (change("calls", 4, kind="leap"), CALLS),
    (change("calls", 4, block_id=77), CALLS),
    (change("calls", 4, tid=9), CALLS),
    (change("calls", 0, time_ns=999, duration_ns=5000), CALLS),
    (change("calls", 4, time_ns=8001), CALLS),
    (change("calls", 4, duration_ns=-1), CALLS),
    (change("calls", 4, duration_ns=3001), CALLS),
    (change("calls", 4, time_ns=3999), CALLS),
    (change("calls", 4, parent_call_id=77), CALLS),
    (change("calls", 4, injected="result,luck"), CALLS),
    (change("calls", 4, parent_call_id=0), CALLS),
    (change("calls", 1, block_id=2), COUNTED),
    (change("calls", 0, process_id=8), "every row belongs to a process of the trace"),
    (change("references", 0, process_id=8), "every row belongs to a process of the trace"),
    (change("references", 0, call_id=77), REFERENCES),
    (change("references", 0, entity_id=77), REFERENCES),
    (change("references", 3, bytes=-2), REFERENCES),
    (repeat("references", 0), REFERENCES),
    (repeat("entities", 0), REFERENCES),
    (change("entities", 0, process_id=8), REFERENCES),
    (change("entities", 0, first_ns=8001), REFERENCES),
    (change("entities", 1, parent_entity_id=77), REFERENCES),
]


def test_good_calls(make_trace: MakeTrace, rows: Rows) -> None:
    tables = add_calls(rows)
    change("calls", 1, injected="result,signal")(tables)
    assert broken(make_trace, tables) == set()


@pytest.mark.parametrize("n_more", [0, 1])
def test_calls_are_no_more_than_executions(n_more: int, make_trace: MakeTrace, rows: Rows) -> None:
    """The block of the system call ran once, that of the functions' calls five times; rings' operations don't count."""
    tables = add_calls(rows)
    call, read = tables["calls"][4], tables["calls"][2]
    tables["calls"] += [call | {"call_id": 10 + number} for number in range(3 + n_more)]
    tables["calls"] += [read | {"call_id": 20, "time_ns": 5000, "library": "io_uring"}]
    found = check_invariants(make_trace(tables))
    assert [finding.invariant.startswith(COUNTED) for finding in found] == [True] * n_more
    assert all("1 calls more than it ran" in finding.examples[0] for finding in found)
    # Of a thread that was read while it ran on nothing is asked.
    tables["threads"][0]["end"] = "lost"
    assert check_invariants(make_trace(tables, "lost")) == []


def test_where_all_were_recorded_none_is_missing(make_trace: MakeTrace, rows: Rows) -> None:
    """Positions are known where each execution of a block has its call."""
    tables = add_calls(rows)
    change("calls", 2, position=15)(tables)
    assert check_invariants(make_trace(tables)) == []
    # Two calls of a function by one that jumps on to the next are at one place.
    change("calls", 0, position=0)(tables)
    tables["calls"] += [tables["calls"][4] | {"call_id": 10 + number, "position": 0} for number in range(9)]
    assert check_invariants(make_trace(tables, "jumps")) == []
    for table, name in (("counts", "executions"), ("threads", "block_executions"), ("threads", "instructions")):
        row = tables[table][2 if table == "counts" else 0]
        row[name] += 2 if name == "instructions" else 1
    found = {finding.invariant: finding.examples for finding in check_invariants(make_trace(tables, "missing"))}
    (told,) = (examples for invariant, examples in found.items() if invariant.startswith(COUNTED))
    assert "1 of its executions made no call" in told[0]


@pytest.mark.parametrize(
    ("damage", "invariant"),
    [pytest.param(*one, marks=() if number % 3 == 0 else pytest.mark.long) for number, one in enumerate(CALL_DAMAGES)],
)
def test_damaged_calls(damage: Callable[[Rows], None], invariant: str, make_trace: MakeTrace, rows: Rows) -> None:
    """Whether the trace is looked at as a whole or process by process."""
    tables = add_calls(rows)
    damage(tables)
    found = {finding.invariant: finding.n_places for finding in check_invariants(make_trace(tables, "alone"))}
    assert any(name.startswith(invariant) for name in found)
    processes = [add_calls(small_trace()) for _ in range(4)]
    damage(processes[2])
    sizes = dict.fromkeys(("process", "image", "block", "edge", "call", "entity"), 1000)
    many = make_trace(put_together(processes, sizes), "many")
    whole = check_invariants(many)
    assert check_invariants(many, piece_rows=1) == whole
    assert {finding.invariant: finding.n_places for finding in whole} == found
