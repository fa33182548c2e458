"""What the documents name is there: files, commands, make targets, links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clew.cli.group import SUBCOMMANDS
from clew.protocol._constants import EdgeKind, EventKind, ExitKind
from clew.store.schema import SCHEMAS

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/format/trace.md",
    "docs/format/paths.md",
    "docs/statistics.md",
    "docs/control.md",
    "docs/diff.md",
    "docs/api-calls.md",
    "docs/api-descriptions.md",
    "docs/injection.md",
    "docs/probes.md",
    "docs/probe-sessions.md",
    "docs/python.md",
    "docs/este.md",
    "docs/limits.md",
    "docs/words.md",
    "bench/README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/design").glob("*.md")),
)
# Where a name in a document may be meant to start.
BASES = (ROOT, ROOT / "src/clew", ROOT / "runtime/src")
MADE_BY_BUILDING = (
    "NAME.clew",
    ".venv",
    "build",
    "bench/results",
    "bench/work",
    "dist",
    "src/clew/_page",
    "src/clew/_runtime",
)


def read(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_named_files_exist(document: str) -> None:
    """In backticks, what has a slash or a source file's suffix is a path."""
    names = set(re.findall(r"`([\w./-]+)`", read(document)))
    paths = {name for name in names if "/" in name.strip("/") or name.endswith((".py", ".rs", ".toml", ".md", "/"))}
    missing = [
        path
        for path in sorted(paths)
        if not path.startswith(MADE_BY_BUILDING) and not any((base / path).exists() for base in BASES)
    ]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_named_commands_exist(document: str) -> None:
    """After "clew " in code, a subcommand."""
    code = "\n".join(re.findall(r"`+[^`]+`+", read(document)))
    named = set(re.findall(r"(?:^|`|\$ |bin/)clew ([a-z][a-z-]*)", code, re.MULTILINE))
    assert named <= set(SUBCOMMANDS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_named_make_targets_exist(document: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    code = "\n".join(re.findall(r"`+[^`]+`+", read(document)))
    assert set(re.findall(r"\bmake ([a-z-]+)", code)) <= targets


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    links = re.findall(r"\]\(([^)#]+)", read(document))
    missing = [link for link in links if not link.startswith("http") and not ((ROOT / document).parent / link).exists()]
    assert missing == []


def test_every_column_of_a_trace_is_documented() -> None:
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", read("docs/format/trace.md"), re.MULTILINE | re.DOTALL))
    for table, schema in SCHEMAS.items():
        first_cells = re.findall(r"^\| (`[^|]*)\|", sections[table], re.MULTILINE)
        assert sorted(re.findall(r"`(\w+)`", " ".join(first_cells))) == sorted(schema.names), table


def test_every_kind_of_a_trace_is_documented() -> None:
    text = read("docs/format/trace.md")
    for kinds in (EdgeKind, EventKind, ExitKind):
        missing = [kind.name for kind in kinds if f"`{kind.name.lower()}`" not in text]
        assert missing in ([], ["PARTIAL"])
