"""Re-codes one thread's path: the streams of most stretches to a fraction of their size, segment by segment.

Pure but for the file that it writes. What the recoder can't take, or can't make smaller, stays as it was recorded; the
rest of the file is compressed harder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Final

from clew.analysis.ordered import PathSpan, Stretches
from clew.binary.path_codec import Stop
from clew.binary.path_segments import encode_segment
from clew.store.path_file import PathFile
from clew.store.path_frames import HEADER_BYTES, FrameKind, compress
from clew.store.path_rewriter import THOROUGH_LEVEL, PathRewriter
from clew.store.path_segments import MAX_SEGMENT_BLOCKS, StoredSegment, encode_stored, sum_streams

__all__ = ["is_same_path", "write_compact"]

SEGMENT_EXECUTIONS: Final = 1 << 22
"""A segment ends at the first checkpoint behind so many blocks: reading one takes some tenths of a second."""
MAX_STRETCH_EXECUTIONS: Final = 1 << 24
"""A stretch of more stays as it was recorded: reading it would take a second and more."""
DENSE_BITS: Final = 0.001
"""For each block executed: what takes no more is kept, as loops are passed over at once where they were recorded."""

_STREAMS: Final = (FrameKind.SURPRISES, FrameKind.SYMBOLS)
_KEPT: Final = (FrameKind.EVENTS, FrameKind.STATES, FrameKind.CHECKPOINTS)

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
        is_enough = done >= SEGMENT_EXECUTIONS or next_one > MAX_STRETCH_EXECUTIONS
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
    if sizes != (len(surprises), len(symbols)) or not 0 < executions <= MAX_STRETCH_EXECUTIONS + SEGMENT_EXECUTIONS:
        return None
    if sum(len(compress(stream)) for stream in (surprises, symbols)) * 8 <= executions * DENSE_BITS:
        return None
    walk = stretches.open_span(span, (surprises, symbols))
    if walk.stop != Stop.ASKED:
        return None
    # Counters may say less than the path.
    segment = encode_segment(walk, min(2 * executions + (1 << 16), MAX_SEGMENT_BLOCKS))
    may_end = (Stop.END,) if span.end_head is not None else (Stop.END, Stop.CUT)
    is_whole = walk.stop in may_end and (segment.n_surprise_bytes, segment.n_symbol_bytes) == sizes
    if not is_whole or segment.n_blocks > MAX_SEGMENT_BLOCKS:
        return None
    checksum = sum_streams(surprises, symbols)
    return StoredSegment(span.first, span.end - span.first, segment.n_blocks, *sizes, checksum, segment.coded.tobytes())


def _size_of_streams(surprises: bytes, symbols: bytes, wanted: int) -> int:
    """How many bytes two streams take as they are; no more exact than it takes to see whether these are more than
    `wanted`."""
    quick = sum(len(compress(stream)) for stream in (surprises, symbols))
    if 2 * quick > 3 * wanted:
        return quick
    return sum(len(compress(stream, THOROUGH_LEVEL)) for stream in (surprises, symbols))
