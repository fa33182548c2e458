"""Where the runtime goes in a process: its parts and their addresses, chosen before anything is mapped.

Runs in the controller. Everything is far away from where brk, mmap and the stack grow, so that the program gets the
addresses that it gets natively:

    image | start block | anchor | shared memory | private blocks of threads (reserved) | heap of the runtime (reserved)

Behind the start block's own page lie the control block, the states of threads that are there already, and a stack that
nobody uses before the process is left. A fork's child has everything where its parent has it.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.dataclass import dataclass, replace
from clew.errors import InjectionError
from clew.process.maps import Mapping, read_address_space_limit
from clew.process.shared_layout import PAGE_BYTES, SharedLayout
from clew.protocol._constants import (
    CONTROL_BLOCK_BYTES,
    START_BLOCK_BYTES,
    THREAD_STATE_BYTES,
    THREAD_STRIDE_BYTES,
)

__all__ = ["HEAP_BYTES", "MIN_HEAP_BYTES", "InjectionPlan", "layout_for_limits", "plan_injection"]

HEAP_BYTES: Final = 64 << 30
MIN_HEAP_BYTES: Final = 512 << 20
"""With less of it even a small program would find the runtime's tables full."""

MIN_THREADS: Final = 16
MIN_COUNTER_BYTES: Final = 4 << 20

_ALIGNMENT: Final = 2 << 20
STACK_BYTES: Final = 1 << 16


@dataclass(frozen=True)
class InjectionPlan:
    """Where everything goes, and how much of it there is."""

    image_base: RemoteAddress
    image_bytes: int
    start_block: RemoteAddress
    start_block_bytes: int
    anchor_base: RemoteAddress
    shared_base: RemoteAddress
    shared_bytes: int
    private_base: RemoteAddress
    private_bytes: int
    heap_base: RemoteAddress
    heap_bytes: int

    @property
    def end(self) -> int:
        return self.heap_base + self.heap_bytes

    @property
    def control_block(self) -> RemoteAddress:
        return RemoteAddress(self.start_block + START_BLOCK_BYTES)

    @property
    def thread_states(self) -> RemoteAddress:
        return RemoteAddress(self.control_block + CONTROL_BLOCK_BYTES)

    @property
    def stack_end(self) -> RemoteAddress:
        """The end of a stack that nobody uses."""
        return RemoteAddress(self.start_block + self.start_block_bytes)

    @property
    def scratch(self) -> RemoteAddress:
        """Where calls made in the process may read and write a few bytes."""
        return RemoteAddress(self.stack_end - 256)

    @property
    def regions(self) -> tuple[tuple[RemoteAddress, int], ...]:
        """Address and size of all that is mapped; the image is the last, as calls may be made in it."""
        return (
            (self.heap_base, self.heap_bytes),
            (self.private_base, self.private_bytes),
            (self.shared_base, self.shared_bytes),
            (self.anchor_base, PAGE_BYTES),
            (self.start_block, self.start_block_bytes),
            (self.image_base, self.image_bytes),
        )

    def is_in_image(self, pc: int) -> bool:
        """Whether `pc` is in the runtime's own code."""
        return 0 <= pc - self.image_base < self.image_bytes

    def is_private(self, address: int) -> bool:
        """Whether `address` is in a thread's private block."""
        return 0 <= address - self.private_base < self.private_bytes


def layout_for_limits(layout: SharedLayout, pid: int = 0) -> tuple[SharedLayout, int]:
    """`layout` and the heap's size, made smaller if the address space of `pid` (0: clew, and so its child) is limited.

    Half of what the limit leaves is kept for the program. Raises InjectionError if the rest is not enough.
    """
    limit = read_address_space_limit(Pid(pid)) if pid else resource.prlimit(0, resource.RLIMIT_AS)[0]
    heap_bytes = HEAP_BYTES
    if limit == resource.RLIM_INFINITY:
        return layout, heap_bytes
    while _address_space_bytes(layout, heap_bytes) > limit // 2:
        if heap_bytes > MIN_HEAP_BYTES and heap_bytes > layout.max_threads * THREAD_STRIDE_BYTES:
            heap_bytes = max(heap_bytes // 2, MIN_HEAP_BYTES)
        elif layout.max_threads > MIN_THREADS:
            layout = replace(layout, max_threads=layout.max_threads // 2)
        elif layout.counter_bytes > MIN_COUNTER_BYTES:
            layout = replace(layout, counter_bytes=layout.counter_bytes // 2)
        elif heap_bytes > MIN_HEAP_BYTES:
            heap_bytes = max(heap_bytes // 2, MIN_HEAP_BYTES)
        else:
            needed = 2 * _address_space_bytes(layout, heap_bytes)
            raise InjectionError(
                pid,
                f"the address space is limited to {limit >> 20} MiB, and recording needs a limit of at least "
                f"{-(-needed >> 20)} MiB; raise it with `ulimit -v`",
            )
    return layout, heap_bytes


def plan_injection(
    image_bytes: int,
    layout: SharedLayout,
    heap_bytes: int,
    mappings: list[Mapping],
    pid: int = 0,
    *,
    bases: Sequence[int],
    n_threads: int = 0,
) -> InjectionPlan:
    """Choose addresses: the first of `bases` where everything fits between `mappings`, always the same if it is free.

    `n_threads`: how many there are already. Raises InjectionError.
    """
    control_bytes = _align_up(CONTROL_BLOCK_BYTES + n_threads * THREAD_STATE_BYTES, PAGE_BYTES)
    start_block_bytes = START_BLOCK_BYTES + control_bytes + STACK_BYTES
    for base in bases:
        start_block = _align_up(base + image_bytes + _ALIGNMENT)
        anchor_base = _align_up(start_block + start_block_bytes + _ALIGNMENT)
        shared_base = _align_up(anchor_base + PAGE_BYTES + _ALIGNMENT)
        private_base = _align_up(shared_base + layout.total_bytes + _ALIGNMENT)
        private_bytes = layout.max_threads * THREAD_STRIDE_BYTES
        heap_base = _align_up(private_base + private_bytes + _ALIGNMENT)
        plan = InjectionPlan(
            RemoteAddress(base),
            image_bytes,
            RemoteAddress(start_block),
            start_block_bytes,
            RemoteAddress(anchor_base),
            RemoteAddress(shared_base),
            layout.total_bytes,
            RemoteAddress(private_base),
            private_bytes,
            RemoteAddress(heap_base),
            heap_bytes,
        )
        if not any(mapping.start < plan.end and base < mapping.end for mapping in mappings):
            return plan
    raise InjectionError(pid, f"process {pid}: found no room for the runtime in its address space")


def _address_space_bytes(layout: SharedLayout, heap_bytes: int) -> int:
    return layout.total_bytes + layout.max_threads * THREAD_STRIDE_BYTES + heap_bytes + (64 << 20)


def _align_up(value: int, alignment: int = _ALIGNMENT) -> int:
    return -(-value // alignment) * alignment
