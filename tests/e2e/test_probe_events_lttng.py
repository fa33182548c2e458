"""Events of probes beside a trace that LTTng-UST itself recorded: laid out alike, and merged by time.

Needs lttng-tools, liblttng-ust-dev and babeltrace2, and to be root; skips, and says so, without them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.export.probes.ctf import CtfTrace, process_folder
from clew.export.probes.event_types import EventBatch, EventType, Field
from clew.export.probes.identity import Clock, Host, ProcessIdentity
from clew.protocol._constants import CaptureType
from tests.unit.export.probes.babeltrace import print_ctf
from tests.unit.export.probes.made_events import START_NS, to_table

pytestmark = pytest.mark.long

N = 5
_PROVIDER = """
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER told
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./told.h"
#if !defined(TOLD_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TOLD_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(told, tick, LTTNG_UST_TP_ARGS(int, n),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, n, n)))
#endif
#include <lttng/tracepoint-event.h>
"""
_PROGRAM = """
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "told.h"
#include <stdio.h>
int main(void)
{
    int n;
    while (scanf("%d", &n) == 1) {
        lttng_ust_tracepoint(told, tick, n);
        puts("done");
        fflush(stdout);
    }
}
"""


@pytest.fixture
def lttng(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """LTTng's session daemon runs; the program that tells of ticks is built."""
    missing = [name for name in ("lttng", "lttng-sessiond", "babeltrace2", "gcc") if not shutil.which(name)]
    if missing or os.geteuid():
        pytest.skip(f"LTTng was not compared with: {', '.join(missing) or 'root'} is missing")
    (tmp_path / "told.h").write_text(_PROVIDER)
    (tmp_path / "told.c").write_text(_PROGRAM)
    program = tmp_path / "told"
    built = subprocess.run(
        ["gcc", "-I", tmp_path, "-o", program, tmp_path / "told.c", "-llttng-ust"], capture_output=True, check=False
    )
    if built.returncode:
        pytest.skip(f"LTTng was not compared with: liblttng-ust-dev is missing: {built.stderr.decode()[:200]}")
    monkeypatch.setenv("LTTNG_HOME", str(tmp_path))
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            if not subprocess.run(["lttng", "--no-sessiond", "list"], capture_output=True, check=False).returncode:
                break
            if daemon.poll() is not None:
                pytest.skip("LTTng was not compared with: its session daemon does not run here")
            time.sleep(0.1)
        yield program
    finally:
        daemon.terminate()
        daemon.wait(30)


def control(*arguments: str) -> None:
    subprocess.run(["lttng", "--no-sessiond", *arguments], capture_output=True, timeout=60, check=True)


def record(program: Path, folder: Path, write: CtfTrace, offset_ns: int) -> None:
    """Ticks of the program and events of the other trace, in turn; each is over before the next begins."""
    one = EventType("mine", (Field("n", CaptureType.I32, is_present=True),))
    control("create", "session", "-o", str(folder))
    control("enable-channel", "-u", "channel0", "--buffers-pid")
    control("enable-event", "-u", "told:tick", "-c", "channel0")
    control("add-context", "-u", "-c", "channel0", "-t", "vpid", "-t", "vtid", "-t", "procname")
    control("start")
    # With the program's buffers set up: it waits for the daemon at its start (LTTNG_UST_REGISTER_TIMEOUT).
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"LTTNG_UST_REGISTER_TIMEOUT": "-1"}
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for n in range(N):
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + offset_ns
            write.write(EventBatch([(one, to_table(one, [(now - START_NS, n, 4711, 4711, b"mine", 0, n)]))]))
            time.sleep(0.005)
            running.stdin.write(b"%d\n" % n)
            running.stdin.flush()
            assert running.stdout.readline() == b"done\n"
            time.sleep(0.005)
        running.stdin.close()
    control("destroy")


def declarations(folder: Path) -> set[str]:
    """What a trace's metadata declares, without what is its own: values of numbers and texts, events."""
    [metadata] = [path.parent for path in folder.rglob("metadata")]
    run = subprocess.run(["babeltrace2", "-o", "ctf-metadata", metadata], capture_output=True, check=True)
    text = re.sub(r"/\*.*?\*/", "", run.stdout.decode(), flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    # The patch level tells of a library; the numbers are those of a process.
    text = re.sub(r"tracer_patchlevel = \d+; ", "", text)
    text = re.sub(r'(vpid|buffering_id|offset) = \d+|(\w+) = "[^"]*"', r"\1\2 = ...", text)
    blocks = re.split(r"(?<=[;)]) (?=typealias|trace |env |clock |struct|event |stream )", text)
    return {block for block in blocks if not block.startswith("event ")}


def test_traces_are_laid_out_alike_and_merge_by_time(lttng: Path, tmp_path: Path) -> None:
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    offset_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    host = Host(os.uname().nodename, Clock(boot_id, offset_ns))
    process = ProcessIdentity(4711, b"mine", time.time_ns())
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    trace = CtfTrace(process_folder(mine, process), process, host, "session", process.start_ns)
    record(lttng, theirs, trace, offset_ns)
    trace.close()

    lines = [line.decode() for line in print_ctf(mine, theirs)]
    ticks = [re.search(r" (mine|told:tick): .*\{ n = (\d+) \}$", line) for line in lines]
    assert [tick and tick.groups() for tick in ticks] == [
        (name, str(n)) for n in range(N) for name in ("mine", "told:tick")
    ]
    own, others = declarations(mine), declarations(theirs)
    assert len(others) > 12
    assert others == own
    # Folders: ust/pid/NAME-PID-DATE-TIME.
    for folder in (mine, theirs):
        [metadata] = folder.rglob("metadata")
        assert re.fullmatch(r"ust/pid/\w+-\d+-\d{8}-\d{6}/metadata", str(metadata.relative_to(folder)))
        assert [*metadata.parent.glob("channel0_*")]
