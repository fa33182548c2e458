"""Code outside of images, of two runs: which memory of one is that of the other.

Runs in the controller. Such code has no file to count addresses from. But what a program unpacks, or a compiler makes
in the same order, has the same bytes at the same distances, wherever it lies. So memory is taken as regions, and two
regions are the same if a good part of their blocks have the same bytes at one distance. What is in other regions can't
be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from clew.analysis.comparison.content import mix
from clew.store.columns import Array

__all__ = ["Memory", "Regions", "match_memory"]

_GAP_BYTES: Final = 1 << 20
"""Blocks of one region are no further from one another."""
_SHARE: Final = 4
"""One in so many blocks of the smaller region has to be found in the other one."""


@dataclass(frozen=True)
class Memory:
    """Blocks outside of images, by process: `owner`, `start` (address), `size_bytes`, `content` (what stands for their
    bytes)."""

    owner: Array
    start: Array
    size_bytes: Array
    content: Array


@dataclass(frozen=True)
class Regions:
    """By block, of A and of B: the number of its region and how far it is from its start.

    Regions below `n_matched` are of both, the others of one alone. By region: `owner`.
    """

    n_matched: int
    owner: Array
    region_a: Array
    region_b: Array
    distance_a: Array
    distance_b: Array


def match_memory(a: Memory, b: Memory) -> Regions:
    """Find the regions that A and B have in common. Owners of the same number are compared."""
    cut_a, cut_b = _cut(a), _cut(b)
    pairs = _pair(a, b, cut_a, cut_b)
    number_a, number_b = np.full(len(cut_a.start), -1), np.full(len(cut_b.start), -1)
    start_a, start_b = cut_a.start.copy(), cut_b.start.copy()
    for number, (region_a, region_b, distance) in enumerate(pairs):
        number_a[region_a] = number_b[region_b] = number
        # What begins earlier begins the region in both.
        in_a = (int(cut_b.start[region_b]) - distance) % 2**64
        start_a[region_a] = min(int(cut_a.start[region_a]), in_a)
        start_b[region_b] = (int(start_a[region_a]) + distance) % 2**64
    alone_a, alone_b = np.flatnonzero(number_a < 0), np.flatnonzero(number_b < 0)
    number_a[alone_a] = len(pairs) + np.arange(len(alone_a))
    number_b[alone_b] = len(pairs) + len(alone_a) + np.arange(len(alone_b))
    owner = np.zeros(len(pairs) + len(alone_a) + len(alone_b), np.int64)
    owner[number_a], owner[number_b] = cut_a.owner, cut_b.owner
    return Regions(
        n_matched=len(pairs),
        owner=owner,
        region_a=number_a[cut_a.of_block],
        region_b=number_b[cut_b.of_block],
        distance_a=(a.start - start_a[cut_a.of_block]).astype(np.int64),
        distance_b=(b.start - start_b[cut_b.of_block]).astype(np.int64),
    )


@dataclass(frozen=True)
class _Cut:
    """By block its region; by region its owner, its lowest address and how many blocks it has."""

    of_block: Array
    owner: Array
    start: Array
    n_blocks: Array


def _cut(memory: Memory) -> _Cut:
    order = np.lexsort((memory.start, memory.owner))
    owner, start = memory.owner[order], memory.start[order]
    begins = np.ones(len(order), bool)
    gap = start[1:] - start[:-1]
    size = memory.size_bytes[order][:-1].astype(np.uint64)
    begins[1:] = (owner[1:] != owner[:-1]) | (gap > size + np.uint64(_GAP_BYTES))
    of_block = np.zeros(len(order), np.int64)
    of_block[order] = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    return _Cut(of_block, owner[first], start[first], np.diff(np.append(first, len(order))))


def _pair(a: Memory, b: Memory, cut_a: _Cut, cut_b: _Cut) -> list[tuple[int, int, int]]:
    """Regions of A and B that are the same, and how much higher the one of B lies, modulo 2^64."""
    rows_a, rows_b = _find_unique(a, b)
    region_a, region_b = cut_a.of_block[rows_a], cut_b.of_block[rows_b]
    distance = b.start[rows_b] - a.start[rows_a]
    order = np.lexsort((distance, region_b, region_a))
    region_a, region_b, distance = region_a[order], region_b[order], distance[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (region_a[1:] != region_a[:-1]) | (region_b[1:] != region_b[:-1]) | (distance[1:] != distance[:-1])
    first = np.flatnonzero(begins)
    votes = np.diff(np.append(first, len(order)))
    region_a, region_b, distance = region_a[first], region_b[first], distance[first]
    enough = votes * _SHARE >= np.minimum(cut_a.n_blocks[region_a], cut_b.n_blocks[region_b])
    best = np.flatnonzero(enough)[np.argsort(-votes[enough], kind="stable")]
    pairs: list[tuple[int, int, int]] = []
    used_a: set[int] = set()
    used_b: set[int] = set()
    for of_a, of_b, far in zip(region_a[best].tolist(), region_b[best].tolist(), distance[best].tolist(), strict=True):
        if of_a not in used_a and of_b not in used_b:
            used_a.add(of_a)
            used_b.add(of_b)
            pairs.append((of_a, of_b, far))
    return pairs


def _find_unique(a: Memory, b: Memory) -> tuple[Array, Array]:
    """Blocks, of A and of B, whose bytes are those of one block of a process of A and of one of B."""
    keys, rows = [], []
    for memory in (a, b):
        key = mix(memory.owner, memory.content.view(np.int64), memory.size_bytes)
        found, first, count = np.unique(key, return_index=True, return_counts=True)
        is_one = (count == 1) & (memory.size_bytes[first] > 0)
        keys.append(found[is_one])
        rows.append(first[is_one])
    _, at_a, at_b = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return rows[0][at_a], rows[1][at_b]
