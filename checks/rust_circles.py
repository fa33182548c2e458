"""No two files of a Rust crate use each other, by whatever way: inside of folders, too.

Reads the files as text, as checks/rust_floors.py does: paths that begin with `crate`, `super` or `self`, also in
braces. What a module re-exports counts as its own. Tests at a file's end may use what they like.

Run as `python -m checks.rust_circles [ROOT]`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from checks.rust_source import parse_rust_source
from checks.violation import Violation, report

ROOT = Path(__file__).resolve().parent.parent
CRATES = ("runtime", "pathcodec")

ALIASES = {"cpu": ("arch", "x86_64")}
"""Modules of the crate's root that are another's: what `cpu` is while x86-64 is compiled for."""

Module = tuple[str, ...]
"""A file's module path below the crate's root: empty for `lib.rs`."""

_ROOT = re.compile(r"(?<![\w:])(?P<root>crate|self|super(?:\s*::\s*super)*)\s*::\s*")
_NAME = re.compile(r"\w+")
_BETWEEN = re.compile(r"[\s,]*")
_TESTS = re.compile(r"^#\[cfg\(test\)\]\s*mod \w+ \{", re.MULTILINE)


def find_modules(sources: Path) -> dict[Module, Path]:
    """The modules that have a file of their own, but the crate's roots, which name all."""
    modules = {}
    for path in sorted(sources.rglob("*.rs")):
        parts = path.relative_to(sources).with_suffix("").parts
        if parts[-1] == "mod":
            parts = parts[:-1]
        if parts not in (("lib",), ("main",)):
            modules[parts] = path
    return modules


def iter_used(modules: dict[Module, Path], module: Module) -> Iterator[Module]:
    """The modules that a module's file names, some more than once."""
    path = modules[module]
    code = "\n".join(parse_rust_source(path.read_text(encoding="utf-8")).code)
    if (tests := _TESTS.search(code)) is not None:
        code = code[: tests.start()]
    folder = module if path.stem == "mod" else module[:-1]
    for match in _ROOT.finditer(code):
        root = match["root"]
        start: Module = ()
        if root == "self":
            start = module
        elif root != "crate":
            n = root.count("super")
            start = folder[: len(folder) - n + 1] if path.stem != "mod" else folder[: len(folder) - n]
        for names in _iter_paths(code, match.end(), start)[0]:
            names = (*ALIASES.get(names[0], names[:1]), *names[1:]) if names else names
            used = next((names[:n] for n in range(len(names), 0, -1) if names[:n] in modules), None)
            if used is not None and used != module:
                yield used


def _iter_paths(code: str, at: int, start: Module) -> tuple[list[Module], int]:
    """All paths of a use tree that begins at `at`, behind `start`; and where it ends."""
    if code[at : at + 1] != "{":
        name = _NAME.match(code, at)
        if name is None:
            return [start], at + 1
        behind = re.compile(r"\s*::\s*").match(code, name.end())
        path = (*start, name.group())
        return _iter_paths(code, behind.end(), path) if behind else ([path], name.end())
    paths: list[Module] = []
    at += 1
    while True:
        between = _BETWEEN.match(code, at)
        at = between.end() if between else at
        if at >= len(code) or code[at] == "}":
            return paths, at + 1
        more, at = _iter_paths(code, at, start)
        paths += more


def check_circles(sources: Path) -> Iterator[Violation]:
    """Yield a circle of modules, if there is one."""
    modules = find_modules(sources)
    graph = {module: set(iter_used(modules, module)) for module in modules}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # Each is used by the next one: from user to used they go the other way round.
        circle = [*reversed(error.args[1])]
        names = " -> ".join("/".join(module) for module in circle)
        yield Violation(str(modules[circle[0]]), f"a circle: {names}")


def main(arguments: list[str]) -> int:
    """Check the crates of the tree at `arguments[0]`, or of this repository; return the exit status."""
    root = Path(arguments[0]) if arguments else ROOT
    violations = [violation for crate in CRATES for violation in check_circles(root / crate / "src")]
    return report(violations, f"circles in {' and '.join(CRATES)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
