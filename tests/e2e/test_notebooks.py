"""docs/examples: the code of each notebook runs, one cell after the other, and no results are kept in it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs/examples").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    assert content["nbformat"] == 4
    cells = content["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells) > 5
    (tmp_path / "docs/examples").mkdir(parents=True)
    shutil.copytree(ROOT / "docs/tour", tmp_path / "docs/tour")
    monkeypatch.chdir(tmp_path / "docs/examples")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    namespace: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            exec(compile("".join(cell["source"]), f"{notebook.name}:{cell['id']}", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "steps was called" in printed and "collatz!steps" in printed and "_multiarray_umath" in printed
