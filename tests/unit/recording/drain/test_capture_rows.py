"""Captures are taken out of records, and nothing else is, whatever looks like one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.protocol._generated import CAPTURE_RECORD, PATH_CHUNK_RECORD, RECORD_BYTES, RecordKind
from clew.recording.drain.capture_rows import split_captures


def record(kind: RecordKind, filling: int = 0) -> bytes:
    """One of a kind, filled up with a byte."""
    return int(kind).to_bytes(2, "little") + bytes([filling]) * (RECORD_BYTES - 2)


def capture(n_continuations: int) -> list[bytes]:
    head = np.zeros(1, CAPTURE_RECORD)
    head["kind"], head["continuations"] = RecordKind.CAPTURE, n_continuations
    return [head.tobytes(), *(record(RecordKind.CONTINUATION, 7) for _ in range(n_continuations))]


def fragment(n_continuations: int) -> list[bytes]:
    return [record(RecordKind.FRAGMENT), *(record(RecordKind.CONTINUATION, 9) for _ in range(n_continuations))]


def chunk(rows: list[RecordKind]) -> list[bytes]:
    """A piece of a path, whose rows look like anything."""
    head = np.zeros(1, PATH_CHUNK_RECORD)
    head["kind"], head["rows"] = RecordKind.PATH_CHUNK, len(rows)
    return [head.tobytes(), *(record(kind, 3) for kind in rows)]


LOOKS = st.sampled_from([RecordKind.CAPTURE, RecordKind.CONTINUATION, RecordKind.PATH_CHUNK, RecordKind.FRAGMENT])
PARTS = st.lists(
    st.one_of(
        st.integers(0, 3).map(lambda n: ("capture", capture(n))),
        st.integers(0, 2).map(lambda n: ("other", fragment(n))),
        st.lists(LOOKS, max_size=5).map(lambda rows: ("other", chunk(rows))),
    ),
    max_size=12,
)


@given(PARTS)
def test_captures_are_taken_out_whole(parts: list[tuple[str, list[bytes]]]) -> None:
    data = b"".join(row for _, rows in parts for row in rows)
    captures, others = split_captures(data)
    taken = b"" if captures is None else captures.tobytes()
    assert taken == b"".join(row for what, rows in parts if what == "capture" for row in rows)
    assert bytes(others) == b"".join(row for what, rows in parts if what == "other" for row in rows)
