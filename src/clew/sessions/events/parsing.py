"""Events as plain tuples, for who takes them one by one.

Pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.errors import UsageError
from clew.protocol.codec import AccessKind, FlowKind
from clew.protocol.codec_layouts import FLOW_EVENT, VALUE_EVENT
from clew.sessions.events.told_events import TOLD_KINDS

__all__ = ["parse"]

Array = npt.NDArray[Any]


def parse(
    blob: bytes | Array,
    *,
    annotate: bool = True,
    stringify: bool = False,
    dtype: np.dtype[np.void] = FLOW_EVENT,
) -> list[tuple[str | int, ...]]:
    """Events of a batch, or the bytes of some, as tuples: `call` and `ret` have where they are, where they lead and how
    many calls were open; `block`, `compile` and `image` begin and end; `exec` has the instruction's address; `memory`
    that, the memory's, how many bytes, the value, and `read`, `write` or `update`; the others have an address and a
    number: of the system call or signal, or of a thread 1 where it begins, 0 where it ends.

    Bytes are of `dtype`, which is the stream's. With `annotate` the kind's name comes first. With `stringify` addresses
    are texts such as "0x401136", else numbers. Raises UsageError for bytes that are no whole events, or of no kind that
    there is.
    """
    try:
        rows = np.frombuffer(blob, dtype) if isinstance(blob, bytes | bytearray | memoryview) else blob
    except ValueError as error:
        raise UsageError(f"events of {dtype.itemsize} bytes each: {error}") from error
    if rows.dtype not in (FLOW_EVENT, VALUE_EVENT):
        raise UsageError(f"an array of {rows.dtype}, not of events")
    names = {int(kind): kind.name.lower() for kind in FlowKind}
    unknown = set(np.unique(rows["kind"]).tolist()) - names.keys()
    if unknown:
        raise UsageError(f"events of kind {min(unknown)}: there are {', '.join(names.values())}")
    columns = [rows[name].tolist() for name in ("kind", "address", "target", "size", "depth", "access")]
    columns.append(rows["value"].tolist() if rows.dtype == VALUE_EVENT else [0] * len(rows))
    tell = hex if stringify else int
    parsed: list[tuple[str | int, ...]] = []
    for kind, address, target, size, depth, access, value in zip(*columns, strict=True):
        content: tuple[str | int, ...]
        if kind in (FlowKind.CALL, FlowKind.RET):
            content = tell(address), tell(target), depth
        elif kind == FlowKind.EXEC:
            content = (tell(address),)
        elif kind == FlowKind.MEMORY:
            accesses = {int(one): one.name.lower() for one in AccessKind}
            content = tell(address), tell(target), size, value, accesses.get(access, "")
        elif TOLD_KINDS >> kind & 1:
            content = tell(address), target
        else:
            content = tell(address), tell(address + size)
        parsed.append((names[kind], *content) if annotate else content)
    return parsed
