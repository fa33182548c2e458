"""Blocks of foreign functions say why they are sound: clippy asks that of unsafe blocks, and not of them.

Run as `python -m checks.extern_blocks [ROOT]`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from checks.violation import Violation, report

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("runtime/src", "pathcodec/src")
_BLOCK: Final = re.compile(r'\s*(pub(\(\w+\))? )?(unsafe )?extern "C" \{')


def iter_bare_blocks(root: Path) -> Iterator[Violation]:
    """Yield the blocks below `root` that no `SAFETY:` stands above, or that are not marked as unsafe."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.rs")):
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, 1):
                block = _BLOCK.match(line)
                if block is None:
                    continue
                place = f"{path.relative_to(root)}:{number}"
                if block[3] is None:
                    yield Violation(place, "functions of elsewhere are declared in `unsafe extern` blocks")
                above = number - 1
                while above and lines[above - 1].lstrip().startswith("//"):
                    above -= 1
                if not any("SAFETY:" in comment for comment in lines[above : number - 1]):
                    yield Violation(place, "no `SAFETY:` says why what is declared is so")


def main(arguments: list[str]) -> int:
    """Check the tree at `arguments[0]`, or this repository; return the exit status."""
    return report(iter_bare_blocks(Path(arguments[0]) if arguments else ROOT), "blocks of foreign functions")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
