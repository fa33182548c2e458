"""Code and keys as numbers: what differs gets different ones, but for a chance of one in 2^64.

Runs in the controller. Whole columns at a time; numbers are sorted and compared far quicker than rows or bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clew.store.columns import Array

__all__ = ["SIDES", "hash_code", "mix", "number_keys"]

SIDES: Final = ("a", "b")
"""What the two traces are called in rows."""

_CHUNK_BYTES: Final = 1 << 22
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_OTHER: Final = np.uint64(0xD6E8FEB86659FD93)


def mix(*columns: Array) -> Array:
    """A number for each row of columns of integers, u64."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = _scatter(mixed ^ column.astype(np.int64, copy=False).view(np.uint64)) + _ODD
    return mixed


def number_keys(*keys: Array) -> tuple[int, list[Array]]:
    """How many different numbers there are in some arrays together, and arrays of their ranks."""
    found, ranks = np.unique(np.concatenate(keys), return_inverse=True)
    return len(found), np.split(ranks, np.cumsum([len(key) for key in keys])[:-1])


def hash_code(data: Array, first: Array, size_bytes: Array) -> Array:
    """A number for the bytes of `data` from each of `first` on, `size_bytes` of them; u64, 0 of none."""
    hashes = np.zeros(len(first), np.uint64)
    ends = np.cumsum(size_bytes)
    begin = 0
    while begin < len(first):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + _CHUNK_BYTES, "right")), begin + 1)
        size = size_bytes[begin:end]
        starts = np.cumsum(size) - size
        into = np.arange(int(size.sum())) - np.repeat(starts, size)
        values = data[into + np.repeat(first[begin:end], size)].astype(np.uint64) + np.uint64(1)
        values *= _scatter(into.astype(np.uint64) * _ODD)
        filled = np.flatnonzero(size)
        if len(filled):
            hashes[begin + filled] = np.add.reduceat(values, starts[filled])
        begin = end
    return hashes


def _scatter(values: Array) -> Array:
    """Numbers of which each bit hangs on each of those of `values`; never two the same of different ones."""
    values = (values ^ (values >> np.uint64(32))) * _OTHER
    values = (values ^ (values >> np.uint64(29))) * _ODD
    scattered: Array = values ^ (values >> np.uint64(32))
    return scattered
