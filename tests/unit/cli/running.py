"""Runs clew's command in this process, for the tests of what it prints."""

from __future__ import annotations

import pytest

from clew.cli.main import main

__all__ = ["Captured", "run"]

Captured = pytest.CaptureFixture[str]


def run(capsys: Captured, *arguments: str) -> tuple[int, str, str]:
    """Exit status, output and errors of clew with `arguments`."""
    status = main(list(arguments))
    return status, *capsys.readouterr()
