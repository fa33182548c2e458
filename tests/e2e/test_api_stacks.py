"""`clew api --stack`: who made each call, beside strace's backtraces and what programs do."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.api_runs import run_clew

PROGRAM = r"""
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Each has a frame of its own: what is behind a call keeps it from being a jump.
__attribute__((noinline)) int deep(int n) {
    char room[200];
    memset(room, n, sizeof room);
    if (!n) return write(1, "here\n", 5);
    int found = deep(n - 1);
    __asm__ volatile("" ::"r"(room) : "memory");
    return found + 1;
}
static void *begin(void *depth) { return (void *)(long)(deep(*(int *)depth) + 1); }
int main(int argc, char **argv) {
    int depth = 5;
    pthread_t thread;
    if (argc > 1 && fork() == 0) return !deep(3);
    if (argc > 1) {
        wait(0);
        pthread_create(&thread, 0, begin, &depth);
        pthread_join(thread, 0);
    }
    return !deep(40);
}
"""


@pytest.fixture(scope="module", params=["-O1", "-O1 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deep")
    (folder / "deep.c").write_text(PROGRAM)
    subprocess.run(["gcc", *request.param.split(), "-pthread", "deep.c", "-o", "deep"], cwd=folder, check=True)
    return folder / "deep"


def places(text: str) -> list[list[tuple[str, str]]]:
    """File and place in it of each frame, by call of `write`."""
    found: list[list[tuple[str, str]]] = []
    is_wanted = False
    for line in text.splitlines():
        frame = re.fullmatch(r" > (.*)\(.*\) \[(0x[0-9a-f]+)\]", line)
        if frame is None:
            is_wanted = "write(1" in line
            if is_wanted:
                found.append([])
        elif is_wanted:
            found[-1].append((frame[1], frame[2]))
    return found


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_stacks_of_system_calls_are_as_strace_has_them(program: Path, tmp_path: Path) -> None:
    run_clew("--stack", "--filter", "File", "-o", tmp_path / "told", "--", program)
    subprocess.run(["strace", "-k", "-e", "trace=write", "-o", tmp_path / "strace", program], check=True)
    expected = places((tmp_path / "strace").read_text())
    assert len(expected) == 1
    assert len(expected[0]) > 40
    (told,) = places((tmp_path / "told").read_text())
    # Without tables strace's unwinder gives up in the C library's frames.
    is_whole = "unexpected_backtracing_error" not in (tmp_path / "strace").read_text()
    assert (told if is_whole else told[: len(expected[0])]) == expected[0]


def test_stacks_of_functions_are_those_of_their_callers(program: Path, tmp_path: Path) -> None:
    run_clew("--stack", "--json", "--function", "deep:deep", "-o", tmp_path / "told", "--", program, "all")
    calls = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    depths = [sum(frame["function"] == "deep" for frame in call["stack"]) for call in calls]
    # As they return: the innermost first. A fork's child, a thread, and the program itself.
    assert depths == [*range(4, 0, -1), *range(6, 0, -1), *range(41, 0, -1)]
    callers = [next(one["function"] for one in call["stack"] if one["function"] != "deep") for call in calls]
    assert callers == ["main"] * 4 + ["begin"] * 6 + ["main"] * 41
    assert all(call["stack"][0]["offset"] == 0 and call["stack"][0]["pc"] == call["pc"] for call in calls)


def test_a_tree_has_system_calls_within_functions(program: Path, tmp_path: Path) -> None:
    run_clew("--tree", "--filter", "File", "--function", "deep:deep", "-o", tmp_path / "told", "--", program, "all")
    lines = [line.partition("] | ")[2] for line in (tmp_path / "told").read_text().splitlines()]
    found = [line for line in lines if "deep!deep(" in line or "write(" in line]
    depths = [(len(line) - len(line.lstrip())) // 2 for line in found]
    # Each thread's by itself: those of a fork's child, of the other thread, and of the program.
    starts = [index for index, depth in enumerate(depths) if not depth] + [len(depths)]
    threads = sorted(depths[start:end] for start, end in itertools.pairwise(starts))
    assert threads == [[*range(5)], [*range(7)], [*range(42)]]
    assert sorted(depth for depth, line in zip(depths, found, strict=True) if "write(" in line) == [4, 6, 41]
