"""The floors of the Rust crates: a module uses only modules below its own.

Reads the Rust files as text (`crate::name`, `super::name`, also in braces); what the compiler would resolve through
re-exports it does not follow, so re-exports upward are found where they are written.

Run as `python -m checks.rust_floors [ROOT]`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from checks.rust_source import parse_rust_source
from checks.violation import Violation, report

ROOT = Path(__file__).resolve().parent.parent

Floors = tuple[frozenset[str], ...]
"""From the top to the bottom. Modules of one floor may use each other."""

RUNTIME_FLOORS: Floors = (
    frozenset({"dispatch"}),
    frozenset({"signal", "thread"}),
    frozenset({"instrument"}),
    frozenset({"translate"}),
    frozenset({"cache"}),
    frozenset({"decode"}),
    frozenset({"arch"}),
    frozenset({"buffer"}),
    frozenset({"sys"}),
    frozenset({"protocol"}),
)

PATHCODEC_FLOORS: Floors = (
    frozenset({"tests"}),
    frozenset({"ffi"}),
    frozenset({"advance", "recode"}),
    frozenset({"predictor"}),
    frozenset({"history", "mixer", "slots"}),
    frozenset({"counter", "logistic", "range_coder"}),
    frozenset({"walk", "source", "fold"}),
    frozenset({"shadow", "surprises", "symbols", "event", "code"}),
)

CRATES = {"runtime": RUNTIME_FLOORS, "pathcodec": PATHCODEC_FLOORS}
"""The floors of each crate, by its folder."""

CRATE_ROOTS = frozenset({"lib", "main"})
"""They stand above every floor."""

_PATH = re.compile(r"(?<![\w:])(?P<root>crate|(?:super\s*::\s*)*super)\s*::\s*(?P<rest>\{|\w+)")


def check_floors(sources: Path, floors: Floors) -> Iterator[Violation]:
    """Yield every use of a module above one's own, and every top-level module that has no floor."""
    floor_index = {module: index for index, floor in enumerate(floors) for module in floor}
    for path in sorted(sources.rglob("*.rs")):
        parts = path.relative_to(sources).with_suffix("").parts
        module = parts[0]
        if module in CRATE_ROOTS or module == "bin":
            continue
        if module not in floor_index:
            yield Violation(str(path), f"module {module} is on no floor: give it one in checks/rust_floors.py")
            continue
        depth = len(parts) - (parts[-1] == "mod")
        for line, used in iter_used_modules(path.read_text(encoding="utf-8"), depth):
            if floor_index.get(used, len(floors)) < floor_index[module]:
                yield Violation(f"{path}:{line}", f"{module} uses {used}, which is on a floor above it")


def iter_used_modules(text: str, depth: int) -> Iterator[tuple[int, str]]:
    """Line and name of each top-level module that the source text names.

    `depth` is how many modules deep the file is (1 for `cache.rs` and `cache/mod.rs`), which says how many `super`
    reach the crate's root. Inside an inline module `super` counts from the file all the same.
    """
    code = "\n".join(parse_rust_source(text).code)
    for match in _PATH.finditer(code):
        root = match["root"]
        if root != "crate" and root.count("super") != depth:
            continue
        line = code.count("\n", 0, match.start()) + 1
        if match["rest"] == "{":
            for offset, name in _iter_brace_names(code, match.end()):
                yield code.count("\n", 0, offset) + 1, name
        else:
            yield line, match["rest"]


def _iter_brace_names(code: str, start: int) -> Iterator[tuple[int, str]]:
    """Position and first name of each item of a use group; `start` is just behind its opening brace."""
    depth, expects_name = 1, True
    for token in re.compile(r"\w+|[{},]").finditer(code, start):
        match token.group():
            case "{":
                depth += 1
            case "}":
                depth -= 1
                if depth == 0:
                    return
            case ",":
                expects_name = depth == 1
            case name:
                if expects_name and depth == 1:
                    yield token.start(), name
                expects_name = False


def main(arguments: list[str]) -> int:
    """Check the crates of the tree at `arguments[0]`, or of this repository; return the exit status."""
    root = Path(arguments[0]) if arguments else ROOT
    violations = [
        violation for crate, floors in CRATES.items() for violation in check_floors(root / crate / "src", floors)
    ]
    return report(violations, f"floors of {' and '.join(CRATES)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
