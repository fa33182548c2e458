"""Puts the runtime into a stopped process, so that it starts in the runtime's hands.

Runs in the controller. Five mappings are made, far away from where brk, mmap and the stack grow, so that the program
gets the addresses that it gets natively:

    image | start block | anchor | shared memory | private blocks of threads (reserved) | heap of the runtime (reserved)

The memfd of the shared memory is made in the target, opened here through /proc, and closed in the target before it
runs: so it needs no right to look at clew, may be another user's or in another root, and its own descriptors get the
numbers that they get natively. The anchor is the file's first page. What the runtime does is not known here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.errors import InjectionError, RemoteCallError, TargetError
from clew.process.linux import (
    AT_HWCAP2,
    MADV_DONTDUMP,
    MAP_ANONYMOUS,
    MAP_FIXED_NOREPLACE,
    MAP_NORESERVE,
    MAP_PRIVATE,
    MAP_SHARED,
    MFD_ALLOW_SEALING,
    MFD_CLOEXEC,
    PROT_EXEC,
    PROT_NONE,
    PROT_READ,
    PROT_WRITE,
)
from clew.process.maps import Mapping, read_address_space_limit, read_auxiliary_vector, read_maps
from clew.process.ptrace import UserRegisters
from clew.process.runtime_image import RuntimeImage
from clew.process.shared_memory import MEMFD_NAME, HeaderSettings, SharedFile, SharedLayout, SharedMemory
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import START_BLOCK_BYTES, THREAD_STRIDE_BYTES
from clew.protocol.layout import pack_struct

__all__ = ["InjectionPlan", "inject", "layout_for_limits", "map_runtime", "plan_injection", "start_block"]

BASES: Final = (0x2A0000000000, 0x3A0000000000, 0x1A0000000000, 0x4A0000000000)
"""Where to map, in order of preference: none is near a heap, a stack, a library or a sanitizer's shadow memory."""

HEAP_BYTES: Final = 64 << 30
MIN_HEAP_BYTES: Final = 512 << 20
"""With less of it even a small program would find the runtime's tables full."""

MIN_THREADS: Final = 16
MIN_COUNTER_BYTES: Final = 4 << 20

_ALIGNMENT: Final = 2 << 20
_PAGE_BYTES: Final = 4096
_MAX_RANGES: Final = 160
_REGISTERS: Final = (
    *("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"),
    *("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
)
_HWCAP2_FSGSBASE: Final = 2


@dataclass(frozen=True)
class InjectionPlan:
    """Where everything goes."""

    image_base: RemoteAddress
    start_block: RemoteAddress
    anchor_base: RemoteAddress
    shared_base: RemoteAddress
    private_base: RemoteAddress
    private_bytes: int
    heap_base: RemoteAddress
    heap_bytes: int

    @property
    def end(self) -> int:
        return self.heap_base + self.heap_bytes


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
    start_block_bytes: int = START_BLOCK_BYTES,
) -> InjectionPlan:
    """Choose addresses: the first base at which everything fits between `mappings`, always the same if it is free."""
    for base in BASES:
        start_block = _align_up(base + image_bytes + _ALIGNMENT)
        anchor_base = _align_up(start_block + start_block_bytes + _ALIGNMENT)
        shared_base = _align_up(anchor_base + _PAGE_BYTES + _ALIGNMENT)
        private_base = _align_up(shared_base + layout.total_bytes + _ALIGNMENT)
        private_bytes = layout.max_threads * THREAD_STRIDE_BYTES
        heap_base = _align_up(private_base + private_bytes + _ALIGNMENT)
        plan = InjectionPlan(
            RemoteAddress(base),
            RemoteAddress(start_block),
            RemoteAddress(anchor_base),
            RemoteAddress(shared_base),
            RemoteAddress(private_base),
            private_bytes,
            RemoteAddress(heap_base),
            heap_bytes,
        )
        if not any(mapping.start < plan.end and base < mapping.end for mapping in mappings):
            return plan
    raise InjectionError(pid, f"process {pid}: found no room for the runtime in its address space")


def inject(
    process: StoppedProcess,
    image: RuntimeImage,
    layout: SharedLayout,
    heap_bytes: int,
    settings: HeaderSettings,
    *,
    is_paused: bool = False,
) -> SharedMemory:
    """Map the runtime into `process`, with shared memory made for it, and make it start there. The caller detaches.

    Raises InjectionError if that can't be done; the process has to be killed then, or given back its registers. Nothing
    is left in it.
    """
    mappings = read_maps(process.pid)
    plan = plan_injection(image.memory_bytes, layout, heap_bytes, mappings, process.pid)

    def make_shared(fd: int) -> SharedMemory:
        return SharedMemory(SharedFile(layout, fd), settings, is_paused=is_paused)

    with contextlib.ExitStack() as undo:
        undo.callback(_unmap, process, image, plan, layout)
        shared = map_runtime(process, image, plan, layout, START_BLOCK_BYTES, make_shared)
        undo.callback(shared.close)
        process.write(plan.start_block, start_block(process.pid, process.registers, image, layout, plan, mappings))
        undo.pop_all()
    process.registers.rip = plan.image_base + image.entry_offset
    process.registers.rdi = plan.start_block
    return shared


def map_runtime(
    process: StoppedProcess,
    image: RuntimeImage,
    plan: InjectionPlan,
    layout: SharedLayout,
    start_block_bytes: int,
    make_shared: Callable[[int], SharedMemory],
) -> SharedMemory:
    """Map everything; the shared memory that `make_shared` made of an empty memfd. Raises InjectionError."""
    try:
        _map_image(process, image, plan)
        _map_private(process, plan.start_block, start_block_bytes, PROT_READ | PROT_WRITE)
        shared = _map_shared(process, layout, plan, make_shared)
        try:
            _map_private(process, plan.private_base, plan.private_bytes, PROT_NONE)
            _map_private(process, plan.heap_base, plan.heap_bytes, PROT_NONE)
        except BaseException:
            shared.close()
            raise
        return shared
    except RemoteCallError as error:
        raise InjectionError(process.pid, _explain(error)) from error


def _map_image(process: StoppedProcess, image: RuntimeImage, plan: InjectionPlan) -> None:
    _map_private(process, plan.image_base, image.memory_bytes, PROT_READ | PROT_WRITE)
    process.write(plan.image_base, image.relocated(plan.image_base))
    for segment in image.segments:
        process.call("mprotect", plan.image_base + segment.offset, segment.size_bytes, segment.protection)


def _map_private(process: StoppedProcess, address: RemoteAddress, size_bytes: int, protection: int) -> None:
    flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
    _expect(process, address, process.call("mmap", address, size_bytes, protection, flags, -1, 0))


def _map_shared(
    process: StoppedProcess, layout: SharedLayout, plan: InjectionPlan, make_shared: Callable[[int], SharedMemory]
) -> SharedMemory:
    # The start block is still empty: its page lends room for the name.
    process.write(plan.start_block, MEMFD_NAME.encode() + b"\0")
    fd = process.call("memfd_create", plan.start_block, MFD_CLOEXEC | MFD_ALLOW_SEALING)
    try:
        shared = make_shared(_open_memfd(process, fd))
        try:
            flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE
            for base, size_bytes in ((plan.shared_base, layout.total_bytes), (plan.anchor_base, _PAGE_BYTES)):
                _expect(process, base, process.call("mmap", base, size_bytes, PROT_READ | PROT_WRITE, flags, fd, 0))
                # A core dump of the program is the program's: gigabytes of counters don't belong in it.
                process.call("madvise", base, size_bytes, MADV_DONTDUMP)
        except BaseException:
            shared.close()
            raise
    except BaseException:
        with contextlib.suppress(OSError, TargetError):
            process.call("close", fd)
        raise
    process.call("close", fd)
    return shared


def _open_memfd(process: StoppedProcess, fd: int) -> int:
    try:
        return os.open(f"/proc/{process.task}/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise InjectionError(
            process.pid, f"process {process.pid}: its shared memory can't be opened ({error}); is /proc mounted?"
        ) from error


def _unmap(process: StoppedProcess, image: RuntimeImage, plan: InjectionPlan, layout: SharedLayout) -> None:
    """Take back what was mapped, where nothing was before."""
    for address, size_bytes in (
        (plan.image_base, image.memory_bytes),
        (plan.start_block, START_BLOCK_BYTES),
        (plan.anchor_base, _PAGE_BYTES),
        (plan.shared_base, layout.total_bytes),
        (plan.private_base, plan.private_bytes),
        (plan.heap_base, plan.heap_bytes),
    ):
        with contextlib.suppress(OSError, TargetError):
            process.call("munmap", address, size_bytes)


def _expect(process: StoppedProcess, wanted: RemoteAddress, address: int) -> None:
    # A kernel before 4.17 takes MAP_FIXED_NOREPLACE as a hint.
    if address != wanted:
        raise InjectionError(process.pid, f"process {process.pid}: mapped at {address:#x} instead of {wanted:#x}")


def start_block(
    pid: Pid,
    registers: UserRegisters,
    image: RuntimeImage,
    layout: SharedLayout,
    plan: InjectionPlan,
    mappings: list[Mapping],
    *,
    attach_block: RemoteAddress | None = None,
) -> bytes:
    """The bytes of the start block, for a process where `mappings` were mapped before the runtime was."""
    executable = [mapping for mapping in mappings if mapping.protection & PROT_EXEC]
    if len(executable) > _MAX_RANGES:
        raise InjectionError(pid, f"process {pid}: more than {_MAX_RANGES} executable mappings")
    ranges = [value for mapping in executable for value in (mapping.start, mapping.end, mapping.protection)]
    return pack_struct(
        "StartBlock",
        anchor_base=plan.anchor_base,
        shared_base=plan.shared_base,
        shared_bytes=layout.total_bytes,
        image_base=plan.image_base,
        image_bytes=image.memory_bytes,
        private_base=plan.private_base,
        private_bytes=plan.private_bytes,
        heap_base=plan.heap_base,
        heap_bytes=plan.heap_bytes,
        registers=[getattr(registers, name) for name in _REGISTERS],
        rip=registers.rip,
        rflags=registers.eflags,
        fs_base=registers.fs_base,
        gs_base=registers.gs_base,
        range_count=len(executable),
        has_fsgsbase=bool(read_auxiliary_vector(pid).get(AT_HWCAP2, 0) & _HWCAP2_FSGSBASE),
        attach_block=attach_block or 0,
        ranges=ranges,
    )


def _explain(error: RemoteCallError) -> str:
    if error.name == "mmap" and error.errno == errno.ENOMEM:
        return "no address space for the runtime in the target; look at `ulimit -v` and at the memory limit (cgroup)"
    if error.name == "memfd_create":
        return (
            f"the target can't make the shared memory (memfd_create: {os.strerror(error.errno)}); look at `ulimit -n`"
        )
    return error.message


def _address_space_bytes(layout: SharedLayout, heap_bytes: int) -> int:
    return layout.total_bytes + layout.max_threads * THREAD_STRIDE_BYTES + heap_bytes + (64 << 20)


def _align_up(value: int) -> int:
    return -(-value // _ALIGNMENT) * _ALIGNMENT
