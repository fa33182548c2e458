"""Checkpoints of a path as its file has them: places at which reading can begin.

Runs in the controller. Pure. A frame of checkpoints holds four tables, each with the first bytes of all rows first,
then all second ones and so on: their heads, of dtype CHECKPOINT; which counters rose since the checkpoint before (u32,
how much higher than the one before its index is, the first one of each than 0); by how much each did (u64); and the
return addresses (u64) of the open calls that are not as at the checkpoint before in the same frame, the outermost
first.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import PathEventKind

__all__ = [
    "CHECKPOINT",
    "SAMPLE",
    "STATE",
    "Checkpoint",
    "carry_calls",
    "decode_checkpoints",
    "decode_rises",
    "encode_checkpoints",
    "find_states",
    "shuffle",
    "unshuffle",
]

Array = npt.NDArray[Any]

CHECKPOINT: Final = np.dtype(
    [
        ("tsc", "<u8"),
        ("surprise_bytes", "<u8"),
        ("decisions", "<u8"),
        ("symbol_bytes", "<u8"),
        ("depth", "<u8"),
        ("pc", "<u8"),
        ("events", "<u8"),
        ("n_counters", "<u4"),
        ("n_calls", "<u4"),
        ("n_same", "<u4"),
        ("is_after_loss", "<u4"),
    ]
)
"""A place in a path, in front of the instruction at `pc`, at time stamp `tsc`: so many bytes of both streams lie before
it, decisions since the last surprise, and events; `depth` calls are open. `n_counters` counters rose; of its calls
`n_same` are as before and `n_calls` follow. `is_after_loss`: what lies before it and behind the event `lost` was
dropped."""

_LONG: Final = np.dtype("<u8")

SAMPLE: Final = np.dtype([("ns", "<u8"), ("surprise_bytes", "<u8"), ("decisions", "<u8")])
"""By a time (CLOCK_REALTIME) the path had come so far: bytes of surprises, and decisions behind the last one."""

STATE: Final = np.dtype([("event", "<u8"), ("kind", "<u8"), ("value", "<u8")])
"""An event (its number) that changes how the path is read from there on: its `kind` and `value`. They are kept apart so
that not all events have to be read for that."""

_UNLIKE: Final = int(PathEventKind.UNLIKE)
_CODE: Final = int(PathEventKind.CODE)
_LOST: Final = int(PathEventKind.LOST)


@dataclass(frozen=True)
class Checkpoint:
    """One of dtype CHECKPOINT, indices of counters (u32) and by how much they rose (u64), and all open calls (u64)."""

    head: np.void
    index: Array
    rise: Array
    calls: Array


def encode_checkpoints(checkpoints: list[Checkpoint]) -> bytes:
    """The content of a frame."""
    heads = np.array([one.head for one in checkpoints], CHECKPOINT)
    calls = []
    before = np.zeros(0, np.uint64)
    for head, one in zip(heads, checkpoints, strict=True):
        n = min(len(before), len(one.calls))
        differs = np.flatnonzero(before[:n] != one.calls[:n])
        n_same = int(differs[0]) if len(differs) else n
        head["n_counters"], head["n_same"], head["n_calls"] = len(one.index), n_same, len(one.calls) - n_same
        calls.append(one.calls[n_same:])
        before = one.calls
    indexes = [np.concatenate(([np.uint32(0)], one.index)) for one in checkpoints]
    steps = [(index[1:] - index[:-1]).astype("<u4") for index in indexes]
    rises = [one.rise.astype("<u8") for one in checkpoints]
    tables = (heads, np.concatenate(steps), np.concatenate(rises), np.concatenate(calls).astype("<u8"))
    return b"".join(map(shuffle, tables))


def decode_checkpoints(content: bytes, n: int) -> list[Checkpoint]:
    """The checkpoints of a frame of `n`. Raises ValueError if that can't be."""
    heads, steps, rise_bytes, call_bytes = _split(content, n)
    n_counters, index = _add_up(heads, steps)
    rises, new_calls = unshuffle(rise_bytes, _LONG), unshuffle(call_bytes, _LONG)
    counters_end, calls_end = np.cumsum(n_counters), np.cumsum(heads["n_calls"], dtype=np.int64)
    found = []
    calls = new_calls[:0]
    for at, head in enumerate(heads):
        if int(head["n_same"]) > len(calls):
            raise ValueError("a frame of checkpoints contradicts itself")
        counters = slice(counters_end[at] - n_counters[at], counters_end[at])
        own_calls = new_calls[calls_end[at] - int(head["n_calls"]) : calls_end[at]]
        calls = np.concatenate([calls[: int(head["n_same"])], own_calls])
        found.append(Checkpoint(head, index[counters], rises[counters], calls))
    return found


@dataclass(frozen=True)
class FrameRises:
    """How many counters rose at each checkpoint of a frame (i64), their indices (u32) and by how much: the first bytes
    of all, the second ones and so on, a row each. One checkpoint behind the other."""

    n_counters: Array
    index: Array
    rise_bytes: Array

    def rises_at(self, rows: Array) -> Array:
        """By how much (u64) the counters in some rows rose."""
        rises: Array = np.ascontiguousarray(self.rise_bytes[:, rows].T).reshape(-1).view(_LONG)
        return rises


def decode_rises(content: bytes, n: int) -> FrameRises:
    """What rose at the checkpoints of a frame of `n`. Raises ValueError if that can't be."""
    heads, steps, rise_bytes, _ = _split(content, n)
    return FrameRises(*_add_up(heads, steps), np.frombuffer(rise_bytes, np.uint8).reshape(_LONG.itemsize, -1))


def _add_up(heads: Array, steps: bytes) -> tuple[Array, Array]:
    """How many counters rose at each checkpoint (i64), and their indices (u32)."""
    n_counters = heads["n_counters"].astype(np.int64)
    # Each checkpoint's begin anew: less what was reached before. Sums wrap around, and differences back.
    sums = np.cumsum(unshuffle(steps, np.dtype("<u4")), dtype=np.uint32)
    before = np.concatenate(([np.uint32(0)], sums))[np.cumsum(n_counters) - n_counters]
    return n_counters, sums - np.repeat(before, n_counters)


def _split(content: bytes, n: int) -> tuple[Array, bytes, bytes, bytes]:
    """The heads of a frame's checkpoints, and the bytes of its other tables."""
    heads = unshuffle(content[: n * CHECKPOINT.itemsize], CHECKPOINT)
    n_counters, n_calls = (int(heads[name].sum(dtype=np.int64)) for name in ("n_counters", "n_calls"))
    ends = np.cumsum([n * CHECKPOINT.itemsize, 4 * n_counters, 8 * n_counters, 8 * n_calls]).tolist()
    if len(heads) != n or ends[-1] != len(content):
        raise ValueError("a frame of checkpoints contradicts itself")
    return heads, content[ends[0] : ends[1]], content[ends[1] : ends[2]], content[ends[2] :]


def find_states(events: Array, first: int) -> Array:
    """Those of some events, of dtype PATH_EVENT_RECORD, that change how the path is read, of dtype STATE.

    `first` is the number of the first event.
    """
    kinds = events["event_kind"]
    changes = np.flatnonzero((kinds == _UNLIKE) | (kinds == _CODE) | (kinds == _LOST))
    states = np.zeros(len(changes), STATE)
    states["event"] = first + changes
    states["kind"], states["value"] = kinds[changes], events["value"][changes]
    return states


def carry_calls(before: Array, record: np.void, calls: bytes) -> Array:
    """The calls (u64) that are open at a checkpoint: as many of those at the one before as its event, of dtype
    PATH_EVENT_RECORD, says, and what came with it."""
    further = np.frombuffer(calls[: len(calls) // 8 * 8], np.uint64)
    return np.concatenate([before[: min(int(record["value"]), len(before))], further])


def shuffle(rows: Array) -> bytes:
    """The bytes of `rows`, all first ones first, then all second ones: what means the same lies together."""
    return np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.dtype.itemsize).T.tobytes()


def unshuffle(data: bytes, dtype: np.dtype[Any]) -> Array:
    """What `shuffle` made of rows of `dtype`. Raises ValueError if these are not whole rows."""
    if len(data) % dtype.itemsize:
        raise ValueError("rows are cut off")
    columns = np.frombuffer(data, np.uint8).reshape(dtype.itemsize, -1)
    rows: Array = np.ascontiguousarray(columns.T).reshape(-1).view(dtype)
    return rows
