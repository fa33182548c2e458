"""Modules that are imported when something of them is asked for.

Runs in the controller. A recording imports a good part of Python's library only because some module names it: for
annotations, or for functions that nobody calls. In a process of clew's own such a module is a `Late` one.
"""

from __future__ import annotations

import _thread
import sys
from types import ModuleType

# Not from `typing`, which is one of those modules.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Late", "importing", "prepare_library"]

importing = _thread.RLock()
"""Held while a module is put in the place of the one that stood for it."""


class Late(ModuleType):
    """A module, not a package, that is imported when something of it is asked for that is not here."""

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":
            # Whoever imports from it is asked whether it is a package.
            raise AttributeError(name)
        with importing:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            __import__(self.__name__)
            real = sys.modules[self.__name__]
        return getattr(real, name)


def prepare_library() -> None:
    """To be called before anything else is imported; what was imported already stays."""
    if "typing" not in sys.modules:
        sys.modules["typing"] = _Typing("typing")
    if "urllib.parse" not in sys.modules:
        import urllib

        sys.modules["urllib.parse"] = urllib.__dict__["parse"] = _Parse("urllib.parse")


class _Typing(Late):
    """typing. What clew's modules take from it for annotations stands for nothing."""

    TYPE_CHECKING = False

    class Any:
        def __class_getitem__(cls, item: object) -> type[_Typing.Any]:
            return cls

    Final = IO = BinaryIO = TextIO = Self = Any

    @staticmethod
    def NewType(name: str, tp: type) -> type:  # noqa: N802
        return tp


class _Parse(Late):
    """urllib.parse, of which pathlib imports one function, for URIs of files."""

    def quote_from_bytes(self, *arguments: Any) -> Any:
        return self.__getattr__("quote_from_bytes")(*arguments)
