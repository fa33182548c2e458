"""A session's target for drgn: its memory, its images with what debugging information they have, stacks of its threads.

Runs in the controller, in any thread. drgn is not part of clew: it is imported when it is asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.errors import TargetError, UsageError
from clew.process.identity import AREA_BYTES
from clew.process.processors.chosen import native_processor

if TYPE_CHECKING:
    import drgn

    from clew.sessions.target import SessionTarget

__all__ = ["make_program", "trace_stack"]

_MEMORY_BYTES: Final = 1 << 63
_WORD_BYTES: Final = 8
_NETWORK_FINDER: Final = "debuginfod"


def make_program(target: SessionTarget) -> drgn.Program:
    """What drgn makes of the target. Raises UsageError where drgn is not installed, TargetError if the target is
    gone."""
    try:
        import drgn
    except ImportError as error:
        raise UsageError("drgn is not installed: pip install 'clew[drgn]'") from error
    program = drgn.Program(drgn.host_platform)
    # Nothing is fetched unless somebody asks for it.
    finders = [name for name in program.enabled_debug_info_finders() if name != _NETWORK_FINDER]
    program.set_enabled_debug_info_finders(finders)

    def read(address: int, size_bytes: int, _offset: int, _is_physical: bool) -> bytes:
        if _is_of_clew(address, size_bytes):
            raise drgn.FaultError("clew's own memory", address)
        try:
            data = target.read(address, size_bytes)
        except TargetError as error:
            raise drgn.FaultError(error.message, address) from error
        if len(data) != size_bytes:
            raise drgn.FaultError("nothing can be read", address + len(data))
        return data

    program.add_memory_segment(0, _MEMORY_BYTES, read)
    without = [module for module in _add_images(program, target) if module.wants_debug_file()]
    # Debugging information may lie in a file of its own.
    with contextlib.suppress(drgn.MissingDebugInfoError):
        program.load_module_debug_info(*without)
    return program


def trace_stack(program: drgn.Program, registers: Mapping[str, int]) -> drgn.StackTrace:
    """The open calls of a thread that is stopped with these registers, which has the memory of `program`."""
    import drgn

    names = native_processor().architecture.kernel_registers
    if not names:
        raise UsageError("drgn's stacks are not known for this processor")
    # drgn goes by the name and the bytes.
    words = program.array_type(program.int_type("unsigned long", _WORD_BYTES, False), len(names))
    frame = program.struct_type("pt_regs", _WORD_BYTES * len(names), [drgn.TypeMember(words, "words")])
    data = b"".join(registers.get(name, 0).to_bytes(_WORD_BYTES, "little") for name in names)
    return program.stack_trace(drgn.Object.from_bytes_(program, frame, data))


def _is_of_clew(address: int, size_bytes: int) -> bool:
    bases = native_processor().bases
    return any(address < base + AREA_BYTES and address + size_bytes > base for base in bases)


def _add_images(program: drgn.Program, target: SessionTarget) -> list[drgn.Module]:
    """Have drgn know what is loaded where; those whose files it can read."""
    seen: set[tuple[str, int]] = set()
    modules: list[drgn.Module] = []
    for image in target.loaded():
        n_bytes = target.images.loaded_bytes(image)
        if (image.path, image.base) in seen or not n_bytes:
            continue
        seen.add((image.path, image.base))
        module = program.extra_module(Path(image.path).name, id=image.base, create=True)
        # By that drgn tells where the file's addresses are.
        module.address_range = image.base, image.base + n_bytes
        # Whatever it stumbles over: the others are there all the same.
        with contextlib.suppress(Exception):
            module.try_file(image.path)
            modules.append(module)
    return modules
