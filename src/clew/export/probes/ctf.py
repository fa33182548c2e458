"""Export of probes' events to CTF 1.8, laid out as LTTng-UST 2.13 lays its traces out: babeltrace2 reads it, alone or
merged with traces of LTTng.

Runs in the controller. A trace is a folder that grows while events come; what is there at any time is a whole trace.
LTTng's files `index/*.idx` are not written: readers do without, and what is said once can't contradict itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from clew.export.probes.ctf_channels import MAX_TYPES, Channel, TypeRows
from clew.export.probes.ctf_layout import CtfStruct, lay_out
from clew.export.probes.ctf_statedump import STATEDUMP, dump_images
from clew.export.probes.ctf_streams import MetadataFile
from clew.export.probes.event_types import EventBatch, EventType, Field, Loss
from clew.export.probes.identity import EventImage, Host, ProcessIdentity
from clew.export.probes.names import Names, make_file_name, make_title
from clew.export.probes.tsdl import OWN_CONTEXTS, event_text, preamble_text, stream_text, time_text

__all__ = ["CtfTrace", "process_folder", "user_folder"]

PACKET_BYTES: Final = 256 << 10
MAX_WAITING_BYTES: Final = 64 << 20
"""More than that is written, packets being full or not: there may be hundreds of processors."""


def process_folder(root: Path, process: ProcessIdentity) -> Path:
    """Where LTTng has the trace of a process in its own buffers."""
    time = datetime.fromtimestamp(process.start_ns // 1_000_000_000, UTC).strftime("%Y%m%d-%H%M%S")
    name = make_file_name(process.name.split(b"\0")[0].decode(errors="replace"))
    return root / "ust" / "pid" / f"{name}-{process.pid}-{time}"


def user_folder(root: Path, uid: int, bits: int = 64) -> Path:
    """Where LTTng has the trace of all of a user's processes, in shared buffers."""
    return root / "ust" / "uid" / str(uid) / f"{bits}-bit"


class CtfTrace:
    """A trace that is written: of one process, or of all of a user's, whose number is given instead.

    Written in one thread. Whatever is called may raise OSError: the trace is as it was before then.
    """

    def __init__(
        self,
        folder: Path,
        owner: ProcessIdentity | int,
        host: Host,
        name: str,
        created_ns: int,
        packet_bytes: int = PACKET_BYTES,
    ) -> None:
        """Begin a trace in `folder`, which is made and must not be there; `name` is the session's. Raises OSError."""
        folder.mkdir(parents=True)
        uuid = uuid4()
        self._folder, self._uuid, self._packet_bytes = folder, uuid.bytes, packet_bytes
        self._offset_ns = host.clock.offset_ns
        self._metadata = MetadataFile(folder / "metadata", uuid.bytes)
        self._metadata.add(_preamble(uuid, owner, host, name, created_ns))
        self._channels: list[Channel] = []
        self._by_contexts: dict[object, Channel] = {}
        self._types: dict[EventType, tuple[Channel, int, CtfStruct]] = {}
        self._titles = Names(make_title)
        for one in STATEDUMP:
            self._titles.give(one.name)
        self._n_statedumps = 0

    def add_type(self, event_type: EventType) -> None:
        """Declare a type of events; those that come undeclared are declared then. Raises OSError."""
        self._add_types([event_type])

    def write(self, batch: EventBatch) -> None:
        """Write events, and what was lost behind them. Raises ValueError if a table is not of its type, OSError."""
        for event_type, table in batch.tables:
            event_type.check(table)
        self._write(batch)
        if sum(channel.n_waiting for channel in self._channels) > MAX_WAITING_BYTES:
            self.flush()

    def write_images(self, process: ProcessIdentity, time_ns: int, images: Sequence[EventImage]) -> None:
        """Tell which images a process has from some time on: all of them, each time. Raises OSError.

        As events of LTTng's state dump: with them babeltrace2 names the places of contexts `ip`.
        """
        self._n_statedumps += 1
        self._write(dump_images(process, time_ns, images, self._n_statedumps))

    def end_thread(self, pid: int, tid: int) -> None:
        """Nothing more comes of a thread: what is kept of it is let go of."""
        for channel in self._channels:
            channel.end_thread((pid, tid))

    def flush(self) -> None:
        """Write all that was given, so that readers see it. Raises OSError."""
        for channel in self._channels:
            channel.flush()

    def close(self) -> None:
        """End the trace. Raises OSError."""
        for channel in self._channels:
            channel.close()

    def _write(self, batch: EventBatch) -> None:
        self._add_types([event_type for event_type, _ in batch.tables])
        rows: dict[int, list[TypeRows]] = {}
        for event_type, table in batch.tables:
            channel, event_id, fields = self._types[event_type]
            rows.setdefault(channel.number, []).append((event_id, fields, table))
        losses: dict[int, list[Loss]] = {}
        for loss in batch.losses:
            losses.setdefault(self._find_losing(loss, batch).number, []).append(loss)
        for number in sorted(rows.keys() | losses.keys()):
            self._channels[number].add(rows.get(number, []), losses.get(number, []), self._offset_ns)

    def _find_losing(self, loss: Loss, batch: EventBatch) -> Channel:
        """The channel that tells of a loss: one that has events of the thread, or may get some now."""
        now = [self._types[event_type][0] for event_type, _ in batch.tables]
        others = [channel for key, channel in self._by_contexts.items() if key is not STATEDUMP]
        if not others:
            self._metadata.add(self._open_channel(()))
            others = [self._channels[-1]]
        has = (one for one in others if one.has((loss.pid, loss.tid)))
        return next(has, now[0] if now else others[0])

    def _add_types(self, event_types: Sequence[EventType]) -> None:
        """Declare what is not declared yet: all of it is there before any of its events."""
        texts = []
        for event_type in event_types:
            if event_type in self._types:
                continue
            # Apart from all others: it is told when it is known, which may be long behind.
            key = STATEDUMP if event_type in STATEDUMP else event_type.contexts
            channel = self._by_contexts.get(key)
            if channel is None or channel.n_types == MAX_TYPES:
                texts.append(self._open_channel(event_type.contexts, key))
                channel = self._by_contexts[key]
            fields = lay_out(event_type.fields)
            title = event_type.name if event_type in STATEDUMP else self._titles.give(event_type.name)
            texts.append(event_text(channel.n_types, channel.number, title, fields))
            self._types[event_type] = channel, channel.n_types, fields
            channel.n_types += 1
        if texts:
            self._metadata.add("".join(texts))

    def _open_channel(self, contexts: tuple[Field, ...], key: object = ()) -> str:
        """Make one more channel; its metadata."""
        struct = lay_out(contexts, OWN_CONTEXTS)
        channel = Channel(self._folder, self._uuid, len(self._channels), struct, self._packet_bytes)
        self._channels.append(channel)
        self._by_contexts[key] = channel
        return stream_text(channel.number, struct)


def _preamble(uuid: UUID, owner: ProcessIdentity | int, host: Host, name: str, created_ns: int) -> str:
    """What the metadata begins with. Readers tell LTTng's traces by `domain` and `tracer_name`."""
    env: dict[str, str | bytes | int] = {
        "domain": "ust",
        "tracer_name": "lttng-ust",
        "tracer_major": 2,
        "tracer_minor": 13,
        "tracer_buffering_scheme": "uid" if isinstance(owner, int) else "pid",
        "tracer_buffering_id": owner if isinstance(owner, int) else owner.pid,
        "architecture_bit_width": 64,
        "trace_name": name,
        "trace_creation_datetime": time_text(created_ns),
        "hostname": host.name,
    }
    if not isinstance(owner, int):
        env |= {"vpid": owner.pid, "procname": owner.name, "vpid_datetime": time_text(owner.start_ns)}
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", host.clock.boot_id):
        raise ValueError(f"{host.clock.boot_id!r} is no boot id")
    return preamble_text(str(uuid), host.clock, env)
