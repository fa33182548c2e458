"""What of a session is about its target's memory, its names, and which of its code is recorded.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import drgn

    from clew.sessions.memory import Image
    from clew.sessions.target import SessionTarget
    from clew.sessions.variables import Variable

__all__ = ["MemoryFacet"]


class MemoryFacet:
    """Memory and names."""

    _target: SessionTarget

    def include(self, what: str) -> None:
        """Follow an image, symbol or range of addresses from now on, as `--include` takes it."""
        self._target.ask({"command": "include", "what": what})

    def exclude(self, what: str) -> None:
        """No longer record that."""
        self._target.ask({"command": "exclude", "what": what})

    def only(self, what: str) -> None:
        """Record nothing but that from now on."""
        self._target.ask({"command": "only", "what": what})

    @property
    def images(self) -> list[Image]:
        """The files whose code is loaded, by their addresses."""
        return self._target.loaded()

    def find(self, name: str) -> int:
        """The address of `main`, `libc.so.6!malloc`, or either with a distance (`main+0x10`): of a function or, where
        none is called so, of a variable that all threads share.

        Raises ControlError if there is none, or several.
        """
        return self._target.find(name)

    def variables(self, where: str | int) -> list[Variable]:
        """The variables of a place in code, which captures have as `var:NAME`: their types, and where they are, or why
        they can't be taken there. `where` is as `find` takes it, or an address.

        Raises ControlError if there is no such place, or several; CaptureError where no debugging information tells.
        """
        return self._target.variables(where)

    def name(self, address: int) -> str:
        """`IMAGE!SYMBOL+0x10` for an address, as much of it as is known."""
        return self._target.name(address)

    def read(self, address: int, size_bytes: int) -> bytes:
        """Memory of the process: as much from `address` on as can be read."""
        return self._target.read(address, size_bytes)

    def write(self, address: int, data: bytes) -> None:
        """Change memory of the process, whatever is protected. Of code that is changed the new one is executed."""
        self._target.write(address, data)

    def drgn_program(self) -> drgn.Program:
        """What drgn makes of the process: its types, variables and symbols, by the debugging information of the images
        that are loaded now, read from its memory as it is when it is asked for.

        drgn reads the program's files by itself: it is for those that are trusted. A stopped thread's stack is
        `SessionThread.drgn_stack`. Raises UsageError where drgn is not installed.
        """
        from clew.sessions.drgn_program import make_program

        return make_program(self._target)
