"""Records as bytes, and what a session hands over with them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clew.protocol import _generated as protocol
from clew.protocol._generated import EventKind, Mode, RecordKind
from clew.recording.raw.process import SessionInfo


def session_info(mode: Mode = Mode.COUNTS) -> SessionInfo:
    """A session that recorded a made-up program."""
    return SessionInfo(
        command=["made-up"],
        mode=mode,
        include=[],
        exclude=[],
        start_ns=1_700_000_000_000_000_000,
        end_ns=1_700_000_001_000_000_000,
        clew_version="0",
        machine={"architecture": "x86_64"},
        target_cpu_seconds=1.0,
        controller_cpu_seconds=0.5,
    )


def record(dtype: np.dtype[np.void], payload: bytes = b"", /, **fields: int) -> bytes:
    """A record with its continuations."""
    row = np.zeros(1, dtype)
    chunks = [payload[at : at + 60] for at in range(0, len(payload), 60)]
    values: Mapping[str, int] = {"continuations": len(chunks)} | fields
    for name, value in values.items():
        row[name] = value
    data = row.tobytes()
    for index, chunk in enumerate(chunks):
        more = np.zeros(1, protocol.CONTINUATION_RECORD)
        more["kind"], more["index"] = RecordKind.CONTINUATION, index
        more["payload"][0, : len(chunk)] = np.frombuffer(chunk, np.uint8)
        data += more.tobytes()
    return data


def event(kind: EventKind, tid: int, **fields: int) -> bytes:
    """An event record."""
    return record(protocol.EVENT_RECORD, kind=RecordKind.EVENT, event_kind=kind, tid=tid, **fields)
