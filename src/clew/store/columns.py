"""Columns of tables out of numpy arrays and lists of strings.

Runs in the controller. Arrow's own conversions look for pandas first, and loading that takes longer than assembling a
small trace; these build the same arrays from their buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["binaries", "booleans", "numbers", "optional_numbers", "text_lists", "texts", "words"]

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


def _validity(is_null: Array | None) -> pa.Buffer | None:
    if is_null is None or not is_null.any():
        return None
    return pa.py_buffer(np.packbits(~is_null, bitorder="little"))
