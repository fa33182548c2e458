"""A small program, compiled once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SOURCE = """
#include <stdio.h>
int square(int x) __attribute__((noinline, visibility("default")));
int square(int x)
{
    return x * x;
}
static int hidden(int x) { return square(x) + 1; }
int twin(int) __attribute__((alias("square")));
int main(int argc, char **argv)
{
    printf("%d\\n", hidden(argc));
    return 0;
}
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with symbols, lines and a build-id; beside it `stripped`, `no-pie` and `static`.

    The last is linked statically and stripped, and has no search table of functions."""
    directory = tmp_path_factory.mktemp("binary")
    source = directory / "program.c"
    source.write_text(SOURCE)
    path = directory / "program"
    build = ["gcc", "-g", "-O0", "-Wl,--build-id", str(source)]
    subprocess.run([*build, "-o", str(path)], check=True)
    subprocess.run([*build, "-no-pie", "-o", str(directory / "no-pie")], check=True)
    subprocess.run(
        ["gcc", "-O1", "-static", "-s", "-Wl,--no-eh-frame-hdr", "-o", str(directory / "static"), str(source)],
        check=True,
    )
    subprocess.run(["strip", "-o", str(directory / "stripped"), str(path)], check=True)
    return path
