"""Long files, and what is excepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.file_length import iter_long_files, main


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/short.py").write_text("x = 1\n" * 400)
    (tmp_path / "src/long.rs").write_text("//\n" * 601)
    (tmp_path / "src/table.txt").write_text("x\n" * 5000)
    (tmp_path / "src/made.py").write_text('"""Generated; do not edit."""\n' + "x = 1\n" * 5000)
    return tmp_path


def test_only_hand_written_source_files_count(tree: Path) -> None:
    assert [violation.place for violation in iter_long_files(tree, 600)] == ["src/long.rs"]
    assert list(iter_long_files(tree, 601)) == []


def test_exit_status_and_warnings(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tree)]) == 1
    (tree / "src/long.rs").write_text("//\n" * 500)
    capsys.readouterr()
    assert main([str(tree)]) == 0
    assert capsys.readouterr().err == "warning: src/long.rs: 500 lines: split it by what it holds\n"
