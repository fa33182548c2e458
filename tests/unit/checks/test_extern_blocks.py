"""Declarations of foreign functions, with a reason and without."""

from __future__ import annotations

from pathlib import Path

from checks.extern_blocks import ROOT, iter_bare_blocks


def test_blocks_without_a_reason_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "runtime/src"
    folder.mkdir(parents=True)
    (folder / "good.rs").write_text('// SAFETY: defined above,\n// as declared.\nunsafe extern "C" {\n}\n')
    (folder / "bare.rs").write_text('fn f() {}\n\nunsafe extern "C" {\n}\nextern "C" fn callback() {}\n')
    (folder / "old.rs").write_text('    // SAFETY: there.\n    extern "C" {\n    }\n')
    places = [violation.place for violation in iter_bare_blocks(tmp_path)]
    assert places == ["runtime/src/bare.rs:3", "runtime/src/old.rs:2"]


def test_there_are_none_here() -> None:
    assert list(iter_bare_blocks(ROOT)) == []
