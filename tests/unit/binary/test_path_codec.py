"""The path codec walks as the oracle does, through paths of every kind; and what is said where its library is none."""

from __future__ import annotations

import ctypes.util
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.binary.path_codec import default_library_path, load_library, read_time_stamp
from clew.errors import PathCodecError
from clew.protocol.codec import Stop
from clew.protocol.codec_layouts import Position
from tests.oracle.path_walk import Action, Block, Cut, Damaged, Ending, Event, PathWalk, Streams
from tests.unit.binary.made_up_paths import MadeUpPath, damaged_paths, paths

# More than a path has that is whole. A damaged one may go round for ever.
MOST_BLOCKS = 1500


def walk_oracle(walk: PathWalk, n: int) -> tuple[list[int], Stop]:
    """The first blocks, at most `n`, and why there are no more."""
    found: list[int] = []
    try:
        found.extend(islice(walk, n))
    except Cut:
        return found, Stop.CUT
    except Damaged:
        return found, Stop.DAMAGED
    return found, Stop.END if len(found) < n else Stop.ASKED


def values_of(place: tuple[Position, int, int]) -> tuple[int, int, int, int, int, int]:
    """The numbers of a place as the codec gives it."""
    position, block, n_events = place
    at = (position.surprise_bytes, position.decisions, position.symbol_bytes, position.depth)
    return *at, block, n_events


def assert_same_walk(path: MadeUpPath, pieces: Sequence[int]) -> None:
    """The codec, asked for `pieces` and then for the rest, goes through the blocks that the oracle goes through."""
    oracle, codec = path.oracle(), path.codec()
    found: list[int] = []
    for n in (*pieces, MOST_BLOCKS):
        found += codec.walk(n).tolist()
    expected, stop = walk_oracle(oracle, sum(pieces) + MOST_BLOCKS)
    assert found == expected
    assert codec.stop == stop
    if stop != Stop.DAMAGED:  # behind a contradiction no place means anything
        assert values_of(codec.place()) == (*oracle.place(), oracle.n_events)


@settings(deadline=None, max_examples=100)
@given(path=paths(), pieces=st.lists(st.integers(0, 500), max_size=3))
def test_recorded_paths(path: MadeUpPath, pieces: list[int]) -> None:
    assert_same_walk(path, pieces)


@settings(deadline=None, max_examples=200)
@given(path=damaged_paths(), pieces=st.lists(st.integers(0, 500), max_size=3))
def test_damaged_paths(path: MadeUpPath, pieces: list[int]) -> None:
    assert_same_walk(path, pieces)


@settings(deadline=None, max_examples=100)
@given(
    path=paths(), sizes=st.lists(st.integers(1, 9), min_size=14, max_size=14), budget=st.integers(0, 5 * MOST_BLOCKS)
)
def test_advancing_is_walking(path: MadeUpPath, sizes: list[int], budget: int) -> None:
    oracle, codec = path.oracle(), path.codec(sizes)
    blocks, stop = walk_oracle(oracle, MOST_BLOCKS)
    assume(stop == Stop.END)
    done = [0, 0]
    for block in blocks:
        if done[0] + sizes[block] > budget:
            stop = Stop.ASKED
            break
        done = [done[0] + sizes[block], done[1] + 1]
    assert codec.advance(budget) == tuple(done)
    assert codec.stop == stop
    if stop == Stop.END:
        assert values_of(codec.place()) == (*oracle.place(), oracle.n_events)
    assert codec.walk(MOST_BLOCKS).tolist() == blocks[done[1] :]


LOOP = [Block(0x1000, 0x1010, Ending.CONDITIONAL, target=0, next=1, is_taken=True), Block(0x1010, 0x1020, Ending.STOP)]
LEADS_BACK = [Block(0x1000, 0x1010, Ending.FALL_THROUGH, next=0)]


@pytest.mark.parametrize(
    ("blocks", "streams", "found", "stop"),
    [
        (LOOP, Streams(b"", b"", [], 9000), [0] * MOST_BLOCKS, Stop.ASKED),
        (LOOP, Streams(b"\3", b"", [Event((1, 0, 0, 0, 1), Action.END, 0, 0)], 0), [0, 0, 0], Stop.END),
        (LOOP, Streams(b"", b"", [], 2), [0, 0], Stop.CUT),
        (LOOP, Streams(b"\3", b"", [], 0), [0, 0, 0, 1], Stop.CUT),
        (LOOP, Streams(b"\3", b"\0", [], 0), [0, 0, 0, 1], Stop.DAMAGED),
        (LOOP, Streams(b"\0\1", b"", [], 2), [0, 0], Stop.DAMAGED),
        (LOOP, Streams(b"", b"", [Event((0, 1, 0, 0, 0), Action.EXPECT, 2, 1)], 2), [0], Stop.DAMAGED),
        (LEADS_BACK, Streams(b"", b"", [], 0), [], Stop.DAMAGED),
    ],
    ids=["asked", "end", "cut", "killed", "nowhere", "part-of-a-surprise", "no-such-branch", "for-ever"],
)
def test_every_reason_to_stop(blocks: list[Block], streams: Streams, found: list[int], stop: Stop) -> None:
    path = MadeUpPath(blocks, streams, start=0, max_depth=4)
    assert walk_oracle(path.oracle(), MOST_BLOCKS) == (found, stop)
    codec = path.codec()
    assert codec.walk(MOST_BLOCKS).tolist() == found
    assert codec.stop == stop


@pytest.mark.parametrize(("n_calls", "n_left"), [(1023, 0), (1024, 1025)])
def test_how_far_down_a_return_elsewhere_looks(n_calls: int, n_left: int) -> None:
    """A function that calls itself so often returns to where it was called first."""
    blocks = [
        Block(0x1000, 0x1010, Ending.CALL, target=2, next=1),
        Block(0x1010, 0x1020, Ending.STOP),
        Block(0x1020, 0x1030, Ending.CONDITIONAL, target=3, next=4, is_taken=True),
        Block(0x1030, 0x1040, Ending.CALL, target=2, next=4),
        Block(0x1040, 0x1050, Ending.RETURN),
    ]
    surprise = b"\0" + (2 * n_calls + 2).to_bytes(2, "little")
    events = [
        Event((3, 0, 0, n_calls + 1, 4), Action.ELSEWHERE, 4, 1),
        Event((3, 0, 0, n_left, 1), Action.END, 1, 0),
    ]
    path = MadeUpPath(blocks, Streams(surprise, b"", events, 0), start=0, max_depth=2000)
    expected = [0, 2, *[3, 2] * n_calls, 4]
    assert walk_oracle(path.oracle(), 2 * len(expected)) == (expected, Stop.END)
    codec = path.codec()
    assert codec.walk(2 * len(expected)).tolist() == expected
    assert codec.stop == Stop.END


def test_a_missing_library_is_told_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(PathCodecError, match="no such file; reinstall clew") as caught:
        load_library(tmp_path / "none.so")
    assert caught.value.path == tmp_path / "none.so"


@pytest.mark.parametrize("content", [b"", b"no library", b"\x7fELF\2\1\1" + bytes(100)])
def test_what_is_no_library_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "codec.so"
    path.write_bytes(content)
    with pytest.raises(PathCodecError, match="; reinstall clew"):
        load_library(path)


def test_a_library_without_the_functions_is_refused() -> None:
    name = ctypes.util.find_library("c")
    assert name is not None
    mapped = Path("/proc/self/maps").read_text().split()
    other = next(Path(path) for path in mapped if path.endswith(f"/{name}"))
    with pytest.raises(PathCodecError, match="clew_path_walk_bytes is not in it"):
        load_library(other)


def test_the_library_is_beside_the_package() -> None:
    assert default_library_path().parts[-3:] == ("clew", "_runtime", "libclew-pathcodec.so")


def test_time_stamps_rise() -> None:
    first = read_time_stamp()
    assert 0 < first < read_time_stamp()
