"""The floors of the page: a module imports only from its own folder's floor or from below.

Reads the TypeScript files as text: every import and export names a file by a relative path. Packages may be imported
on the floors that the table names.

Run as `python -m checks.web_floors [ROOT]`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from checks.violation import Violation, report

ROOT = Path(__file__).resolve().parent.parent
SOURCES = "web/src"

FLOORS = ("views", "model", "api", "protocol", "base")
"""Folders, from the top to the bottom."""

PACKAGES = {
    "preact": {"views"},
    "preact/hooks": {"views"},
    "@preact/signals": {"views", "model"},
}
"""On which floors a package may be imported, outside of `*.test.ts` and `*.test-support.ts`."""

_IMPORT = re.compile(
    r"""(?:^(?:import|export)\b[^;"']*?\bfrom\s*|^import\s*|\bimport\(\s*|\bnew\s+URL\(\s*)(?P<quote>["'])(?P<name>[^"']+)(?P=quote)""",
    re.MULTILINE,
)


def check_floors(sources: Path) -> Iterator[Violation]:
    """Yield every import from above, from outside of the sources, or of a package where it has no place."""
    index = {floor: number for number, floor in enumerate(FLOORS)}
    for path in sorted([*sources.rglob("*.ts"), *sources.rglob("*.tsx")]):
        inside = path.relative_to(sources).parts
        if len(inside) == 1:
            continue  # main.tsx stands above every floor
        floor = inside[0]
        if floor not in index:
            yield Violation(str(path), f"folder {floor} is on no floor: give it one in checks/web_floors.py")
            continue
        text = path.read_text(encoding="utf-8")
        for match in _IMPORT.finditer(text):
            where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
            name = match["name"]
            if not name.startswith("."):
                if ".test" not in path.name and floor not in PACKAGES.get(name, set()):
                    yield Violation(where, f"{floor} may not import the package {name}")
                continue
            target = (path.parent / name).resolve()
            if not target.is_relative_to(sources.resolve()):
                yield Violation(where, f"{name} is outside of {SOURCES}")
                continue
            used = target.relative_to(sources.resolve()).parts[0]
            if index.get(used, -1) < index[floor]:
                yield Violation(where, f"{floor} uses {used}, which is on a floor above it")


def main(arguments: list[str]) -> int:
    """Check the tree at `arguments[0]`, or this repository; return the exit status."""
    root = Path(arguments[0]) if arguments else ROOT
    return report(list(check_floors(root / SOURCES)), "floors of the page")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
