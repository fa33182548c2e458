"""Programs that run others, recorded whole with their children: the same output and status, every time."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.apps.repeated import expect_same
from tests.e2e import runs

pytestmark = [pytest.mark.stress, pytest.mark.timeout(1800)]

PIPELINES = r"""
set -e
seq 1 400 | grep 7 | sort -rn | head -20 | tr '\n' ' '; echo
for i in 1 2 3 4; do (echo "sub $i"; exit $((i % 2))) || echo "failed $i"; done
x=$(printf 'a\nb\nc\n' | while read -r line; do echo "<$line>"; done | paste -sd,)
echo "$x"
f() { local n=$1; if [ "$n" -gt 0 ]; then f $((n - 1)); echo "$n"; fi; }
f 5 | cat | wc -l
{ sleep 0.01; echo late; } & echo early; wait
diff <(seq 1 5) <(seq 1 2 9) || true
trap 'echo bye' EXIT
"""


TRACED = frozenset({"released_threads"})
"""What another process traces goes on natively, which is told (docs/limits.md)."""


def missing(*programs: str) -> str | None:
    """Names those of `programs` that this machine does not have."""
    absent = [name for name in programs if shutil.which(name) is None]
    return ", ".join(absent) or None


def test_bash_pipelines(tmp_path: Path) -> None:
    processes = expect_same(["bash", "-c", PIPELINES], tmp_path)
    assert len(processes) > 20


def test_make_with_two_jobs(tmp_path: Path) -> None:
    if absent := missing("make", "gcc"):
        pytest.skip(f"not installed: {absent}")
    project = tmp_path / "project"
    project.mkdir()
    names = [f"part{number}" for number in range(6)]
    for name in names:
        (project / f"{name}.c").write_text(f"int {name}(int x) {{ return x * {len(name)}; }}\n")
    (project / "main.c").write_text(
        "".join(f"int {name}(int);\n" for name in names)
        + f"int main(void) {{ return ({' + '.join(f'{name}(1)' for name in names)}) & 127; }}\n"
    )
    objects = " ".join(f"{name}.o" for name in [*names, "main"])
    (project / "Makefile").write_text(
        f"program: {objects}\n\t@gcc -o $@ $^\n%.o: %.c\n\t@gcc -O2 -c -o $@ $<\nclean:\n\t@rm -f *.o program\n"
    )
    command = ["sh", "-c", "make -s clean && make -s -j2 && ./program; echo $?"]
    processes = expect_same(command, tmp_path, cwd=project)
    assert sum(Path(process["executable"]).name == "cc1" for process in processes) == len(names) + 1


@pytest.fixture
def debugged(tmp_path: Path) -> Path:
    """A small program with debugging information."""
    if absent := missing("gcc"):
        pytest.skip(f"not installed: {absent}")
    source = tmp_path / "debugged.c"
    source.write_text(
        "#include <stdio.h>\nint fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }\n"
        'int main(void) { printf("%d\\n", fact(6)); return 3; }\n'
    )
    runs.run(["gcc", "-g", "-O0", "-o", tmp_path / "debugged", source])
    return tmp_path / "debugged"


def test_gdb(debugged: Path, tmp_path: Path) -> None:
    if absent := missing("gdb"):
        pytest.skip(f"not installed: {absent}")
    script = tmp_path / "script"
    script.write_text("set pagination off\nbreak fact if n == 3\nrun\nbt\nstep\ninfo locals\nfinish\ncontinue\n")
    processes = expect_same(
        ["gdb", "-q", "-nx", "-batch", "-x", script, debugged], tmp_path, hide=r"process \d+", lost=TRACED
    )
    assert Path(processes[0]["executable"]).name == "gdb"
    # What it debugs is its own: it runs natively, and is no process of the trace.
    assert not any(process["executable"] == str(debugged) for process in processes)


def test_strace(debugged: Path, tmp_path: Path) -> None:
    if absent := missing("strace"):
        pytest.skip(f"not installed: {absent}")
    command = ["sh", "-c", f"strace -f -o trace -e trace=write,execve,exit_group sh -c '{debugged}; true'; cat trace"]
    expect_same(command, tmp_path, cwd=tmp_path, hide=r"(?m)^\d+|0x[0-9a-f]+|/\* \d+ vars \*/|si_pid=\d+", lost=TRACED)


def test_valgrind(debugged: Path, tmp_path: Path) -> None:
    if absent := missing("valgrind"):
        pytest.skip(f"not installed: {absent}")
    processes = expect_same(["valgrind", debugged], tmp_path, hide=r"==\d+==|in use at exit.*|total heap usage.*")
    assert "valgrind" in processes[-1]["executable"]


def test_a_daemon_of_a_shell(tmp_path: Path) -> None:
    """It outlives its parent, and is waited for."""
    script = "(setsid sh -c 'sleep 0.05; echo from the daemon' &) ; echo parent done"
    native = runs.run(["sh", "-c", script])
    assert os.path.basename(native.stdout.split(b"\n")[0]) == b"parent done"
    processes = expect_same(["sh", "-c", script], tmp_path)
    assert len(processes) >= 3
