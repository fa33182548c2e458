"""Este's configuration: what it says, and what is told of one that says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import UsageError
from clew.export.este.config import MAX_CONFIG_BYTES, EsteConfig, EsteScope, read_config

GOOD = """
title = "what is looked at"

[OUTPUT]
output-dir = "gen/Este-out"

[ANALYSIS-SCOPE]
binary-whitelist = ["hello.exe", "/lib/libÄ.so"]
log-dynamically-generated = true
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "este-config.toml"
    path.write_text(text)
    return path


def test_all_of_it(tmp_path: Path) -> None:
    assert read_config(write(tmp_path, GOOD)) == EsteConfig(
        "what is looked at", Path("gen/Este-out"), EsteScope(("hello.exe", "/lib/libÄ.so"), True)
    )


def test_what_may_be_left_out(tmp_path: Path) -> None:
    text = GOOD.replace('title = "what is looked at"', "").replace("log-dynamically-generated = true", "")
    assert read_config(write(tmp_path, text)) == EsteConfig(
        "", Path("gen/Este-out"), EsteScope(("hello.exe", "/lib/libÄ.so"), False)
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("title", "titel", "clew knows no titel"),
        ("output-dir", "output", r"clew knows no \[OUTPUT\] output"),
        ("[OUTPUT]", "[OUTPUT]\nmore = 1", r"clew knows no \[OUTPUT\] more"),
        ("[OUTPUT]", '["a\\nb"]\n[OUTPUT]', r"clew knows no 'a\\nb'"),
        ('output-dir = "gen/Este-out"', "", r"\[OUTPUT\] output-dir is missing"),
        ('"gen/Este-out"', '""', "names no directory"),
        ('"gen/Este-out"', '"a\\u0000"', "names no directory"),
        ('"gen/Este-out"', "3", r"\[OUTPUT\] output-dir is to be a string"),
        ("[ANALYSIS-SCOPE]", "[SCOPE]", r"\[ANALYSIS-SCOPE\] is missing; it is to be a table"),
        ("[OUTPUT]\noutput-dir", "OUTPUT", r"\[OUTPUT\] is to be a table"),
        ("binary-whitelist", "#", "binary-whitelist is missing; it is to be a list of strings"),
        ('"hello.exe"', "7", "binary-whitelist is to be a list of strings"),
        ('["hello.exe", "/lib/libÄ.so"]', '"hello.exe"', "binary-whitelist is to be a list of strings"),
        ("= true", '= "yes"', "log-dynamically-generated is to be true or false"),
        ("= true", "= ", "no TOML: "),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError, match=told) as caught:
        read_config(write(tmp_path, GOOD.replace(old, new)))
    assert caught.value.message.startswith(str(tmp_path / "este-config.toml"))
    assert caught.value.message.isprintable() or "no TOML" in caught.value.message


def test_what_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="Is a directory"):
        read_config(tmp_path)
    path = tmp_path / "other"
    path.write_bytes(b"\xff\xfe\0")
    with pytest.raises(UsageError, match="no TOML"):
        read_config(path)
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(UsageError, match="no TOML"):
        read_config(path)
    path.write_bytes(b"#" * (MAX_CONFIG_BYTES + 1))
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        read_config(path)


def test_whitelist_is_of_suffixes_in_whatever_case() -> None:
    scope = EsteScope(("LIB.so", "/Bin/It"))
    assert scope.is_whitelisted("/usr/lib/my-lib.SO", is_main=False)
    assert scope.is_whitelisted("/bin/it", is_main=False)
    assert not scope.is_whitelisted("/bin/it2", is_main=True)
    assert not scope.is_whitelisted("it", is_main=True)
    assert not EsteScope(()).is_whitelisted("/bin/it", is_main=True)
    main = EsteScope()
    assert main.is_whitelisted("/bin/it", is_main=True) and not main.is_whitelisted("/bin/it", is_main=False)
