"""Columns of tables out of numpy arrays and lists of strings, and back.

Runs in the controller. Arrow's own conversions load its kernels, or look for pandas first, which takes longer than
assembling or reading a small trace; these go by the arrays' buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = [
    "Array",
    "binaries",
    "booleans",
    "byte_lengths",
    "byte_values",
    "distinct",
    "numbers",
    "optional_numbers",
    "repeated_texts",
    "text_lists",
    "texts",
    "to_numpy",
    "to_words",
    "words",
]

Array = npt.NDArray[Any]


def numbers(values: Array | Sequence[int], kind: pa.DataType, is_null: Array | None = None) -> pa.Array:
    """A column of integers of type `kind`; null where `is_null`."""
    data = np.ascontiguousarray(values, dtype=np.dtype(str(kind)))
    return pa.Array.from_buffers(kind, len(data), [_validity(is_null), pa.py_buffer(data)])


def optional_numbers(values: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """A column of integers of type `kind`, of a list with None for null."""
    is_null = np.array([value is None for value in values], bool)
    return numbers([value or 0 for value in values], kind, is_null)


def booleans(values: Array) -> pa.Array:
    """A column of booleans."""
    bits = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])


def texts(values: Sequence[str | None]) -> pa.Array:
    """A column of strings; null where None."""
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    is_null = np.array([value is None for value in values], bool)
    buffers = [_validity(is_null), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def repeated_texts(known: Sequence[str], index: Array) -> pa.Array:
    """A column of strings of which few are different: `known[index]`."""
    encoded = [text.encode() for text in known]
    length = np.array([len(text) for text in encoded], np.int64)
    offsets = np.zeros(len(index) + 1, np.int64)
    np.cumsum(length[index], out=offsets[1:])
    # Texts are joined faster than their bytes are gathered by number.
    data = b"".join(map(encoded.__getitem__, index.tolist()))
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(index), buffers)


def text_lists(values: Sequence[Sequence[str]]) -> pa.Array:
    """A column of lists of strings."""
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(row) for row in values], out=offsets[1:])
    flat = texts([text for row in values for text in row])
    return pa.ListArray.from_arrays(numbers(offsets, pa.int32()), flat)


def words(indices: Array, known: Sequence[str], is_null: Array | None = None) -> pa.DictionaryArray:
    """A column of few different strings: `known[indices]`; null where `is_null`."""
    return pa.DictionaryArray.from_arrays(numbers(indices, pa.int32(), is_null), texts(known))


def binaries(data: Array, offsets: Array) -> pa.Array:
    """A column of bytes: from `offsets[i]` up to `offsets[i + 1]` of `data`, which is under 2 GiB."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def to_numpy(column: pa.ChunkedArray | pa.Array, missing: int = -1) -> Array:
    """A column of integers or booleans as an array; `missing` where it is null (of an unsigned type, its low bits)."""
    array = _to_array(column)
    n, offset = len(array), array.offset
    validity, data = array.buffers()
    if pa.types.is_boolean(array.type):
        values = _bits(data, offset, n)
    else:
        values = np.frombuffer(data or b"", np.dtype(str(array.type)), n, offset * array.type.bit_width // 8)
    if validity is not None and array.null_count:
        values = np.where(_bits(validity, offset, n), values, np.array(missing).astype(values.dtype))
    return values


def byte_lengths(column: pa.ChunkedArray) -> Array:
    """How long the values of a column of bytes are, i64."""
    array = _to_array(column)
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)
    ends: Array = offsets.astype(np.int64)
    return ends[1:] - ends[:-1]


def byte_values(column: pa.ChunkedArray) -> tuple[Array, Array]:
    """All bytes of a column of bytes, u8, and where the values begin in them, i64: one more than there are values."""
    array = _to_array(column)
    _, offsets, data = array.buffers()
    begins = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4) if len(array) else np.zeros(1, np.int32)
    return np.frombuffer(data or b"", np.uint8), begins.astype(np.int64)


def to_words(column: pa.ChunkedArray, known: Sequence[str]) -> Array:
    """A column of words as indices into `known`; -1 for any other word and for null."""
    array = _to_array(column)
    index = {word: index for index, word in enumerate(known)}
    lookup = np.array([index.get(word, -1) for word in array.dictionary.to_pylist()] + [-1])
    found: Array = lookup[to_numpy(array.indices)]
    return found


def distinct(values: Array) -> Array:
    """The different numbers among some, sorted; numpy's own function loads masked arrays, and takes longer."""
    rising = np.sort(values)
    is_first = np.ones(len(rising), bool)
    is_first[1:] = rising[1:] != rising[:-1]
    found: Array = rising[is_first]
    return found


def _to_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _bits(buffer: pa.Buffer, offset: int, n: int) -> Array:
    return np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little", count=offset + n)[offset:].astype(bool)


def _validity(is_null: Array | None) -> pa.Buffer | None:
    if is_null is None or not is_null.any():
        return None
    return pa.py_buffer(np.packbits(~is_null, bitorder="little"))
