"""Seccomp: what the trace says of filters, and recording under a filter that was there before."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.programs.build import find

FILTERED = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
# getppid (110) is refused with error 44, everything else is allowed.
code = struct.pack("=" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 110, 6, 0, 0, 0x5002C, 6, 0, 0, 0x7FFF0000)
filter = ctypes.create_string_buffer(code, len(code))
program = struct.pack("@HP", 4, ctypes.addressof(filter))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(program, len(program))) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"""


def events(trace: Path, kind: str, lost: frozenset[str]) -> list[dict[str, object]]:
    rows = runs.read(trace, lost).trace.events.to_pylist()
    return [json.loads(row["details"]) for row in rows if row["kind"] == kind]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("name", "n_filters", "reasons"),
    [
        ("seccomp_filter", 1, []),
        ("seccomp_strict", 0, ["seccomp_strict"]),
        ("seccomp_address", 1, ["seccomp_filter"]),
        ("seccomp_longest", 0, ["seccomp_filter"]),
    ],
)
def test_events_tell_of_filters(name: str, n_filters: int, reasons: list[str], tmp_path: Path) -> None:
    trace = tmp_path / "trace.clew"
    program = find(name)
    runs.record([program.path], trace)
    assert len(events(trace, "seccomp", program.lost)) == n_filters
    assert [details["reason"] for details in events(trace, "released", program.lost)] == reasons
    releases = runs.read(trace, program.lost).summary["releases"]
    assert [(row["reason"], row["threads"]) for row in releases] == [(reason, 1) for reason in reasons]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", ["seccomp_filter", "seccomp_exec", "signal_context", "thread_churn"])
def test_a_filter_from_before(name: str, tmp_path: Path) -> None:
    program = find(name).path
    under = [sys.executable, "-I", "-S", "-c", FILTERED]
    native = runs.run([*under, program])
    assert native.status == find(name).status
    recorded = runs.run([*under, *runs.clew_command("record", "-q", "-o", tmp_path / "trace.clew", "--", program)])
    assert recorded == native
    runs.read(tmp_path / "trace.clew")
