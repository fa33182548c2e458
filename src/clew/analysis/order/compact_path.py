"""Re-codes one thread's path: the streams of most stretches to a fraction of their size, segment by segment.

Pure but for the file that it writes. What the recoder can't take, or can't make smaller, stays as it was recorded; the
rest of the file is compressed harder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.analysis.order.ordered import PathSpan, Stretches
from clew.binary.path_codec import PathWalk
from clew.binary.path_segments import encode_segment
from clew.protocol.codec import NOWHERE, Stop
from clew.store.path_file import PathFile
from clew.store.path_frames import HEADER_BYTES, FrameKind, compress
from clew.store.path_rewriter import THOROUGH_LEVEL, PathRewriter
from clew.store.path_segments import (
    MAX_SEGMENT_BLOCKS,
    NO_PC,
    PART,
    StoredPart,
    StoredSegment,
    encode_stored,
    sum_streams,
)

__all__ = ["is_same_path", "write_compact"]

SEGMENT_EXECUTIONS: Final = 1 << 18
"""A segment of several stretches ends at the first checkpoint behind so many blocks, and has at most twice as many:
reading one takes some hundredths of a second."""
PART_ITEMS: Final = 1 << 18
"""A stretch of more is cut into parts of so many conditional and indirect branches."""
DENSE_BITS: Final = 0.001
"""For each block executed: what takes no more is kept, as loops are passed over at once where they were recorded."""

_BLOCKS_AT_ONCE: Final = 1 << 20

_STREAMS: Final = (FrameKind.SURPRISES, FrameKind.SYMBOLS)
_KEPT: Final = (FrameKind.EVENTS, FrameKind.STATES, FrameKind.CHECKPOINTS, FrameKind.SAMPLES)

Array = npt.NDArray[Any]
Tell = Callable[[int], None]


@dataclass(frozen=True)
class _Group:
    """Stretches from number `first` up to `end` that may become a segment; `executions` of blocks are in them."""

    first: int
    end: int
    executions: int


def write_compact(stretches: Stretches, target: Path, tell: Tell) -> int:
    """Write the path of `stretches` to the file `target`, compact; its size. `tell` hears of executions of blocks done.

    Raises TraceDamagedError if the path can't be read, OSError if the file can't be written.
    """
    file = stretches.file
    with PathRewriter(target) as rewriter:
        for group in _iter_groups(stretches):
            _write_group(stretches, group, rewriter)
            tell(group.executions)
        for kind in _KEPT:
            for frame, content in file.iter_contents(kind):
                rewriter.add(kind, frame.start, frame.size, content)
        return rewriter.finish(replace(file.facts, is_compact=True), file.places)


def is_same_path(one: Stretches, other: Stretches) -> bool:
    """Whether two files hold the same path, to the byte. Raises TraceDamagedError."""
    facts = replace(other.file.facts, is_compact=one.file.facts.is_compact)
    if one.file.facts != facts or one.file.places.tobytes() != other.file.places.tobytes():
        return False
    if not all(_is_kept(one.file, other.file, kind) for kind in _KEPT):
        return False
    return all(one.read_streams(number) == other.read_streams(number) for number in range(len(one)))


def _is_kept(one: PathFile, other: PathFile, kind: FrameKind) -> bool:
    pairs = zip_longest(one.iter_contents(kind), other.iter_contents(kind))
    return all(
        a is not None and b is not None and (a[0].start, a[0].size, a[1]) == (b[0].start, b[0].size, b[1])
        for a, b in pairs
    )


def _iter_groups(stretches: Stretches) -> Iterator[_Group]:
    executions = [stretch.executions for stretch in stretches] + [stretches.file.facts.block_executions]
    first = 0
    for number in range(len(stretches)):
        done = executions[number + 1] - executions[first]
        is_last = number + 1 == len(stretches)
        next_one = 0 if is_last else executions[number + 2] - executions[number + 1]
        is_enough = done >= SEGMENT_EXECUTIONS or done + next_one > 2 * SEGMENT_EXECUTIONS
        if is_last or is_enough or _is_apart(stretches, number):
            yield _Group(first, number + 1, done)
            first = number + 1


def _is_apart(stretches: Stretches, number: int) -> bool:
    """Whether what comes behind a stretch begins anew, or the stretch before that does not reach up to it."""
    ahead = range(number + 1, min(number + 3, len(stretches)))
    return any(stretches[one].is_after_loss for one in ahead)


def _write_group(stretches: Stretches, group: _Group, rewriter: PathRewriter) -> None:
    span = stretches.span(group.first, group.end)
    parts = [stretches.read_streams(number) for number in range(group.first, group.end)]
    surprises, symbols = (b"".join(part[stream] for part in parts) for stream in range(len(_STREAMS)))
    segment = _encode(stretches, span, group.executions, surprises, symbols)
    if segment is not None:
        content = encode_stored(segment)
        if len(content) + HEADER_BYTES < _size_of_streams(surprises, symbols, len(content)):
            rewriter.add(FrameKind.SEGMENTS, segment.first, segment.n_stretches, content)
            return
    elif group.end - group.first > 1:
        # One stretch of them may be what can't be taken.
        middle = (group.first + group.end) // 2
        executions = stretches[middle].executions - stretches[group.first].executions
        _write_group(stretches, _Group(group.first, middle, executions), rewriter)
        _write_group(stretches, _Group(middle, group.end, group.executions - executions), rewriter)
        return
    start, end = span.position, span.end_position
    bounds = ((start.surprise_bytes, end.surprise_bytes), (start.symbol_bytes, end.symbol_bytes))
    for kind, (low, high) in zip(_STREAMS, bounds, strict=True):
        for at, data in stretches.file.iter_bytes(kind, low, high):
            if data:
                rewriter.add(kind, at, len(data), data)


def _encode(
    stretches: Stretches, span: PathSpan, executions: int, surprises: bytes, symbols: bytes
) -> StoredSegment | None:
    """The segment of some stretches whose streams are these; None if there can't be one."""
    start, end = span.position, span.end_position
    sizes = (end.surprise_bytes - start.surprise_bytes, end.symbol_bytes - start.symbol_bytes)
    if sizes != (len(surprises), len(symbols)) or not 0 < executions <= MAX_SEGMENT_BLOCKS:
        return None
    if sum(len(compress(stream)) for stream in (surprises, symbols)) * 8 <= executions * DENSE_BITS:
        return None
    walk = stretches.open_span(span, (surprises, symbols))
    # Counters may say less than the path.
    n_items = min(2 * executions + (1 << 16), MAX_SEGMENT_BLOCKS)
    if executions > 2 * SEGMENT_EXECUTIONS:
        n_items = PART_ITEMS
    parts: list[StoredPart] = []
    position, n_blocks = start, 0
    while walk.stop == Stop.ASKED and n_blocks <= MAX_SEGMENT_BLOCKS:
        head, calls = np.zeros(1, PART)[0], np.zeros(0, np.uint64)
        if parts:
            calls = _describe(stretches, span, walk, head)
        segment = encode_segment(walk, n_items)
        at = (position.surprise_bytes - start.surprise_bytes, position.symbol_bytes - start.symbol_bytes)
        part_sizes = (segment.n_surprise_bytes, segment.n_symbol_bytes)
        head["n_blocks"], head["n_surprise_bytes"], head["n_symbol_bytes"] = segment.n_blocks, *part_sizes
        own = (stream[one : one + size] for stream, one, size in zip((surprises, symbols), at, part_sizes, strict=True))
        head["checksum"] = sum_streams(*own)
        parts.append(StoredPart(head, calls, segment.coded.tobytes()))
        position, _, _ = walk.place()
        n_blocks += segment.n_blocks
    may_end = (Stop.END,) if span.end_head is not None else (Stop.END, Stop.CUT)
    read = (position.surprise_bytes - start.surprise_bytes, position.symbol_bytes - start.symbol_bytes)
    is_whole = bool(parts) and walk.stop in may_end and read == sizes and n_blocks <= MAX_SEGMENT_BLOCKS
    if not is_whole or (len(parts) > 1 and span.end - span.first > 1):
        return None
    counted, counts = _count(stretches, stretches.open_span(span, (surprises, symbols)), parts)
    return StoredSegment(span.first, span.end - span.first, parts, counted, counts)


def _describe(stretches: Stretches, span: PathSpan, walk: PathWalk, head: np.void) -> Array:
    """Write to `head` where a walk along `span` is; the calls open there."""
    state = walk.state()
    for name in ("surprise_bytes", "decisions", "symbol_bytes", "depth"):
        head[name] = getattr(state.position, name)
    head["pc"] = NO_PC if state.block == NOWHERE else stretches.code.code.blocks["pc"][state.block]
    head["events"] = stretches.find_event(span, state.n_events)
    return state.addresses


def _count(stretches: Stretches, walk: PathWalk, parts: list[StoredPart]) -> tuple[Array, Array]:
    """Which blocks (u32) were executed in front of the last part, and how often (u32, one row a block) in each part;
    each part but the first is told of the instructions before it."""
    counts = np.zeros((len(parts) - 1, len(stretches.code)), np.uint32)
    for number, (part, behind) in enumerate(pairwise(parts)):
        left = part.n_blocks
        while left > 0:
            blocks = walk.walk(min(left, _BLOCKS_AT_ONCE))
            counts[number] += np.bincount(blocks, minlength=counts.shape[1]).astype(np.uint32)
            left = left - len(blocks) if len(blocks) else 0
        executed = int((counts[number] * stretches.code.n_instructions).sum())
        behind.head["instructions"] = int(part.head["instructions"]) + executed
    counted = np.flatnonzero(counts.any(axis=0))
    return counted.astype(np.uint32), counts.T[counted]


def _size_of_streams(surprises: bytes, symbols: bytes, wanted: int) -> int:
    """How many bytes two streams take as they are; no more exact than it takes to see whether these are more than
    `wanted`."""
    quick = sum(len(compress(stream)) for stream in (surprises, symbols))
    if 2 * quick > 3 * wanted:
        return quick
    return sum(len(compress(stream, THOROUGH_LEVEL)) for stream in (surprises, symbols))
