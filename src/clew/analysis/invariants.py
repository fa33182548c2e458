"""Whether a trace is well-formed: what must hold in every one, checked.

Runs in the controller. Proves structure (ids lead somewhere, edges start and end where blocks do), flow (what comes
into a block goes out of it, by thread), and that totals agree between tables. Not whether the program really ran so:
that takes another tracer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clew.analysis.arrays import TraceArrays
from clew.analysis.invariants_flow import FLOW_INVARIANTS
from clew.analysis.invariants_structure import STRUCTURE_INVARIANTS
from clew.store.trace import Trace

__all__ = ["Finding", "Invariant", "check_invariants", "list_invariants"]

Check = Callable[[TraceArrays], list[str]]


@dataclass(frozen=True)
class Invariant:
    """Something that holds in every trace. `name` is a sentence."""

    name: str
    check: Check


@dataclass(frozen=True)
class Finding:
    """An invariant that does not hold. `examples` are the first few places, `n_places` how many there are."""

    invariant: str
    n_places: int
    examples: list[str]


def list_invariants() -> list[Invariant]:
    """Every invariant, in the order in which they are checked."""
    return [Invariant(name, check) for name, check in [*STRUCTURE_INVARIANTS, *FLOW_INVARIANTS]]


def check_invariants(
    trace: Trace, *, max_examples: int = 5, on_checked: Callable[[Invariant], None] | None = None
) -> list[Finding]:
    """What does not hold in `trace`; empty for a good one. Raises TraceDamagedError if a table can't be read."""
    arrays = TraceArrays(trace)
    findings = []
    for invariant in list_invariants():
        places: Sequence[str] = invariant.check(arrays)
        if places:
            findings.append(Finding(invariant.name, len(places), list(places[:max_examples])))
        if on_checked is not None:
            on_checked(invariant)
    return findings
