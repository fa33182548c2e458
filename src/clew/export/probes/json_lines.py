"""Events as JSON, one object a line, as events.schema.json describes them.

Runs in the controller.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TextIO

from clew.export.probes.event_types import EventBatch, Field, Loss
from clew.export.probes.names import Names
from clew.export.probes.rows import Event, TimeOrder
from clew.export.probes.value_text import to_json

__all__ = ["JsonLinesWriter", "named_values"]


class JsonLinesWriter:
    """Writes lines to `file`."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._order = TimeOrder()

    def write(self, batch: EventBatch) -> None:
        """Write what is next in time. Raises OSError."""
        self._write(self._order.add(batch))

    def close(self) -> None:
        """Write what waited. Raises OSError."""
        self._write(self._order.close())

    def _write(self, found: Sequence[Event | Loss]) -> None:
        self._file.writelines(json.dumps(_to_object(one)) + "\n" for one in found)
        self._file.flush()


def _to_object(one: Event | Loss) -> dict[str, Any]:
    if isinstance(one, Loss):
        return {"time_ns": one.time_ns, "pid": one.pid, "tid": one.tid, "lost": one.count}
    return {
        "time_ns": one.time_ns,
        "sequence": one.sequence,
        "pid": one.pid,
        "tid": one.tid,
        "comm": one.comm.decode(errors="surrogateescape"),
        "cpu": one.cpu,
        "event": one.type.name,
        "kind": one.type.kind.value,
        "function": one.type.function or None,
        "contexts": named_values(one.type.contexts, one.contexts),
        "fields": named_values(one.type.fields, one.fields),
    }


def named_values(fields: Sequence[Field], values: Sequence[Any]) -> dict[str, Any]:
    """Values of JSON by the names of their fields; a name that is there twice has a number behind it."""
    named = {field.name: to_json(field, value) for field, value in zip(fields, values, strict=True)}
    if len(named) < len(fields):
        names = Names(str)
        named = {names.give(field.name): to_json(field, value) for field, value in zip(fields, values, strict=True)}
    return named
