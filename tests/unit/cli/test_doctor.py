"""`clew doctor`: every check has a state, a failing one a way out, and the exit status says whether any failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from clew.cli import doctor
from tests.unit.process.fake_runtime import build_fake_runtime


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake_runtime(tmp_path_factory.mktemp("runtime"))


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(doctor.command, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value), result.output


def test_a_machine_that_can_record(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_RUNTIME", str(runtime))
    status, output = run("--json")
    content = json.loads(output)
    assert (status, content["ok"]) == (0, True)
    assert all(set(check) == {"name", "state", "detail", "way_out"} for check in content["checks"])
    assert {"kernel", "runtime image", "start a program"} <= {check["name"] for check in content["checks"]}
    assert run()[1].endswith("this machine can record\n")


def test_a_missing_runtime_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_RUNTIME", "/none/at/all")
    status, output = run("--json")
    assert status == 1
    failed = [check for check in json.loads(output)["checks"] if check["state"] == "failed"]
    assert [check["name"] for check in failed] == ["runtime image"]
    assert "make build" in failed[0]["way_out"]
    assert run()[0] == 1


@pytest.mark.parametrize(
    ("scope", "is_root", "state"),
    [("0", False, "ok"), ("1", False, "ok"), ("2", False, "failed"), ("2", True, "ok"), ("3", True, "failed")],
)
def test_ptrace_scope(monkeypatch: pytest.MonkeyPatch, scope: str, is_root: bool, state: str) -> None:
    monkeypatch.setattr(Path, "exists", lambda self: True)
    monkeypatch.setattr(Path, "read_text", lambda self: f"{scope}\n")
    monkeypatch.setattr("os.geteuid", lambda: 0 if is_root else 1000)
    check = doctor._check_ptrace_scope()
    assert check.state == state
    assert bool(check.way_out) >= (state == "failed")


def test_an_old_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    class System:
        release = "4.9.0-12-amd64"

    monkeypatch.setattr("os.uname", System)
    assert doctor._check_kernel().state == "failed"


def test_a_check_that_fails_itself_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Path, **options: object) -> str:
        raise OSError("no")

    monkeypatch.setattr(Path, "read_text", broken)
    states = {check.name: check.state for check in doctor.run_checks()}
    assert states["processor features"] == "note"
