"""From measurements to ratios: medians with least and greatest, geometric means.

Runs anywhere. Pure: knows no process and no file.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Spread:
    """A median with the least and the greatest."""

    median: float
    least: float
    greatest: float

    def to_json(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in asdict(self).items()}


def spread(values: Sequence[float]) -> Spread:
    """Of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


def ratios(cpu_seconds: Sequence[float], native_seconds: Sequence[float], base_seconds: float) -> list[float]:
    """Of each round, how often native's CPU time was needed, less `base_seconds` (recording `true`); at least 0.

    The rounds' own native runs would carry each round's noise twice, so the median native run is what divides.
    """
    native = statistics.median(native_seconds)
    return [max(seconds - base_seconds, 0.0) / native for seconds in cpu_seconds]


def geometric_mean(values: Iterable[float]) -> float | None:
    """None of nothing, or where a value is not positive."""
    listed = list(values)
    if not listed or min(listed) <= 0:
        return None
    return math.exp(statistics.fmean(math.log(value) for value in listed))
