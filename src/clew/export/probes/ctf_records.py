"""Events as a CTF stream holds them: tables made bytes, all rows of a column at once.

Pure. A record is an event's header, its contexts and its fields (ctf_layout.py), little endian, without gaps. Times are
filled in later, as a header has the lower half of a time alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from clew.dataclass import dataclass
from clew.export.probes.ctf_layout import MISSING_TEXT, NONE_MISSING, CtfStruct, Form, Member
from clew.export.probes.event_types import PLACE
from clew.export.probes.tsdl import PROCNAME_BYTES

__all__ = ["TIME_AT", "TIME_BYTES", "Records", "encode_rows"]

Array = npt.NDArray[Any]

TIME_AT: Final = 2
"""Where in a record its time is (the header is struct event_header_large, compact)."""
TIME_BYTES: Final = 4
_HEAD: Final = np.dtype(
    [("id", "<u2"), ("time", "<u4"), ("vpid", "<i4"), ("vtid", "<i4"), ("procname", f"S{PROCNAME_BYTES}")]
)


@dataclass(frozen=True)
class _Piece:
    """Something that all records have: `rows` of shape (n, bytes), u8; or stretches of `data`, which begin at
    `starts`. `lengths` of what is stored, where that may differ: behind a stretch zeros follow."""

    rows: Array | None
    data: Array
    starts: Array
    lengths: Array
    stored: Array


@dataclass(frozen=True)
class Records:
    """Records one behind the other: `data` (u8), where each begins and, last, where all end (i64)."""

    data: Array
    bounds: Array

    def put_into(self, target: Array, starts: Array) -> None:
        """Copy each record to where in `target` it is to begin."""
        lengths = np.diff(self.bounds)
        if not len(lengths):
            return
        if (lengths == lengths[0]).all():
            _put_rows(target, starts, self.data.reshape(len(lengths), -1))
        else:
            _copy_stretches(self.data, self.bounds[:-1], target, starts, lengths)


def encode_rows(rows: pa.RecordBatch, event_id: int, contexts: CtfStruct, fields: CtfStruct) -> Records:
    """The records of a type's rows."""
    n = rows.num_rows
    columns = rows.columns[len(PLACE) :]
    middle = len(contexts.members)
    pieces = [_encode_head(rows, event_id)]
    pieces += _encode_struct(contexts, columns[:middle], n)
    pieces += _encode_struct(fields, columns[middle:], n)
    return _join(_merge_rows(pieces), n)


def _encode_head(rows: pa.RecordBatch, event_id: int) -> _Piece:
    head = np.zeros(rows.num_rows, _HEAD)
    head["id"] = event_id
    pid, tid, comm = (rows.column(PLACE.get_field_index(name)) for name in ("pid", "tid", "comm"))
    head["vpid"], head["vtid"] = (_numbers(column, "<u4").astype("<i4") for column in (pid, tid))
    words = comm.dictionary_encode()
    names = [name.split(b"\0")[0][: PROCNAME_BYTES - 1] for name in words.dictionary.to_pylist()]
    if names:
        head["procname"] = np.array(names, _HEAD["procname"])[_numbers(words.indices, "<i8")]
    return _rows_piece(head)


def _encode_struct(struct: CtfStruct, columns: Sequence[pa.Array], n: int) -> Iterator[_Piece]:
    for member, column in zip(struct.members, columns, strict=True):
        yield from _encode_member(member, column)
    if struct.missing:
        yield _encode_missing(struct, columns, n)


def _encode_member(member: Member, column: pa.Array) -> Iterator[_Piece]:
    if member.form is Form.STRING:
        yield _encode_text(column)
    elif member.form is Form.SEQUENCE:
        is_binary = pa.types.is_binary(column.type)
        data, starts, lengths = _binary_stretches(column) if is_binary else _list_stretches(column)
        yield _rows_piece((lengths // int(member.number.dtype[2:])).astype("<u4"))
        yield _Piece(None, data, starts, lengths, lengths)
    elif member.form is Form.STRUCT:
        kind = np.dtype([(f"f{index}", member.number.dtype) for index in range(len(member.names))])
        rows = np.zeros(len(column), kind)
        there = ~_nulls(column)
        for index in range(len(member.names)):
            rows[f"f{index}"] = np.where(there, _numbers(column.field(index), member.number.dtype), 0)
        yield _rows_piece(rows)
    else:
        yield _rows_piece(_numbers(column, member.number.dtype))


def _encode_text(column: pa.Array) -> _Piece:
    """Texts up to their first zero byte, and one behind; of missing ones MISSING_TEXT."""
    if column.null_count:
        column = pc.fill_null(column, MISSING_TEXT.encode())
    data, starts, lengths = _binary_stretches(column)
    zeros = np.flatnonzero(data == 0)
    if len(zeros):
        # The first zero from each start on, or what is behind all.
        first = np.append(zeros, len(data))[np.searchsorted(zeros, starts)]
        lengths = np.minimum(lengths, first - starts)
    return _Piece(None, data, starts, lengths, lengths + 1)


def _encode_missing(struct: CtfStruct, columns: Sequence[pa.Array], n: int) -> _Piece:
    """The names of what is missing, with commas between them."""
    nulls = np.zeros((n, len(columns)), bool)
    for index, column in enumerate(columns):
        nulls[:, index] = _nulls(column)
    if not nulls.any():
        text = np.frombuffer(NONE_MISSING.encode() + b"\0", np.uint8)
        return _rows_piece(np.tile(text, (n, 1)))
    packed = np.packbits(nulls, axis=1)
    _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    # Readers show names without the underscore in front.
    texts = [
        ",".join(member.name[1:] for member, is_null in zip(struct.members, nulls[row], strict=True) if is_null)
        or NONE_MISSING
        for row in first.tolist()
    ]
    return _encode_text(pa.array([text.encode() for text in texts], pa.binary()).take(pa.array(which.reshape(-1))))


def _nulls(column: pa.Array) -> Array:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), bool)


def _numbers(column: pa.Array, dtype: str) -> Array:
    """The numbers of a column, 0 where there are none."""
    if column.null_count:
        column = pc.fill_null(column, 0)
    numbers: Array = column.to_numpy(zero_copy_only=False)
    return numbers.astype(dtype, copy=False)


def _binary_stretches(column: pa.Array) -> tuple[Array, Array, Array]:
    """The bytes of a column of binary, where each value begins, and how long it is; null is empty."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    if not len(bounds):
        bounds = np.zeros(1, np.int64)
    # Of a slice no more than what is in it.
    content = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]] if data is not None else np.zeros(0, np.uint8)
    return content, bounds[:-1] - bounds[0], np.where(_nulls(column), 0, np.diff(bounds))


def _list_stretches(column: pa.Array) -> tuple[Array, Array, Array]:
    """The same of a column of lists of u64, in bytes."""
    values = np.ascontiguousarray(_numbers(column.values, "<u8"))
    bounds = column.offsets.to_numpy().astype(np.int64) if len(column) else np.zeros(1, np.int64)
    return values.view(np.uint8), 8 * bounds[:-1], np.where(_nulls(column), 0, 8 * np.diff(bounds))


def _rows_piece(rows: Array) -> _Piece:
    none = np.zeros(0, np.int64)
    n_bytes = rows.dtype.itemsize * (rows.shape[1] if rows.ndim > 1 else 1)
    flat = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), n_bytes)
    return _Piece(flat, np.zeros(0, np.uint8), none, none, none)


def _merge_rows(pieces: Sequence[_Piece]) -> list[_Piece]:
    """The same, with what is of one length for all records and follows each other in one piece."""
    merged: list[_Piece] = []
    run: list[Array] = []
    for piece in pieces:
        if piece.rows is not None:
            run.append(piece.rows)
            continue
        merged += [_rows_of(run), piece] if run else [piece]
        run = []
    return [*merged, _rows_of(run)] if run else merged


def _rows_of(run: Sequence[Array]) -> _Piece:
    none = np.zeros(0, np.int64)
    rows = run[0] if len(run) == 1 else np.concatenate(run, axis=1)
    return _Piece(rows, np.zeros(0, np.uint8), none, none, none)


def _join(pieces: Sequence[_Piece], n: int) -> Records:
    lengths = np.zeros(n, np.int64)
    for piece in pieces:
        lengths += piece.stored if piece.rows is None else piece.rows.shape[1]
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    [first, *others] = pieces
    if not others and first.rows is not None:
        return Records(first.rows.reshape(-1), bounds)
    data = np.zeros(int(bounds[-1]), np.uint8)
    at = bounds[:-1].copy()
    for piece in pieces:
        if piece.rows is None:
            _copy_stretches(piece.data, piece.starts, data, at, piece.lengths)
            at += piece.stored
        else:
            _put_rows(data, at, piece.rows)
            at += piece.rows.shape[1]
    return Records(data, bounds)


def _put_rows(target: Array, starts: Array, rows: Array) -> None:
    """Copy rows of one length to where each is to begin."""
    if rows.size:
        windows = np.lib.stride_tricks.sliding_window_view(target, rows.shape[1], writeable=True)
        windows[starts] = rows


def _copy_stretches(source: Array, starts: Array, target: Array, to: Array, lengths: Array) -> None:
    """Copy stretches of different lengths."""
    n = int(lengths.sum())
    if n:
        behind = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        target[np.repeat(to, lengths) + behind] = source[np.repeat(starts, lengths) + behind]
