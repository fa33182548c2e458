"""A recording imports no more than it needs: what of numpy is not its core takes as long as all of a short program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from clew.cli.main import main
assert main(["record", "-q", "--mode", sys.argv[1], "-o", "x.clew", "sh", "-c", "/bin/true; /bin/true"]) == 0
assert "numpy._core" in sys.modules
for name in ("numpy.lib", "numpy.linalg", "numpy._typing", "inspect", "click"):
    assert name not in sys.modules, name
"""


@pytest.mark.parametrize(
    "mode", ["counts", "full", *(pytest.param(one, marks=pytest.mark.long) for one in ("coverage", "region"))]
)
def test_nothing_is_imported_in_vain(mode: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, mode], cwd=tmp_path, check=True, timeout=60)
