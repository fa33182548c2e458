"""What belongs to one processor stays in the folders kept for that: names of registers, encodings, its own words.

Run as `python -m checks.processor_ties [ROOT]`. `processor_ties.toml` beside this file has a table for each language:
the `roots` that are looked through, the `suffixes` of their files, the `words` (regular expressions) that tie a file to
a processor, the folders and files that are the processors' own (`kept_for_processors`), and under `ties` the other
files that are tied all the same, each with its reason. A tied file without a reason fails, and so does a reason for a
file that is not tied any more. Comments count: what is said of a register stands beside code that means it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checks.violation import Violation, report

ROOT = Path(__file__).resolve().parent.parent
DECLARED = Path("checks/processor_ties.toml")
_GENERATED_MARK = "do not edit"
_KEYS = {"roots", "suffixes", "words", "kept_for_processors", "ties"}


@dataclass(frozen=True)
class Language:
    """One table of the list: where to look, and for what. Paths are relative to the repository."""

    name: str
    roots: tuple[str, ...]
    suffixes: frozenset[str]
    words: re.Pattern[str]
    kept_for_processors: tuple[str, ...]
    ties: dict[str, str]

    def is_kept(self, path: str) -> bool:
        """Whether a file is in a processor's own folder, or is one of its files."""
        return any(path == kept or path.startswith(f"{kept}/") for kept in self.kept_for_processors)


def parse_languages(text: str) -> list[Language]:
    """The tables of the list. Raises ValueError where one has not what it needs."""
    languages = []
    for name, table in tomllib.loads(text).items():
        missing, unknown = _KEYS - table.keys(), table.keys() - _KEYS
        if missing or unknown:
            raise ValueError(f"[{name}]: missing {sorted(missing)}, unknown {sorted(unknown)}")
        languages.append(_language(name, table))
    return languages


def _language(name: str, table: dict[str, Any]) -> Language:
    return Language(
        name,
        tuple(table["roots"]),
        frozenset(table["suffixes"]),
        re.compile("|".join(f"(?:{word})" for word in table["words"])),
        tuple(table["kept_for_processors"]),
        dict(table["ties"]),
    )


def find_ties(root: Path, language: Language) -> dict[str, tuple[int, str]]:
    """The files outside of the processors' folders that are tied to one: by path the first line and its word."""
    found = {}
    for folder in language.roots:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix not in language.suffixes or not path.is_file() or language.is_kept(name):
                continue
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            if any(_GENERATED_MARK in line for line in lines[:3]):
                continue
            for number, line in enumerate(lines, 1):
                match = language.words.search(line)
                if match is not None:
                    found[name] = number, match[0]
                    break
    return found


def iter_violations(root: Path, language: Language, ties: dict[str, tuple[int, str]]) -> Iterator[Violation]:
    """Yield the ties without a reason, the reasons without a tie, and the folders that are not there.

    `ties` are those that were found.
    """
    for name, (line, word) in ties.items():
        if name not in language.ties:
            yield Violation(f"{name}:{line}", f"{word!r} is one processor's: {_way_out(language)}")
    for name, reason in language.ties.items():
        if name not in ties:
            yield Violation(name, "has a reason for being tied to a processor, and is not: take the reason out")
        elif not reason.strip():
            yield Violation(name, "is tied to a processor without a reason")
    for kept in (*language.roots, *language.kept_for_processors):
        if not (root / kept).exists():
            yield Violation(kept, f"named under [{language.name}], and not there")


def _way_out(language: Language) -> str:
    folders = ", ".join(language.kept_for_processors)
    return f"ask through what {folders} give, or say why not in {DECLARED}"


def main(arguments: list[str]) -> int:
    """Check the tree at `arguments[0]`, or this repository; return the exit status."""
    root = Path(arguments[0]) if arguments else ROOT
    languages = parse_languages((root / DECLARED).read_text(encoding="utf-8"))
    violations: list[Violation] = []
    for language in languages:
        ties = find_ties(root, language)
        print(f"{language.name}: {len(ties)} files are tied to a processor")
        violations += iter_violations(root, language, ties)
    return report(violations, "processors")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
