"""docs/python.md: its examples run, one after the other, and all that the package offers is there to be read."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.aio import AsyncEvents, AsyncSession
from clew.sessions.call_probes import CallProbe
from clew.sessions.calls import Call

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/python.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)

PUBLIC = [getattr(clew, name) for name in clew.__all__ if name != "__version__"]
METHODS = [
    (kind, name)
    for kind in (
        clew.Session,
        clew.NativeSession,
        clew.Probe,
        clew.ProbeEvent,
        clew.ProbeSum,
        clew.OwnEvents,
        clew.Trace,
        clew.TraceDiff,
        Call,
        CallProbe,
        AsyncSession,
        AsyncEvents,
    )
    for name, _ in inspect.getmembers(kind)
    if not name.startswith("_")
]


# Each of them does what a test of sessions or of recordings does as well.
@pytest.mark.long
def test_the_examples_run(tmp_path: Path) -> None:
    subprocess.run(["gcc", "-g", "-O1", "-o", tmp_path / "collatz", ROOT / "docs/tour/collatz.c"], check=True)
    assert len(EXAMPLES) >= 8
    # In a process of their own: in this one tests of browsers may have left a loop of asyncio's.
    script = tmp_path / "examples.py"
    script.write_text("\n\n".join(EXAMPLES))
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"collatz.clew", "whole.clew", "collatz.drcov.log", "collatz.html", "collatz.este"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_all_names_are_shown() -> None:
    assert dir(clew) == sorted(clew.__all__)
    text = pydoc.plain(pydoc.render_doc(clew))
    for named in PUBLIC:
        assert re.search(rf"^    (class )?{named.__name__}\(", text, re.MULTILINE), named


@pytest.mark.parametrize("named", PUBLIC, ids=lambda named: named.__name__)
def test_public_names_are_documented(named: object) -> None:
    assert inspect.getdoc(named)


@pytest.mark.parametrize(("kind", "name"), METHODS, ids=lambda value: getattr(value, "__name__", value))
def test_methods_are_documented_and_typed(kind: type, name: str) -> None:
    member = inspect.getattr_static(kind, name)
    called = getattr(member, "fget", None) or getattr(member, "func", None) or member
    if not callable(called):
        return
    assert inspect.getdoc(called), name
    signature = inspect.signature(called)
    assert signature.return_annotation is not inspect.Signature.empty, name
    for parameter in list(signature.parameters.values())[1:]:
        assert parameter.annotation is not inspect.Parameter.empty, (name, parameter.name)


@pytest.mark.parametrize(
    "wrong",
    [{"by": "nothing"}, {"n": 0}, {"by": "edge", "merge": True}, {"pid": 1}, {"pid": 1, "merge": True}],
    ids=str,
)
def test_what_can_not_be_reported_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    trace = clew.record(["true"], output=tmp_path / "t.clew")
    with pytest.raises(clew.ClewError):
        trace.report(**wrong)


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    trace = clew.record(["true"], output=tmp_path / "t.clew")
    output = tmp_path / "t.log"
    output.write_text("mine")
    with pytest.raises(clew.ClewError, match="exists already"):
        trace.export("drcov", output)
    assert output.read_text() == "mine"
    assert trace.export("drcov", output, replace=True) > 100
    refused: list[dict[str, Any]] = [{"to": "pdf"}, {"to": "drcov", "limit_mb": 1}, {"to": "html", "dynamic": True}]
    for wrong in refused:
        with pytest.raises(clew.ClewError):
            trace.export(**wrong, output=tmp_path / "other")
    with pytest.raises(clew.ClewError, match="No such file or directory"):
        trace.export("drcov", tmp_path / "no" / "folder")
