"""`clew.record`: what Python code asks for reaches the program as `subprocess` would give it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.e2e import runs


def run_python(script: str, folder: Path) -> runs.Run:
    """Run a script that uses clew, in a process of its own: its program writes to the same stdout."""
    return runs.run([sys.executable, "-c", f"import clew, pathlib\n{script}"], cwd=folder)


def test_words_and_environment_may_be_bytes_and_paths(tmp_path: Path) -> None:
    shown = "import os, sys; print(ascii([sys.argv[1:], dict(os.environb)]))"
    command = f"[pathlib.Path({sys.executable!r}), b'-c', {shown!r}, b'\\xff', pathlib.Path('/a'), '']"
    script = f"clew.record({command}, environment={{b'A': b'\\xfe', b'LC_ALL': 'C'}}, output='t.clew')"
    run = run_python(script, tmp_path)
    assert (run.status, run.stderr) == (0, b""), run
    assert run.stdout == b"[['\\udcff', '/a', ''], {b'A': b'\\xfe', b'LC_ALL': b'C'}]\n"
    told = runs.read(tmp_path / "t.clew").trace.manifest.command
    assert (told[:2], told[3:]) == ([sys.executable, "-c"], ["\\xff", "/a", ""])
