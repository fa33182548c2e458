"""`clew export`: what it writes, where to, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.running import Captured, run


def test_export(capsys: Captured, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "export", "--to", "drcov", trace)[0] == 0
    assert (tmp_path / "t.drcov.log").read_bytes().startswith(b"DRCOV VERSION: 2\n")
    status, _, err = run(capsys, "export", "--to", "drcov", "-o", str(tmp_path / "x"), trace)
    assert status == 0
    assert "4 blocks" in err


def test_export_leaves_a_file_that_is_there(
    capsys: Captured, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("mine")
    Path("link").symlink_to("mine")
    Path("t.drcov.log").symlink_to("mine")
    for name, words in (("mine", ["-o", "mine"]), ("link", ["-o", "link"]), ("t.drcov.log", [])):
        status, _, err = run(capsys, "export", "--to", "drcov", *words, trace)
        told = f"clew: {name}: exists already; choose another name with -o, or replace it with --force\n"
        assert (status, err) == (2, told)
        assert Path("mine").read_text() == "mine"
    assert run(capsys, "export", "--to", "drcov", "--force", trace)[0] == 0
    assert Path("mine").read_bytes().startswith(b"DRCOV VERSION: 2\n")
    assert Path("t.drcov.log").is_symlink()
    assert "default NAME.drcov.log, NAME.este or NAME.html" in " ".join(run(capsys, "export", "--help")[1].split())


def test_export_failures(capsys: Captured, trace: str, tmp_path: Path) -> None:
    status, _, err = run(capsys, "export", "--to", "paper", trace)
    assert status == 2
    assert err == "clew: no such format: 'paper'; there is drcov, este, html\n"
    status, _, err = run(capsys, "export", "--to", "drcov", "-o", str(tmp_path / "no" / "where"), trace)
    assert status == 1
    assert err.count("\n") == 1


def test_export_of_the_page(capsys: Captured, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = run(capsys, "export", "--to", "html", trace)
    assert status == 0
    assert err == "clew: wrote t.html: the code of 2 functions\n"
    assert Path("t.html").read_text().startswith("<!doctype html>")
    assert run(capsys, "export", "--to", "html", trace)[0] == 2
    status, _, err = run(capsys, "export", "--to", "drcov", "--limit", "5", "-o", "other", trace)
    assert (status, err) == (2, "clew: --limit is for --to html\n")
    for limit in ("0", "2000", "x"):
        assert run(capsys, "export", "--to", "html", "--limit", limit, "-o", "other", trace)[0] == 2
    monkeypatch.setattr("clew.server.page_file.PageExporter.__init__.__defaults__", (32, tmp_path / "no-page"))
    status, _, err = run(capsys, "export", "--to", "html", "-o", "other", trace)
    assert status == 1
    assert "not built" in err
    assert not Path("other").exists()
