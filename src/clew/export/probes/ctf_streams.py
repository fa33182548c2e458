"""The files of a CTF trace: its metadata, and streams of packets. Both only ever grow.

Runs in the controller. A reader may look at any time: a packet is there whole, and what says how to read it before it.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["NO_CPU", "MetadataFile", "Stream"]

Array = npt.NDArray[Any]

NO_CPU: Final = 0xFFFF_FFFF
"""What stands for a processor that is not known."""

# magic, uuid, checksum, content_size, packet_size (bits), compression, encryption, checksum scheme, major, minor.
_METADATA_HEADER: Final = struct.Struct("<I16sIIIBBBBB")
_METADATA_MAGIC: Final = 0x75D1_1D57
_METADATA_BYTES: Final = 32 << 10
# magic, uuid, stream_id, stream_instance_id; timestamp_begin, timestamp_end, content_size, packet_size (bits),
# packet_seq_num, events_discarded, cpu_id.
_PACKET_HEADER: Final = struct.Struct("<I16sIQQQQQQQI")
_PACKET_MAGIC: Final = 0xC1FC_1FC1
_MAX_GAP: Final = 1 << 32
"""From one event to the next, in ticks: a header has 32 bits of a time."""


def _append(path: Path, data: bytes | bytearray) -> None:
    """Add to a file all of `data` or nothing. Raises OSError.

    It is opened each time: there may be more streams than a process may have files open.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(file).st_size
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(file, left) :]
        except OSError:
            os.ftruncate(file, size)
            raise
    finally:
        os.close(file)


class MetadataFile:
    """The metadata, in packets as LTTng writes them (CTF 1.8, 7.1)."""

    def __init__(self, path: Path, uuid: bytes) -> None:
        self._path, self._uuid = path, uuid

    def add(self, text: str) -> None:
        """Add a text. Raises OSError."""
        raw, packets = text.encode(), bytearray()
        for start in range(0, len(raw), _METADATA_BYTES):
            piece = raw[start : start + _METADATA_BYTES]
            bits = 8 * (_METADATA_HEADER.size + len(piece))
            packets += _METADATA_HEADER.pack(_METADATA_MAGIC, self._uuid, 0, bits, bits, 0, 0, 0, 1, 8) + piece
        _append(self._path, packets)


class Stream:
    """One file of packets, with events of one processor in the order of time. `last` is the time of the latest, in
    ticks of the trace's clock."""

    def __init__(self, path: Path, uuid: bytes, ids: tuple[int, int, int], packet_bytes: int) -> None:
        """`ids`: of its channel, of the stream in that, of the processor."""
        self._path, self._uuid, self._packet_bytes = path, uuid, packet_bytes
        self._channel, self._instance, self._cpu = ids
        self._body = bytearray()
        self._begin = 0
        self._n_packets = 0
        self._n_lost = self._n_told = 0
        """Events that were lost, and of how many of them a packet tells."""
        self.last = 0

    @property
    def n_waiting(self) -> int:
        """Bytes that are in no packet yet."""
        return len(self._body)

    def add(self, records: Array, bounds: Array, times: Array) -> None:
        """Add events: the bytes of all; where each begins and, last, where they end; when each was (rising, i64, not
        before `last`). Raises OSError."""
        gaps = np.flatnonzero(np.diff(times) >= _MAX_GAP) + 1
        at = 0
        for end in [*gaps.tolist(), len(times)]:
            while at < end:
                begin = int(times[at])
                if begin - self.last >= _MAX_GAP:
                    self.flush()
                if not self._body:
                    self._begin = begin
                room = int(bounds[at]) + self._packet_bytes - len(self._body)
                # An event that is larger than a packet has a larger one to itself.
                stop = min(max(int(np.searchsorted(bounds, room, "right")) - 1, at), end)
                if stop == at and not self._body:
                    stop = at + 1
                self._body += records[bounds[at] : bounds[stop]].data
                if stop > at:
                    self.last = int(times[stop - 1])
                if stop < end or len(self._body) >= self._packet_bytes:
                    self.flush()
                at = stop

    def lose(self, time: int, count: int) -> None:
        """`count` events were lost here: the next packet tells of them. Raises OSError."""
        self.flush()
        if not self._n_packets:
            # Readers compare a packet with the one in front of it.
            self._write(self.last or time, self.last or time)
        self._n_lost += count
        self.last = max(self.last, time)

    def flush(self) -> None:
        """Write what waits, so that readers see it. Raises OSError."""
        if self._body:
            self._write(self._begin, self.last)

    def close(self) -> None:
        """The same, and what was lost behind the last event. Raises OSError."""
        self.flush()
        if self._n_lost > self._n_told:
            self._write(self.last, self.last)

    def _write(self, begin: int, end: int) -> None:
        bits = 8 * (_PACKET_HEADER.size + len(self._body))
        seen = begin, end, bits, bits, self._n_packets, self._n_lost, self._cpu
        header = _PACKET_HEADER.pack(_PACKET_MAGIC, self._uuid, self._channel, self._instance, *seen)
        _append(self._path, header + self._body)
        self._body.clear()
        self._n_packets += 1
        self._n_told = self._n_lost
