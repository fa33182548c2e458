"""Takes a runtime out that a clew left in a process when it was killed.

Runs in the controller. Where the runtime is, is told by its start block, in memory that the process may have written to
since: at worst the process has its own mappings taken away.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from clew.address import Pid, RemoteAddress
from clew.errors import AttachError
from clew.process.detach import detach
from clew.process.identity import AREA_BYTES, is_inside, is_shared_memory
from clew.process.injection_plan import InjectionPlan
from clew.process.maps import Mapping, read_maps
from clew.process.processors.chosen import native_processor
from clew.protocol._constants import (
    LAYOUTS,
    MAGIC,
    SCHEMA_HASH,
    SESSION_HEADER_BYTES,
    START_BLOCK_BYTES,
    VERSION,
)
from clew.protocol.layout import field_offset, pack_struct, unpack_number

__all__ = ["take_out_leftover"]


def take_out_leftover(pid: Pid, *, is_given_up: Callable[[], bool] = lambda: False) -> bool:
    """Leave process `pid` in the place of a clew that was killed; False if there is nothing to be left.

    That clew is known to be gone. Raises AttachError if it can't be done.
    """
    mappings = read_maps(pid)
    if not any(is_shared_memory(one) and is_inside(one) for one in mappings):
        return False
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        page = _StatusPage(memory.fileno())
        plan = _find_plan(mappings, page)
        if plan is None or not page.find(plan):
            raise AttachError(
                pid,
                f"process {pid}: has a runtime of another clew, which was killed, and can't be taken out; restart it",
            )
        detach(pid, page, plan, is_given_up=is_given_up)
    return True


class _StatusPage:
    """What of the shared memory leaving takes, reached through the process' memory."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._status = 0

    def read(self, address: int, size_bytes: int) -> bytes:
        """Memory of the process; empty where there is none."""
        try:
            return os.pread(self._fd, size_bytes, address)
        except (OSError, OverflowError):
            return b""

    def find(self, plan: InjectionPlan) -> bool:
        """Whether the header of the region that is mapped is of this very protocol; or that is not mapped any more."""
        header = self.read(plan.shared_base, SESSION_HEADER_BYTES)
        known = pack_struct(
            "SessionHeader", magic=MAGIC, version=VERSION, header_bytes=SESSION_HEADER_BYTES, schema_hash=SCHEMA_HASH
        )[: field_offset("SessionHeader", "total_bytes")]
        if not header:
            return True
        if len(header) != SESSION_HEADER_BYTES or not header.startswith(known):
            return False
        offset = unpack_number(header, "SessionHeader", "status_offset")
        self._status = plan.shared_base + offset
        return 0 < offset < plan.shared_bytes

    def set_status_ticket(self, name: str, value: int) -> int:
        """Set u32 field `name` of the status page; its address."""
        address = self._status + field_offset("StatusPage", name)
        if self._status:
            os.pwrite(self._fd, value.to_bytes(4, "little"), address)
        return address


def _find_plan(mappings: Sequence[Mapping], memory: _StatusPage) -> InjectionPlan | None:
    """Where the runtime is: what a start block says, as far as that can be."""
    names = [name for name in LAYOUTS["StartBlock"][1] if name.endswith(("_base", "_bytes"))]
    own = native_processor().definition.own_fields["StartBlock"]
    for mapping in mappings:
        base = next((base for base in native_processor().bases if 0 < mapping.start - base < AREA_BYTES), None)
        block = memory.read(mapping.start, START_BLOCK_BYTES) if base is not None else b""
        if base is None or len(block) != START_BLOCK_BYTES:
            continue
        told = {name: unpack_number(block, "StartBlock", name) for name in names}
        starts = [told[name] for name in names if name.endswith("_base") and name not in own]
        if told["image_base"] != base or not all(base <= start < base + AREA_BYTES for start in starts):
            continue
        if not all(0 < told[name] < AREA_BYTES for name in names if name.endswith("_bytes")):
            continue
        return InjectionPlan(
            RemoteAddress(base),
            told["image_bytes"],
            mapping.start,
            mapping.end - mapping.start,
            RemoteAddress(told["anchor_base"]),
            RemoteAddress(told["shared_base"]),
            told["shared_bytes"],
            RemoteAddress(told["private_base"]),
            told["private_bytes"],
            RemoteAddress(told["heap_base"]),
            told["heap_bytes"],
        )
    return None
