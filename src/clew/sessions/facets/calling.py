"""What of a session is about functions of the program that Python calls, and memory that it has the program map.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from clew.errors import ControlError

if TYPE_CHECKING:
    from clew.sessions.target import SessionTarget

__all__ = ["CallingFacet"]

_PRIVATE, _ANONYMOUS = 0x02, 0x20
_PROTECTIONS: Final = {"r": 1, "w": 2, "x": 4}


class CallingFacet:
    """Calls."""

    _target: SessionTarget

    def call(
        self, where: str | int, *arguments: int | float, tid: int = 0, returns: type = int, timeout: float = 10.0
    ) -> int | float:
        """Have a stopped thread call a function of the program's: what it returned.

        The session is stopped, and is so again afterwards; all threads run meanwhile. `where` is as `find` takes it, or
        an address. `arguments` are up to six integers or addresses, and up to eight floating-point numbers (double);
        `returns` is `int` (64 bits, without a sign) or `float`. It is the thread `tid`, by default the one that moved
        last: where it was, and what its registers hold, is as before. The function is called in the middle of whatever
        the thread did, as a signal's handler is: what is not safe there, such as `malloc` in the middle of `malloc`, is
        not safe here; nor is much safe in a thread that the C library has only just made, or before it is initialised.

        In a callback it is the thread `tid` that waits for that (`Call.tid`): the session runs on then, and probes that
        the function comes to call nobody.

        Raises ControlError: no thread is stopped, it waits in a system call, it has not come back within `timeout`
        seconds, or nothing that is loaded returns from handlers; UsageError.
        """
        from clew.sessions.own_calls import call_function

        address = where if isinstance(where, int) else self._target.find(where)
        result, number = call_function(self._target, tid, address, arguments, timeout)
        return number if returns is float else result

    def allocate(self, size_bytes: int, *, protection: str = "rw", tid: int = 0) -> int:
        """Have a stopped thread map memory of the program's own, which begins with zeros: its address.

        `protection` is made of `r`, `w` and `x`. It stays until the program ends, or `free`. As `call`; raises
        ControlError also where there is no memory, or the program has no `mmap`.
        """
        flags = sum(_PROTECTIONS[letter] for letter in protection)
        address = self.call(self._find_in_library("mmap"), 0, size_bytes, flags, _PRIVATE | _ANONYMOUS, -1, 0, tid=tid)
        if not isinstance(address, int) or address == (1 << 64) - 1:
            raise ControlError(f"process {self._target.pid} can't map {size_bytes} bytes")
        return address

    def free(self, address: int, size_bytes: int, *, tid: int = 0) -> None:
        """Give back what `allocate` gave. As `call`."""
        self.call(self._find_in_library("munmap"), address, size_bytes, tid=tid)

    def _find_in_library(self, name: str) -> int:
        """A function of the C library; the dynamic linker has some of them, too."""
        images = sorted(self._target.loaded(), key=lambda image: not image.name.startswith("libc"))
        for image in images:
            with contextlib.suppress(ControlError):
                return self._target.find(f"{image.name}!{name}")
        raise ControlError(f"process {self._target.pid}: nothing that is loaded has {name}")
