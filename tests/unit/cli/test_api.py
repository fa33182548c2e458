"""`clew api check`: what it prints, and its exit status."""

from __future__ import annotations

from pathlib import Path

from clew.api.reading import BUILT_IN
from tests.unit.cli.running import Captured, run


def test_a_good_file_is_told_as_good(capsys: Captured) -> None:
    path = str(BUILT_IN[1])
    assert run(capsys, "api", "check", path) == (0, f"{path}: nothing wrong\n", "")
    assert run(capsys, "api", "check", "-q", path) == (0, "", "")
    assert run(capsys, "-q", "api", "check", path) == (0, "", "")


def test_what_is_wrong_is_told_with_file_and_place(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"SystemCalls": [{"Name": "one", "Number": {"x86_64": 1}, "Filter": "Files"}]}')
    status, out, err = run(capsys, "api", "check", str(path), str(BUILT_IN[0]))
    assert (status, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith(f"{path}: SystemCalls[0].Filter: 'Files' is none of File, Directory,")
    assert lines[1:] == [f"{BUILT_IN[0]}: nothing wrong"]


def test_a_missing_file_is_a_problem(capsys: Captured) -> None:
    assert run(capsys, "api", "check", "/nowhere/a.json") == (1, "/nowhere/a.json: No such file or directory\n", "")


def test_names_are_escaped_in_front_of_a_terminal(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"\\u001b[2J": 1}')
    status, out, _ = run(capsys, "api", "check", str(path))
    assert status == 1
    assert out.startswith(f"{path}: \\x1b[2J: unknown key")


def test_tables_of_files_in_front_may_be_named(capsys: Captured, tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_text('{"FlagTables": {"mine": {"Kind": "flags", "Values": [["A", 1]]}}}')
    second.write_text(
        '{"Libraries": [{"Name": "l", "Functions": [{"Name": "f", "Filter": "Other", "Parameters":'
        ' [{"Index": 0, "Name": "a", "CType": "int", "RawType": "flags", "Flags": "mine"}]}]}]}'
    )
    assert run(capsys, "api", "check", "-q", str(first), str(second)) == (0, "", "")
    assert run(capsys, "api", "check", "-q", str(second), str(first))[0] == 1


def test_usage(capsys: Captured) -> None:
    status, _, err = run(capsys, "api", "check")
    assert status == 2
    assert "FILE" in err
    status, out, _ = run(capsys, "api", "--help")
    assert status == 0
    assert "check" in out
