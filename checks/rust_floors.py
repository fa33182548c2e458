"""The floors of the Rust crates: a module uses only modules below its own.

What a processor has of its own lies in `arch/PROCESSOR`, and is known as `cpu`. A folder there that has a floor's name
is on that floor; everything else there is on the floor `arch`.

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
    frozenset({"probe"}),
    frozenset({"signal", "thread"}),
    frozenset({"instrument"}),
    frozenset({"translate"}),
    frozenset({"cache"}),
    frozenset({"decode"}),
    frozenset({"arch"}),
    frozenset({"context"}),
    frozenset({"buffer"}),
    frozenset({"sys"}),
    frozenset({"protocol"}),
)

PATHCODEC_FLOORS: Floors = (
    frozenset({"tests"}),
    frozenset({"ffi"}),
    frozenset({"advance", "flow", "recode"}),
    frozenset({"predictor"}),
    frozenset({"history", "mixer", "slots"}),
    frozenset({"counter", "logistic", "range_coder"}),
    frozenset({"walk", "source", "fold", "accesses", "call_frames"}),
    frozenset({"frame_rules", "shadow", "surprises", "symbols", "code"}),
    frozenset({"protocol"}),
)

CRATES = {"runtime": RUNTIME_FLOORS, "pathcodec": PATHCODEC_FLOORS}
"""The floors of each crate, by its folder."""

CRATE_ROOTS = frozenset({"lib", "main"})
"""They stand above every floor."""

PROCESSORS = "arch"
"""The folder of the processors' modules."""

PROCESSOR = "cpu"
"""The name by which the one that is compiled for is known in the crate's root."""

_PATH = re.compile(
    r"(?<![\w:])(?P<root>crate|(?:super\s*::\s*)*super)\s*::\s*(?P<rest>\{|\w+)(?:\s*::\s*(?P<next>\w+))?"
)


def check_floors(sources: Path, floors: Floors) -> Iterator[Violation]:
    """Yield every use of a module above one's own, and every top-level module that has no floor."""
    floor_index = {module: index for index, floor in enumerate(floors) for module in floor}
    for path in sorted(sources.rglob("*.rs")):
        parts = path.relative_to(sources).with_suffix("").parts
        module = parts[2] if parts[0] == PROCESSORS and parts[2:] and parts[2] in floor_index else parts[0]
        if module in CRATE_ROOTS or module == "bin":
            continue
        if module not in floor_index:
            yield Violation(str(path), f"module {module} is on no floor: give it one in checks/rust_floors.py")
            continue
        depth = len(parts) - (parts[-1] == "mod")
        for line, name in iter_used_modules(path.read_text(encoding="utf-8"), depth):
            first, _, second = name.partition("::")
            used = (second if second in floor_index else PROCESSORS) if first == PROCESSOR else first
            if floor_index.get(used, len(floors)) < floor_index[module]:
                yield Violation(f"{path}:{line}", f"{module} uses {used}, which is on a floor above it")


def iter_used_modules(text: str, depth: int) -> Iterator[tuple[int, str]]:
    """Line and name of each top-level module that the source text names; of `cpu` with the name in it, if there is one.

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
            for offset, name in _iter_brace_names(code, match.end("rest")):
                yield code.count("\n", 0, offset) + 1, name
        elif match["rest"] == PROCESSOR:
            yield from _iter_processor_names(code, match, line)
        else:
            yield line, match["rest"]


def _iter_processor_names(code: str, match: re.Match[str], line: int) -> Iterator[tuple[int, str]]:
    """The same of one use of `cpu`."""
    group = re.compile(r"\s*::\s*\{").match(code, match.end("rest"))
    if group is None:
        yield line, f"{PROCESSOR}::{match['next']}" if match["next"] else PROCESSOR
        return
    for offset, name in _iter_brace_names(code, group.end()):
        yield code.count("\n", 0, offset) + 1, f"{PROCESSOR}::{name}"


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
