"""What a thread's ring brings of its path: rises of counters, in both of their forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from clew.protocol._generated import (
    PATH_CHUNK_RECORD,
    PATH_EVENT_RECORD,
    RECORD_BYTES,
    PathEventKind,
    PathStream,
    RecordKind,
)
from clew.recording.journal.path_drain import PathDrain
from clew.store.columns import Array
from clew.store.path_checkpoints import decode_checkpoints
from clew.store.path_frames import FrameKind, iter_frames, read_payload


def chunk(stream: PathStream, data: bytes, claimed: int | None = None) -> Array:
    n_rows = -(-len(data) // RECORD_BYTES)
    head = np.zeros(1, PATH_CHUNK_RECORD)
    head["kind"], head["rows"], head["stream"] = RecordKind.PATH_CHUNK, n_rows, stream
    head["size_bytes"] = len(data) if claimed is None else claimed
    return np.frombuffer(head.tobytes() + data.ljust(n_rows * RECORD_BYTES, b"\0"), np.uint8).reshape(-1, RECORD_BYTES)


def checkpoint() -> Array:
    event = np.zeros(1, PATH_EVENT_RECORD)
    event["kind"], event["event_kind"], event["tsc"] = RecordKind.PATH_EVENT, PathEventKind.CHECKPOINT, 1 << 40
    return np.frombuffer(event.tobytes(), np.uint8).reshape(1, RECORD_BYTES)


def entry(step: int, rise: int) -> bytes:
    return bytes([step]) + rise.to_bytes(2, "little")


def many(index: int, rise: int) -> bytes:
    return index.to_bytes(4, "little") + rise.to_bytes(8, "little")


def rises_of(folder: Path, *rows: Array) -> dict[int, int]:
    """Of the checkpoint that comes with `rows`."""
    (folder / "paths").mkdir()
    drain = PathDrain(folder, 0, 0)
    assert len(drain.take(np.concatenate([*rows, checkpoint()]))) == 0
    drain.finish()
    with drain.writer.path.open("rb") as file:
        [frame] = [one for one in iter_frames(file) if one.kind == FrameKind.CHECKPOINTS]
        [found] = decode_checkpoints(read_payload(file, frame), frame.size)
    return dict(zip(found.index.tolist(), found.rise.tolist(), strict=True))


def test_what_rose_is_put_together(tmp_path: Path) -> None:
    few = chunk(PathStream.FEW, (70).to_bytes(4, "little") + entry(0, 1) + entry(255, 0xFFFF))
    # 3 times 256 and 4 more; 2 times 255 times 256.
    far = chunk(
        PathStream.FEW, (1000).to_bytes(4, "little") + entry(3, 0) + entry(4, 7) + entry(255, 0) * 2 + entry(0, 9)
    )
    counters = chunk(PathStream.COUNTERS, many(71, 0x10000) + many(1 << 20, 1 << 40))
    assert rises_of(tmp_path, few, counters, far) == {
        70: 1,
        71: 0x10000,
        325: 0xFFFF,
        1772: 7,
        1772 + 2 * 255 * 256: 9,
        1 << 20: 1 << 40,
    }


def test_what_makes_no_sense_is_no_counter(tmp_path: Path) -> None:
    cut_off = chunk(PathStream.FEW, (70).to_bytes(4, "little") + entry(0, 1) + entry(1, 2)[:2])
    only_head, none = chunk(PathStream.FEW, b"\1\2\3"), chunk(PathStream.FEW, (9).to_bytes(4, "little"))
    too_long = chunk(PathStream.FEW, (9).to_bytes(4, "little") + entry(0, 1), claimed=1000)
    assert rises_of(tmp_path, cut_off, only_head, none, too_long) == {70: 1}
