"""What names mean in captures of a process that is not followed.

Runs in the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.capture.machine import Machine
from clew.dataclass import replace
from clew.process.maps import read_maps
from clew.process.processors.chosen import native_processor
from clew.sessions.where import parse_where

if TYPE_CHECKING:
    from clew.address import Pid
    from clew.sessions.memory import Images

__all__ = ["make_machine", "make_probed_machine"]


def make_machine(pid: Pid, images: Images) -> Machine:
    """Registers are this machine's, symbols those of process `pid`."""
    processor = native_processor()
    architecture, definition = processor.architecture, processor.definition

    def find_symbol(name: str) -> int | None:
        where, mappings = parse_where(name), read_maps(pid)
        found = sorted(where.find_in(images, mappings) or where.find_data_in(images, mappings))
        return found[0] if len(found) == 1 else None

    return Machine(
        registers=definition.held_registers,
        vectors=architecture.vector_registers,
        n_vectors=architecture.n_vector_registers,
        arguments=architecture.argument_registers,
        result=architecture.result_register,
        stack_pointer=definition.stack_pointer,
        stack_arguments=architecture.stack_arguments,
        find_symbol=find_symbol,
    )


def make_probed_machine(pid: Pid, images: Images) -> Machine:
    """The same of a process that runs its own code: its threads unwind their own stacks at probes."""
    return replace(make_machine(pid, images), unwinds=True)
