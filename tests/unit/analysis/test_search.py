"""Searches in code: against what a search by hand of every block finds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.graph.search import CodeSearch, Found, parse_bytes, split_text
from clew.binary.architectures.x86_64 import X86_64
from clew.binary.disassembly import disassemble
from clew.errors import UsageError
from tests.unit.small_trace import BASE, MakeTrace, Rows, repeated_trace, write_trace

LONG = 60.0


@pytest.fixture
def code(make_trace: MakeTrace, rows: Rows) -> CodeSearch:
    return CodeSearch(ProcessGraph(make_trace(rows), 0))


def places(found: Found) -> list[tuple[int, str]]:
    assert found.stopped is None
    return [(hit.address - BASE, hit.text) for hit in found.hits]


@pytest.mark.parametrize("offset", range(0x50))
def test_any_address_in_a_block(code: CodeSearch, rows: Rows, offset: int) -> None:
    inside = [row for row in rows["blocks"] if row["offset"] <= offset < row["offset"] + row["size_bytes"]]
    found = code.find_address(BASE + offset, 10)
    assert len(found.hits) == len(inside)
    as_offset = code.find_address(offset, 10)
    assert [hit.block for hit in as_offset.hits] == [hit.block for hit in found.hits]
    assert all(hit.address == BASE + offset for hit in [*found.hits, *as_offset.hits])


def test_addresses_that_no_block_has(code: CodeSearch) -> None:
    for address in (0, (1 << 64) - 1, 1 << 63, BASE - 1):
        assert code.find_address(address, 10).hits == []


def test_bytes_with_gaps(code: CodeSearch) -> None:
    assert places(code.find_bytes(parse_bytes("31 c0"), 10, LONG)) == [(0x40, "31 c0")]
    assert places(code.find_bytes(parse_bytes("0f??"), 10, LONG)) == [(0x1B, "0f 05")]
    # A block ends with its last byte, also where others' bytes follow.
    assert places(code.find_bytes(parse_bytes("75 f6 90"), 10, LONG)) == []
    assert places(code.find_bytes(parse_bytes("c3 ??"), 10, LONG)) == []
    # The one that was executed more is first.
    assert places(code.find_bytes(parse_bytes("90"), 10, LONG)) == [(0x10, "90"), (0x1A, "90")]
    assert [hit.count for hit in code.find_bytes(parse_bytes("90"), 10, LONG).hits] == [3, 1]


def test_enough_is_said(code: CodeSearch) -> None:
    assert code.find_bytes(parse_bytes("90"), 1, LONG).stopped == "limit"
    assert code.find_bytes(parse_bytes("90"), 2, LONG).stopped is None
    assert code.find_text(["nop"], 1, LONG).stopped == "limit"
    assert code.find_text(["nop"], 2, LONG).stopped is None


def test_no_time_is_said(code: CodeSearch) -> None:
    assert code.find_text(["nop"], 10, -1.0).stopped == "time"
    assert code.find_bytes(parse_bytes("90 90"), 10, -1.0).stopped == "time"


def test_text_of_instructions(code: CodeSearch) -> None:
    assert places(code.find_text(split_text("XOR"), 10, LONG)) == [(0x40, "xor eax, eax")]
    assert places(code.find_text(split_text("xor eax,eax"), 10, LONG)) == [(0x40, "xor eax, eax")]
    assert places(code.find_text(split_text("xor eax eax"), 10, LONG)) == [(0x40, "xor eax, eax")]
    assert places(code.find_text(split_text("xor eax eax eax"), 10, LONG)) == []
    # Not within a word, and no address.
    assert places(code.find_text(split_text("or"), 10, LONG)) == []
    assert places(code.find_text(split_text("400010 nop"), 10, LONG)) == []
    # Asked again it is the same.
    assert places(code.find_text(split_text("xor"), 10, LONG)) == [(0x40, "xor eax, eax")]


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_bytes_as_by_hand(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    rows = repeated_trace(2)
    contents = [
        data.draw(
            st.binary(min_size=len(row["bytes"]), max_size=len(row["bytes"])).map(lambda b: bytes(x & 3 for x in b))
        )
        for row in rows["blocks"]
    ]
    for row, content in zip(rows["blocks"], contents, strict=True):
        row["bytes"] = content
    pattern = data.draw(st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=4))
    if all(byte is None for byte in pattern):
        pattern[0] = 0
    trace = write_trace(rows, tmp_path_factory.mktemp("search") / "t.clew")
    for process_id in (0, 1):
        graph = ProcessGraph(trace, process_id)
        found = CodeSearch(graph).find_bytes(pattern, 100, LONG)
        expected = {}
        for row in rows["blocks"]:
            content = row["bytes"]
            at = [
                offset
                for offset in range(len(content) - len(pattern) + 1)
                if all(want is None or content[offset + i] == want for i, want in enumerate(pattern))
            ]
            if row["process_id"] == process_id and at:
                expected[row["app_pc"] + at[0]] = len(at)
        assert {hit.address: hit.count for hit in found.hits} == expected
        assert all(int(graph.app_pc[hit.block]) <= hit.address for hit in found.hits)


def test_text_as_by_hand(code: CodeSearch, rows: Rows) -> None:
    """Every word that an instruction begins with is found in the blocks that have it, and in no other."""
    by_block = {
        row["app_pc"]: {one.text.split()[0] for one in disassemble(row["bytes"], row["app_pc"], X86_64)}
        for row in rows["blocks"]
    }
    for word in set().union(*by_block.values()):
        found = code.find_text([word], 10, LONG)
        starts = {int(code.find_address(hit.address, 1).hits[0].block) for hit in found.hits}
        assert len(starts) == sum(word in words for words in by_block.values())


@pytest.mark.parametrize("text", ["", "4", "zz", "48 8", "??", "?? ??", "+1", "0x48", "４８", "90" * 65])
def test_bytes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["", "  ", ",", "a " * 13, "a" * 201])
def test_text_that_is_none(text: str) -> None:
    with pytest.raises(UsageError):
        split_text(text)
