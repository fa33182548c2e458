"""Calls that a probe has begun are told where they return, also those that have no room in the thread's table."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from clew.address import Pid
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ContextField, ProbeSpec

DEPTH = 2600
"""More than a thread has room for; what is told of all of them has room in its ring, which is read at the end."""
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>

__attribute__((noipa)) double deeper(long left, double sum)
{
    if (left == 0)
        return sum;
    return deeper(left - 1, sum + 0.5) + 1;
}

int main(int n, char **words)
{
    (void)n;
    puts("ready");
    fflush(stdout);
    getchar();
    for (int round = 0; round < 3; round++)
        printf("%g ", deeper(atol(words[1]), round));
    puts("");
    fflush(stdout);
    getchar();
    return 0;
}
"""


@pytest.mark.parametrize("depth", [0, 5, DEPTH])
def test_calls_return_as_often_as_they_begin(tmp_path: Path, depth: int) -> None:
    (tmp_path / "deeper.c").write_text(PROGRAM)
    # One that calls itself is not made a loop of.
    flags = ["-O1", "-fno-optimize-sibling-calls"]
    subprocess.run(["gcc", *flags, "-o", tmp_path / "deeper", tmp_path / "deeper.c"], check=True)
    fields = (ContextField("left", "$rdi"), ContextField("twice", "$xmm0 * 2"))
    spec = ProbeSpec("deeper", "deeper", True, fields, (ContextField("result", "$xmm0 + 0.0"),))
    with subprocess.Popen(
        [tmp_path / "deeper", str(depth)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        session = ProbeSession([spec])
        try:
            session.attach(Pid(process.pid))
            process.stdin.write("\n")
            process.stdin.flush()
            said = process.stdout.readline().split()
            batch = session.read()
        finally:
            session.close()
        process.communicate("\n", timeout=30)
    assert said == [f"{round + depth * 1.5:g}" for round in range(3)]
    assert not batch.losses
    events = {kind.name: table.to_pylist() for kind, table in batch.tables}
    entries, exits = events["deeper_entry"], events["deeper_exit"]
    assert [one["left"] for one in entries] == [*range(depth, -1, -1)] * 3
    expected = [round + 0.5 * level for round in range(3) for level in range(depth + 1)]
    assert [one["twice"] for one in entries] == [2 * one for one in expected]
    # The innermost returns first, and each takes longer than those within it.
    results = [round + 0.5 * depth + level for round in range(3) for level in range(depth + 1)]
    assert [one["result"] for one in exits] == results
    for start in range(0, 3 * (depth + 1), depth + 1):
        durations = [one["duration"] for one in exits[start : start + depth + 1]]
        assert durations == sorted(durations)
