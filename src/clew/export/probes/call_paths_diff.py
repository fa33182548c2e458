"""What differs between two trees of paths of calls: paths that one of them lacks, counts, times.

Pure. A path is the same if its functions have the same names.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.dataclass import dataclass, field
from clew.export.probes.call_tree import CallPath

__all__ = ["PathChange", "diff_paths", "walk_changes"]


@dataclass
class PathChange:
    """A path as it was `before` and `after`: without calls where it was not there; and the paths on from here."""

    function: str
    before: CallPath
    after: CallPath
    calls: list[PathChange] = field(default_factory=list)

    @property
    def total_ns(self) -> int:
        """How much longer its calls took."""
        return self.after.total_ns - self.before.total_ns

    @property
    def self_ns(self) -> int:
        """The same, without what calls within them took."""
        return self.after.self_ns - self.before.self_ns


def diff_paths(before: CallPath, after: CallPath) -> PathChange:
    """The change from one tree, which begins at its root, to another: of one function's paths those with the greatest
    change of time come first."""
    root = PathChange(after.function, before, after)
    waiting = [root]
    while waiting:
        one = waiting.pop()
        names = [*one.before.calls, *(name for name in one.after.calls if name not in one.before.calls)]
        for name in names:
            own = one.before.calls.get(name) or CallPath(name)
            other = one.after.calls.get(name) or CallPath(name)
            one.calls.append(PathChange(name, own, other))
        one.calls.sort(key=lambda change: (-abs(change.total_ns), change.function))
        waiting += one.calls
    return root


def walk_changes(root: PathChange) -> Iterator[tuple[int, PathChange]]:
    """All paths but the root with their depth, from 0 on, each in front of those that go on from it."""
    waiting = [(0, one) for one in reversed(root.calls)]
    while waiting:
        depth, change = waiting.pop()
        yield depth, change
        waiting += [(depth + 1, one) for one in reversed(change.calls)]
