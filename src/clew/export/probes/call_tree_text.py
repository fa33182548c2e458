"""Trees of calls as text and as lines of JSON.

Pure. Names are the program's: they are made printable. Trees may be deeper than JSON's own nesting is read: a line is a
call, and says how deep it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from clew.export.probes.call_paths_diff import PathChange, walk_changes
from clew.export.probes.call_tree import CallPaths, CallTrees, walk, walk_paths
from clew.export.probes.open_calls import CallEnd
from clew.export.probes.value_text import plain_text

__all__ = ["changes_json", "changes_text", "paths_json", "paths_text", "trees_json", "trees_text"]

_INDENT: Final = "  "
_UNITS: Final = ((1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s "))
_ENDS: Final = {CallEnd.RETURNED: "", CallEnd.LEFT: "  (left)", CallEnd.OPEN: "  (no end seen)"}


def trees_text(trees: CallTrees) -> Iterator[str]:
    """A line for each call: how long it took in all, itself, in which thread."""
    yield f"{'TOTAL':>12} {'SELF':>12} {'THREAD':>9} | FUNCTION"
    for (_, tid), roots in trees.threads.items():
        for depth, call in walk(roots):
            times = f"{_time_text(call.total_ns)} {_time_text(call.self_ns)}"
            yield f"{times} {f'[{tid}]':>9} | {_INDENT * depth}{plain_text(call.function)}{_ENDS[call.end]}"


def trees_json(trees: CallTrees) -> Iterator[str]:
    """An object for each call, in front of those that it made: `pid`, `tid`, `depth` (from 0 on), `function`,
    `start_ns` (since 1970), `total_ns`, `self_ns`, `end` (returned, left, open)."""
    for (pid, tid), roots in trees.threads.items():
        for depth, call in walk(roots):
            place = {"pid": pid, "tid": tid, "depth": depth, "function": call.function, "start_ns": call.start_ns}
            times = {"total_ns": call.total_ns, "self_ns": call.self_ns, "end": call.end.value}
            yield json.dumps(place | times)


def paths_text(paths: CallPaths) -> Iterator[str]:
    """A line for each path: how long its calls took in all, themselves, on average, and how many there were."""
    yield f"{'TOTAL':>12} {'SELF':>12} {'AVERAGE':>12} {'CALLS':>10} | FUNCTION"
    for depth, path in walk_paths(paths.root):
        times = " ".join(_time_text(one) for one in (path.total_ns, path.self_ns, path.total_ns // path.count))
        left = f"  ({path.n_left} did not return)" if path.n_left else ""
        yield f"{times} {path.count:>10} | {_INDENT * depth}{plain_text(path.function)}{left}"


def paths_json(paths: CallPaths) -> Iterator[str]:
    """An object for each path, in front of those that go on from it: `depth` (from 0 on), `function`, `count`,
    `n_left` (calls that did not return), `total_ns`, `self_ns`, `least_ns`, `most_ns`."""
    for depth, path in walk_paths(paths.root):
        counts = {"depth": depth, "function": path.function, "count": path.count, "n_left": path.n_left}
        times = {"total_ns": path.total_ns, "self_ns": path.self_ns}
        yield json.dumps(counts | times | {"least_ns": path.least_ns, "most_ns": path.most_ns})


def changes_text(root: PathChange) -> Iterator[str]:
    """A line for each path of one tree or the other: what changed of its calls from the first to the second."""
    yield f"{'TOTAL':>13} {'SELF':>13} {'CALLS':>22} | FUNCTION"
    for depth, one in walk_changes(root):
        calls = f"{one.before.count} -> {one.after.count}" if one.after.count != one.before.count else one.after.count
        mark = "+" if not one.before.count else "-" if not one.after.count else " "
        times = f"{_change_text(one.total_ns)} {_change_text(one.self_ns)}"
        yield f"{times} {calls:>22} |{mark}{_INDENT * depth}{plain_text(one.function)}"


def changes_json(root: PathChange) -> Iterator[str]:
    """An object for each path of one tree or the other: `depth`, `function`, and `count`, `total_ns`, `self_ns` as
    pairs, the first tree's first."""
    for depth, one in walk_changes(root):
        before, after = one.before, one.after
        pairs = {
            "count": [before.count, after.count],
            "total_ns": [before.total_ns, after.total_ns],
            "self_ns": [before.self_ns, after.self_ns],
        }
        yield json.dumps({"depth": depth, "function": one.function} | pairs)


def _time_text(time_ns: int) -> str:
    """A time in twelve characters, with the unit that it needs."""
    size, unit = next((one for one in _UNITS if abs(time_ns) < 1000 * one[0]), _UNITS[-1])
    return f"{time_ns / size:9.3f} {unit}"


def _change_text(time_ns: int) -> str:
    size, unit = next((one for one in _UNITS if abs(time_ns) < 1000 * one[0]), _UNITS[-1])
    return f"{time_ns / size:+10.3f} {unit}"
