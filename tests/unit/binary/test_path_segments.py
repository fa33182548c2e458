"""Segments of a path, encoded and decoded through the loaded library: a loop with an indirect call in it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from clew.binary.path_codec import PathCode, PathStart, PathState, PathStreams, PathWalk
from clew.binary.path_segments import PathSegment, decode_segment, encode_segment
from clew.protocol.codec import NOWHERE, Action, Ending, Stop
from clew.protocol.codec_layouts import BLOCK, EVENT

_N_ROUNDS = 5000


def _make_code() -> PathCode:
    """0: goes on to 1, or round to itself; 1: calls 2 or 3; both return to 4, which jumps back to 0."""
    rows = [
        (0x1000, 0x1010, 0, 1, 0, 0, 3, Ending.CONDITIONAL, 1),
        (0x1010, 0x1020, NOWHERE, 4, 0, 2, 2, Ending.INDIRECT_CALL, 0),
        (0x2000, 0x2010, NOWHERE, NOWHERE, 0, 0, 1, Ending.RETURN, 0),
        (0x3000, 0x3010, NOWHERE, NOWHERE, 0, 0, 1, Ending.RETURN, 0),
        (0x1020, 0x1030, 0, NOWHERE, 0, 0, 1, Ending.BACK_JUMP, 0),
    ]
    blocks = np.zeros(len(rows), BLOCK)
    for block, row in zip(blocks, rows, strict=True):
        for name, value in zip(BLOCK.names or (), row, strict=False):
            block[name] = value
    return PathCode(blocks, np.array([2, 3], np.uint32))


def _make_streams() -> PathStreams:
    """Each round goes 1 to 9 times through block 0, and then to either function."""
    source = random.Random(7)
    surprises = bytearray()
    symbols = bytearray()
    jumps = 0
    for _ in range(_N_ROUNDS):
        surprises.append(source.choice((1, 2, 9)) + jumps)
        symbols.append(source.choice((0, 0, 0, 1)))
        jumps = 1
    events = np.zeros(1, EVENT)
    events[0] = (len(surprises), 1, len(symbols), 0, 0, 0, NOWHERE, Action.END, b"")
    return PathStreams(bytes(surprises), bytes(symbols), events, 1)


def _encode_all(code: PathCode, streams: PathStreams, n_items: int) -> list[tuple[PathState, PathSegment]]:
    walk = PathWalk(code, streams, PathStart(0), max_depth=16)
    segments = []
    while walk.stop == Stop.ASKED:
        state = walk.state()
        segments.append((state, encode_segment(walk, n_items)))
    assert walk.stop == Stop.END
    return segments


@pytest.mark.parametrize("n_items", [100, 3001, 1 << 24])
def test_segments_give_the_streams_back(n_items: int) -> None:
    code, streams = _make_code(), _make_streams()
    surprises = symbols = b""
    decisions = 0
    n_blocks = 0
    for state, segment in _encode_all(code, streams, n_items):
        found = decode_segment(state, code.targets, streams.events[state.n_events :], segment, max_depth=16)
        surprises += found[0].tobytes()
        symbols += found[1].tobytes()
        decisions = found[2].decisions
        n_blocks += segment.n_blocks
    assert (surprises, symbols, decisions) == (streams.surprises, streams.symbols, streams.decisions)
    assert n_blocks == len(PathWalk(code, streams, PathStart(0)).walk(1 << 20))


def test_a_segment_is_little_larger_than_what_it_tells() -> None:
    [(_, segment)] = _encode_all(_make_code(), _make_streams(), 1 << 24)
    # log2(3) bits for each number of rounds, and the entropy of 3 to 1 for each call.
    assert len(segment.coded) * 8 < 1.2 * _N_ROUNDS * (1.585 + 0.811)


def test_what_does_not_fit_is_refused() -> None:
    code, streams = _make_code(), _make_streams()
    [(state, segment)] = _encode_all(code, streams, 1 << 24)
    damaged = replace(segment, coded=segment.coded[: len(segment.coded) // 2])
    with pytest.raises(ValueError, match="contradicts"):
        decode_segment(state, code.targets, streams.events, damaged, max_depth=16)
    with pytest.raises(ValueError, match="contradicts"):
        decode_segment(state, code.targets[:1], streams.events, segment, max_depth=16)


def test_nothing_is_encoded_behind_the_end() -> None:
    walk = PathWalk(_make_code(), _make_streams(), PathStart(0))
    encode_segment(walk, 1 << 24)
    with pytest.raises(ValueError, match="END"):
        encode_segment(walk, 1)
