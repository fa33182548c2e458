"""What Python code may ask of a recording, and what it is told where that can't be meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.cli.main import main
from clew.errors import UsageError
from clew.recording.options.arguments import Text, parse_command, parse_environment, parse_output, parse_patterns


def test_words_are_text_bytes_and_paths() -> None:
    words = parse_command([b"ls", "-l", Path("/tmp"), b"\xff", ""])
    assert words == ["ls", "-l", "/tmp", "\udcff", ""]
    assert os.fsencode(words[3]) == b"\xff"
    mixed: dict[str, Text] = {"A": "b=c", "B": Path("/tmp")}
    assert parse_environment(mixed) == [b"A=b=c", b"B=/tmp"]
    assert parse_environment({b"A": b"\xff"}) == [b"A=\xff"]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["sh", "-c", "x", "a\0b"], "argument 3 of the command, 'a\\x00b': has a NUL in it"),
        ([b"s\0h"], "argument 0 of the command, 's\\x00h': has a NUL in it"),
        (["sleep", 5], "argument 1 of the command, 5: not text"),
        (["echo", "\ud800"], "argument 1 of the command, '\\ud800': can't be encoded"),
        ("ls -l", "command 'ls -l': not a list"),
        (b"ls", "command b'ls': not a list"),
        (Path("ls"), "command PosixPath('ls'): not a list"),
        ([], "empty command"),
    ],
)
def test_commands_that_can_not_be_meant(
    command: Any, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        clew.record(command)
    assert caught.value.message.startswith(told)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"A": "x\0y"}, "environment 'A', 'x\\x00y': has a NUL in it"),
        ({"A": 5}, "environment 'A', 5: not text"),
        ({"A=B": "x"}, "environment 'A=B': no name"),
        ({"": "x"}, "environment '': no name"),
    ],
)
def test_environments_that_can_not_be_meant(
    environment: Any, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        clew.record(["true"], environment=environment)
    assert caught.value.message.startswith(told)
    assert not list(tmp_path.iterdir())


def test_one_string_is_one_pattern() -> None:
    assert parse_patterns("libc.so*") == ("libc.so*",)
    assert parse_patterns(["a", "b!c"]) == ("a", "b!c")
    assert parse_patterns(pattern for pattern in "ab") == ("a", "b")


def test_a_pattern_that_means_nothing_is_told_whole(tmp_path: Path) -> None:
    output, told = tmp_path / "t.clew", "filter '!malloc': a symbol is written IMAGE!SYMBOL"
    with pytest.raises(UsageError, match=told):
        clew.record(["true"], output=output, include="!malloc")
    with pytest.raises(UsageError, match=told):
        clew.record(["true"], output=output, exclude="!malloc")
    with pytest.raises(UsageError, match=told):
        clew.attach(os.getpid(), output=output, include="!malloc")
    assert not list(tmp_path.iterdir())


def test_the_name_of_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_output(b"a/\xff") == Path("a/\udcff")
    assert parse_output(".") == Path(".")
    for given, told in (("", "output '': the name is empty"), ("a\0b", "output, 'a\\x00b': has a NUL in it")):
        with pytest.raises(UsageError) as caught:
            clew.record(["true"], output=given)
        assert caught.value.message.startswith(told)
        with pytest.raises(UsageError):
            clew.attach(os.getpid(), output=given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["record", "true"], ["attach", "1"], ["export", "--to", "drcov", "t.clew"]])
def test_an_empty_name_on_the_command_line(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main([words[0], "-o", "", *words[1:]]) == 2
    assert capsys.readouterr() == ("", "clew: output '': the name is empty; give one, or none at all for the default\n")
