"""Trees of calls read back from lines of JSON, those of paths and those of single calls, as paths.

Pure. Whoever wrote the lines may have meant no good: each is checked, and says which one is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from clew.export.probes.call_tree import CallPath
from clew.export.probes.open_calls import CallEnd

__all__ = ["read_paths"]

_MAX_NUMBER: Final = (1 << 63) - 1
_ENDS: Final = {one.value: one for one in CallEnd}


def read_paths(lines: Iterable[str]) -> CallPath:
    """The root of a tree that `paths_json` or `trees_json` wrote. Raises ValueError, which names the line."""
    root = CallPath("")
    open_paths = [root]
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise ValueError(f"line {number}: no JSON object")
        depth, function = _number(row, "depth", number), row.get("function")
        if not isinstance(function, str) or depth >= len(open_paths):
            raise ValueError(f"line {number}: no call within those in front of it")
        del open_paths[depth + 1 :]
        outer = open_paths[depth]
        path = outer.calls.get(function)
        if path is None:
            path = outer.calls[function] = CallPath(function)
        _add(path, row, number)
        open_paths.append(path)
    return root


def _add(path: CallPath, row: dict[str, Any], number: int) -> None:
    """Add what a line says of a path, or of one call on it."""
    total_ns, self_ns = _number(row, "total_ns", number), _number(row, "self_ns", number)
    if "count" not in row:
        end = _ENDS.get(str(row.get("end")))
        if end is None:
            raise ValueError(f"line {number}: neither a path nor a call")
        path.add(total_ns, self_ns, end)
        return
    if path.count:
        raise ValueError(f"line {number}: this path was told before")
    path.count, path.n_left = _number(row, "count", number), _number(row, "n_left", number)
    path.least_ns, path.most_ns = _number(row, "least_ns", number), _number(row, "most_ns", number)
    path.total_ns, path.self_ns = total_ns, self_ns
    if not path.count:
        raise ValueError(f"line {number}: a path without calls")


def _number(row: dict[str, Any], name: str, number: int) -> int:
    value = row.get(name)
    # True is an int to Python.
    if type(value) is not int or not 0 <= value <= _MAX_NUMBER:
        raise ValueError(f"line {number}: {name} is no number of a tree")
    return value
