"""What names of registers, arguments and symbols mean where something is captured.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clew.capture.scope import Scope
from clew.dataclass import dataclass

__all__ = ["Machine"]


@dataclass(frozen=True)
class Machine:
    """What names mean at a place.

    `registers` are the general ones in the architecture's order; `vectors` is how the vector registers are called, less
    their numbers, of which there are `n_vectors`. `arguments` are the registers of a function's first arguments,
    `result` that of what it returns, `stack_pointer` that of its stack, where further arguments are from
    `stack_arguments` bytes on, None: there are none. `find_symbol` gives the address of a symbol, None if there is
    none; `scope` knows the program's variables and types. `entry` is what names mean where a call begins, of what is
    taken when it returns.
    `is_interpreted`: no code is emitted for what is asked for there, so more can be asked (`match`, `fd_path`).
    `unwinds`: threads unwind their own stacks there (`backtrace`).
    """

    registers: Sequence[str]
    vectors: str
    n_vectors: int
    arguments: Sequence[str]
    result: str
    stack_pointer: str
    stack_arguments: int | None
    find_symbol: Callable[[str], int | None]
    scope: Scope | None = None
    entry: Machine | None = None
    is_interpreted: bool = False
    unwinds: bool = False
