"""Files tied to a processor: found, excused with a reason, or kept for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.processor_ties import find_ties, iter_violations, main, parse_languages

LIST = r"""
[python]
roots = ["src"]
suffixes = [".py"]
words = ['(?i:\bpdp11\b)', '\bacc\b', '\\x0f']
kept_for_processors = ["src/processors"]
[python.ties]
"src/excused.py" = "it is about that one"
[rust]
roots = ["runtime"]
suffixes = [".rs"]
words = ['\bacc\b']
kept_for_processors = ["runtime/arch/pdp11.rs"]
[rust.ties]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "checks/processor_ties.toml": LIST,
        "src/plain.py": "accumulator = 'x0f'\n",
        "src/excused.py": "# of the PDP11\n",
        "src/processors/pdp11.py": "acc = b'\\x0f'\n",
        "src/page.css": "/* acc */\n",
        "src/made.py": '"""Generated; do not edit."""\nacc = 1\n',
        "runtime/main.rs": "fn main() {}\n",
        "runtime/arch/pdp11.rs": "let acc = 1;\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def violations(tree: Path) -> list[str]:
    languages = parse_languages((tree / "checks/processor_ties.toml").read_text())
    return [str(one) for language in languages for one in iter_violations(tree, language, find_ties(tree, language))]


def test_processors_own_files_and_those_with_a_reason_are_let_be(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert violations(tree) == []
    assert main([str(tree)]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "python: 1 files are tied to a processor",
        "rust: 0 files are tied to a processor",
    ]


def test_a_new_tie_is_named_with_its_line_in_each_language(tree: Path) -> None:
    (tree / "src/plain.py").write_text("x = 1\ny = b'\\x0f'\n")
    (tree / "runtime/main.rs").write_text("fn main() { let acc = 1; }\n")
    found = violations(tree)
    assert [line.partition(": ")[0] for line in found] == ["src/plain.py:2", "runtime/main.rs:1"]
    assert main([str(tree)]) == 1
    python, _ = parse_languages(LIST)
    assert find_ties(tree, python)["src/plain.py"] == (2, "\\x0f")


def test_a_reason_for_nothing_is_stale(tree: Path) -> None:
    (tree / "src/excused.py").write_text("x = 1\n")
    assert violations(tree) == [
        "src/excused.py: has a reason for being tied to a processor, and is not: take the reason out"
    ]
    (tree / "src/excused.py").unlink()
    assert len(violations(tree)) == 1


def test_a_tie_needs_words_for_a_reason_and_folders_that_are_there(tree: Path) -> None:
    path = tree / "checks/processor_ties.toml"
    path.write_text(LIST.replace("it is about that one", " ").replace("pdp11.rs", "vax.rs"))
    assert violations(tree) == [
        "src/excused.py: is tied to a processor without a reason",
        "runtime/arch/pdp11.rs:1: 'acc' is one processor's: ask through what runtime/arch/vax.rs give, or say why not "
        "in checks/processor_ties.toml",
        "runtime/arch/vax.rs: named under [rust], and not there",
    ]


def test_a_table_says_all_that_is_needed() -> None:
    with pytest.raises(ValueError, match=r"missing \['ties'\], unknown \['tie'\]"):
        parse_languages(LIST.replace("[rust.ties]", "[rust.tie]"))


# `make check` does the same.
@pytest.mark.long
def test_this_repository() -> None:
    assert main([]) == 0
