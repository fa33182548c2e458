"""What a trace says that it lacks: threads that went on natively, children and programs that nobody followed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from clew.address import Pid
from clew.protocol._generated import EventKind, ReleaseReason
from clew.recording.assembly.trace import assemble
from clew.recording.raw.process import RawProcess
from clew.store.manifest import Manifest
from clew.store.trace import Trace
from tests.unit.recording.made_up_records import event, session_info
from tests.unit.recording.simulate import PID, make_runtime


def record(directory: Path, *events: bytes, follow: bool = True) -> Manifest:
    """The manifest of two processes of the same program, both with `events` beside their own."""
    process = make_runtime(3, max_threads=1, with_signals=False, max_steps=50).raw_process()
    rows = np.frombuffer(b"".join(events), np.uint8).reshape(-1, 64)
    processes: list[RawProcess] = [
        dataclasses.replace(process, pid=Pid(pid), number=number, records=np.concatenate([process.records, rows]))
        for number, pid in enumerate((PID, PID + 1))
    ]
    assemble(processes, directory, dataclasses.replace(session_info(), follow=follow))
    return Trace(directory).manifest


def test_releases_have_reason_number_and_time(tmp_path: Path) -> None:
    manifest = record(
        tmp_path,
        event(EventKind.RELEASED, PID, tsc=1500, a=ReleaseReason.TRACED, app_pc=5),
        event(EventKind.RELEASED, PID, tsc=1300, a=ReleaseReason.TRACED, app_pc=5),
        event(EventKind.RELEASED, PID, tsc=1400, a=ReleaseReason.RUNTIME_ERROR, app_pc=5),
        event(EventKind.RELEASED, PID, tsc=1400, a=77, app_pc=5),
    )
    assert manifest.losses["released_threads"] == 8
    told = [(row["pid"], row["reason"], row["threads"]) for row in manifest.releases]
    reasons = [("runtime_error", 1), ("traced", 2), ("reason_77", 1)]
    assert told == [(pid, *one) for pid in (PID, PID + 1) for one in reasons]
    since = {row["reason"]: row["since_ns"] for row in manifest.releases}
    assert manifest.start_ns <= since["traced"] < since["runtime_error"] <= manifest.end_ns


@pytest.mark.parametrize("reason", [ReleaseReason.DETACH, ReleaseReason.FATAL_FAULT])
def test_what_was_asked_for_is_no_loss(tmp_path: Path, reason: ReleaseReason) -> None:
    manifest = record(tmp_path, event(EventKind.RELEASED, PID, tsc=1300, a=reason, app_pc=5))
    assert not any(manifest.losses.values())
    assert manifest.releases == []


@pytest.mark.parametrize("follow", [True, False])
def test_children_that_were_to_be_followed(tmp_path: Path, follow: bool) -> None:
    losses = record(tmp_path, event(EventKind.FORK, PID, tsc=1200, a=99), follow=follow).losses
    assert losses["unfollowed_children"] == (2 if follow else 0)
