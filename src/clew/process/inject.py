"""Puts the runtime into a stopped process, so that it starts in the runtime's hands.

Runs in the controller. Where everything goes is `injection_plan`'s to say. The memfd of the shared memory is made in
the target, opened here through /proc, and closed in the target before it runs: so it needs no right to look at clew,
may be another user's or in another root, and its own descriptors get the numbers that they get natively. The anchor is
the file's first page. What the runtime does is not known here.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from typing import Final

from clew.address import RemoteAddress
from clew.errors import InjectionError, RemoteCallError, TargetError
from clew.process.injection_plan import InjectionPlan, plan_injection
from clew.process.linux import (
    MADV_DONTDUMP,
    MAP_ANONYMOUS,
    MAP_FIXED,
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
from clew.process.maps import Mapping
from clew.process.processors.processor import Registers
from clew.process.refuge import refuge
from clew.process.runtime_image import RuntimeImage
from clew.process.shared_layout import PAGE_BYTES, SharedLayout
from clew.process.shared_memory import MEMFD_NAME, HeaderSettings, SharedFile, SharedMemory
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import Role
from clew.protocol.layout import pack_struct

__all__ = ["inject", "map_runtime", "start_block", "unmap_runtime"]

_MAX_RANGES: Final = 160


def inject(
    process: StoppedProcess,
    image: RuntimeImage,
    layout: SharedLayout,
    heap_bytes: int,
    settings: HeaderSettings,
    mappings: list[Mapping],
    *,
    is_paused: bool = False,
) -> tuple[SharedMemory, InjectionPlan]:
    """Map the runtime into `process`, which has `mappings`, and make it start there. The caller detaches.

    Gives the shared memory, which is made for it, and where everything is. Raises InjectionError if that can't be done;
    the process has to be killed then, or given back its registers. Nothing is left in it.
    """
    bases = process.processor.bases
    plan = plan_injection(image.memory_bytes, layout, heap_bytes, mappings, process.pid, bases=bases)

    def make_shared(fd: int) -> SharedMemory:
        return SharedMemory(SharedFile(layout, fd), settings, is_paused=is_paused)

    block = start_block(process, process.registers, plan, mappings)
    with refuge(process, mappings), contextlib.ExitStack() as undo:
        undo.callback(unmap_runtime, process, plan)
        shared = map_runtime(process, image, plan, layout, block, make_shared)
        undo.pop_all()
    process.registers.pc = plan.image_base + image.entry_offset
    process.registers.argument = plan.start_block
    return shared, plan


def map_runtime(
    process: StoppedProcess,
    image: RuntimeImage,
    plan: InjectionPlan,
    layout: SharedLayout,
    block: bytes,
    make_shared: Callable[[int], SharedMemory],
) -> SharedMemory:
    """Map everything, and write the start block `block`; the shared memory that `make_shared` made of an empty memfd.

    Raises InjectionError.
    """
    try:
        _map_image(process, image, plan)
        _map_private(process, plan.start_block, plan.start_block_bytes, PROT_READ | PROT_WRITE)
        # Before the shared memory: who finds that later finds out what else is mapped.
        process.write(plan.start_block, block)
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
    content = image.relocated(plan.image_base)
    process.write(plan.image_base, content)
    for segment in image.segments:
        start = RemoteAddress(plan.image_base + segment.offset)
        try:
            process.call("mprotect", start, segment.size_bytes, segment.protection)
        except RemoteCallError as error:
            if error.errno not in (errno.EACCES, errno.EPERM):
                raise
            # Nothing becomes executable here that was not so from the first (PR_SET_MDWE); it is written from outside.
            flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED
            process.call("mmap", start, segment.size_bytes, segment.protection, flags, -1, 0)
            process.write(start, content[segment.offset : segment.offset + segment.size_bytes])


def _map_private(process: StoppedProcess, address: RemoteAddress, size_bytes: int, protection: int) -> None:
    flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
    _expect(process, address, process.call("mmap", address, size_bytes, protection, flags, -1, 0))


def _map_shared(
    process: StoppedProcess, layout: SharedLayout, plan: InjectionPlan, make_shared: Callable[[int], SharedMemory]
) -> SharedMemory:
    process.write(plan.scratch, MEMFD_NAME.encode() + b"\0")
    fd = process.call("memfd_create", plan.scratch, MFD_CLOEXEC | MFD_ALLOW_SEALING)
    try:
        shared = make_shared(_open_memfd(process, fd))
        try:
            flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE
            for base, size_bytes in ((plan.shared_base, layout.total_bytes), (plan.anchor_base, PAGE_BYTES)):
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


def unmap_runtime(process: StoppedProcess, plan: InjectionPlan) -> None:
    """Take back what was mapped, as far as that is possible: nothing was there before."""
    for address, size_bytes in plan.regions:
        with contextlib.suppress(OSError, TargetError):
            process.call("munmap", address, size_bytes)


def _expect(process: StoppedProcess, wanted: RemoteAddress, address: int) -> None:
    # A kernel before 4.17 takes MAP_FIXED_NOREPLACE as a hint.
    if address != wanted:
        raise InjectionError(process.pid, f"process {process.pid}: mapped at {address:#x} instead of {wanted:#x}")


def start_block(
    process: StoppedProcess,
    registers: Registers,
    plan: InjectionPlan,
    mappings: list[Mapping],
    role: Role = Role.ENGINE,
) -> bytes:
    """The bytes of the start block, for a process where `mappings` were mapped before the runtime was, and that begins
    with `registers`."""
    executable = [mapping for mapping in mappings if mapping.protection & PROT_EXEC]
    if len(executable) > _MAX_RANGES:
        raise InjectionError(process.pid, f"process {process.pid}: more than {_MAX_RANGES} executable mappings")
    ranges = [value for mapping in executable for value in (mapping.start, mapping.end, mapping.protection)]
    return pack_struct(
        "StartBlock",
        anchor_base=plan.anchor_base,
        shared_base=plan.shared_base,
        shared_bytes=plan.shared_bytes,
        image_base=plan.image_base,
        image_bytes=plan.image_bytes,
        private_base=plan.private_base,
        private_bytes=plan.private_bytes,
        heap_base=plan.heap_base,
        heap_bytes=plan.heap_bytes,
        range_count=len(executable),
        control_block=plan.control_block,
        role=role,
        ranges=ranges,
        **process.processor.start_fields(registers),
    )


def _explain(error: RemoteCallError) -> str:
    if error.name == "mmap" and error.errno == errno.ENOMEM:
        return "no address space for the runtime in the target; look at `ulimit -v` and at the memory limit (cgroup)"
    if error.name == "memfd_create":
        return (
            f"the target can't make the shared memory (memfd_create: {os.strerror(error.errno)}); look at `ulimit -n`"
        )
    return error.message
