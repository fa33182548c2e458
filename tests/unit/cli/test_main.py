"""The frame of the command line: how errors are told, and what the exit status is."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import click
import pytest

from clew.cli import main as main_module
from clew.cli.console import escape_control
from clew.cli.group import SUBCOMMANDS
from clew.errors import ClewError, UsageError

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {"capstone", "cxxfilt", "drgn", "importlib.metadata", "numpy", "pyarrow", "rich", "rust_demangler", "shutil"}


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command(name="info")
    def command() -> None:
        raise error

    class Module:
        pass

    Module.command = command  # type: ignore[attr-defined]
    monkeypatch.setattr(importlib, "import_module", lambda name: Module)


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ClewError("it failed"), 1, "clew: it failed\n"),
        (UsageError("not like this"), 2, "clew: not like this\n"),
        (KeyboardInterrupt(), 130, "clew: interrupted\n"),
        (ValueError("odd"), 1, "clew: internal error: ValueError: odd; CLEW_DEBUG=1 shows where, please report it\n"),
        (ClewError("evil \x1b]0;title\x07"), 1, "clew: evil \\x1b]0;title\\x07\n"),
    ],
)
def test_errors_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, status: int, line: str
) -> None:
    monkeypatch.delenv("CLEW_DEBUG", raising=False)
    fail_with(monkeypatch, error)
    assert main_module.main(["info"]) == status
    assert capsys.readouterr() == ("", line)


def test_errors_of_its_own_can_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DEBUG", "1")
    fail_with(monkeypatch, ValueError("odd"))
    with pytest.raises(ValueError, match="odd"):
        main_module.main(["info"])


def test_a_reader_that_goes_away_is_no_error() -> None:
    script = (
        "import sys; sys.path.insert(0, 'src'); from clew.cli.main import main; sys.exit(main(['doctor', '--json']))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(60) == main_module.EXIT_STATUS_BROKEN_PIPE


@pytest.mark.parametrize("modules", ["clew", "clew.cli.main", "clew.cli.main, clew.cli.record"])
def test_nothing_heavy_is_imported_in_front_of_the_target(modules: str) -> None:
    script = f"import sys; sys.path.insert(0, 'src'); import {modules}; print(sorted({HEAVY} & set(sys.modules)))"
    process = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_neither_is_what_takes_long_to_import_or_to_declare() -> None:
    late = {"click", "dataclasses", "inspect"}
    script = (
        "import sys; sys.path.insert(0, 'src'); import clew.cli.main, clew.cli.recording; "
        f"print(sorted({late} & set(sys.modules)))"
    )
    process = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_help_names_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    assert main_module.main(["--help"]) == 0
    output = capsys.readouterr().out
    for name in SUBCOMMANDS:
        assert f"  {name} " in output


def test_every_subcommand_is_there() -> None:
    for name in SUBCOMMANDS:
        module = importlib.import_module(f"clew.cli.{name.replace('-', '_')}")
        assert isinstance(module.command, click.Command)
        assert module.command.help


def test_what_is_printable_stays() -> None:
    assert escape_control("naïve – 線") == "naïve – 線"
    assert escape_control("a\tb\u202ec\udc80") == "a\\tb\\u202ec\\udc80"
