"""The images of a process as events of LTTng-UST's state dump: readers name addresses by them.

Pure. Names and fields are those of LTTng-UST 2.13 (lttng_ust_statedump). `start` makes readers forget what they knew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from clew.export.probes.event_types import EventBatch, EventType, Field, Shape
from clew.export.probes.identity import EventImage, ProcessIdentity
from clew.protocol._constants import CaptureType

__all__ = ["STATEDUMP", "dump_images"]


# babeltrace2's filter debug-info takes no notice of events that come from nowhere.
_CONTEXTS: Final = (Field("ip", Shape.POINTER, is_present=True),)


def _type(name: str, **fields: CaptureType | Shape) -> EventType:
    listed = tuple(Field(field, kind, is_present=True) for field, kind in fields.items())
    return EventType(f"lttng_ust_statedump:{name}", listed, _CONTEXTS)


_U8, _U64, _TEXT = CaptureType.U8, CaptureType.U64, CaptureType.TEXT
_START: Final = _type("start")
_BIN_INFO: Final = _type(
    "bin_info",
    baddr=Shape.POINTER,
    memsz=_U64,
    path=_TEXT,
    is_pic=_U8,
    has_build_id=_U8,
    has_debug_link=_U8,
)
_BUILD_ID: Final = _type("build_id", baddr=Shape.POINTER, build_id=Shape.BYTES)
_END: Final = _type("end")

STATEDUMP: Final = frozenset({_START, _BIN_INFO, _BUILD_ID, _END})
"""The types of these events."""


def dump_images(process: ProcessIdentity, time_ns: int, images: Sequence[EventImage], number: int) -> EventBatch:
    """All images that a process has at some time. `number` rises from one dump to the next."""
    rows: dict[EventType, list[tuple[Any, ...]]] = {_START: [], _BIN_INFO: [], _BUILD_ID: [], _END: []}
    sequence = number << 32

    def add(event_type: EventType, *values: Any) -> None:
        nonlocal sequence
        rows[event_type].append((time_ns, sequence, process.pid, process.pid, process.name, None, 0, *values))
        sequence += 1

    add(_START)
    for image in images:
        build_id = bytes.fromhex(image.build_id)
        add(_BIN_INFO, image.base, image.size_bytes, image.path, int(image.is_movable), int(bool(build_id)), 0)
        if build_id:
            add(_BUILD_ID, image.base, build_id)
    add(_END)
    return EventBatch([(one, _table(one, own)) for one, own in rows.items() if own])


def _table(event_type: EventType, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    schema = event_type.schema
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), schema.types, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)
