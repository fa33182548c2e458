"""Which functions of libraries are captured: those whose images and names fit what somebody asks for.

Runs in the controller; images are looked at in the thread that owns the target, while who loaded them waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from clew.api.captures import CallCapture, capture_of
from clew.api.description import Function
from clew.api.prototypes import Prototypes
from clew.binary.function_names import FunctionName, list_functions
from clew.dataclass import dataclass
from clew.errors import BinaryError, UsageError

if TYPE_CHECKING:
    from clew.api.descriptions import Descriptions
    from clew.api.headers import Headers
    from clew.binary.elf import ElfFile

__all__ = ["ChosenFunction", "FunctionChoice", "FunctionPattern", "parse_pattern"]

_PATTERN: Final = re.compile(r"(?:(?P<image>[^:!]+)[:!](?!:))?(?P<name>.+)", re.DOTALL)


@dataclass(frozen=True)
class FunctionPattern:
    """Names of functions, in images whose file's name or path fits; both have *, ? and []."""

    image: str
    name: str

    def fits_image(self, path: str) -> bool:
        """Whether it is about an image."""
        return fnmatchcase(path.rpartition("/")[2], self.image) or fnmatchcase(path, self.image)


def parse_pattern(text: str) -> FunctionPattern:
    """`libssl*:SSL_*`, or `malloc` of any image. Raises UsageError."""
    found = _PATTERN.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r}: which functions? Say IMAGE:NAME, as in libz*:deflate*")
    return FunctionPattern(found["image"] or "*", found["name"])


@dataclass(frozen=True)
class ChosenFunction:
    """A function of the image `path`, `offset` bytes behind its base, and what is captured of its calls."""

    path: str
    offset: int
    capture: CallCapture


class FunctionChoice:
    """The functions that some patterns mean, image by image."""

    def __init__(
        self, patterns: Sequence[FunctionPattern], descriptions: Descriptions, headers: Headers | None = None
    ) -> None:
        """`headers`: what is asked of functions that nothing else describes."""
        self._patterns, self._descriptions, self._headers = patterns, descriptions, headers
        self._seen: set[str] = set()
        self._prototypes = Prototypes(add_table=descriptions.add_table)
        self.undescribed: set[str] = set()
        """Those of which nobody knows the parameters."""
        self.indirect: set[str] = set()
        """Those that are left out since each call of them goes to another function, which their own code chooses."""

    def of_image(
        self, path: str, elf: ElfFile, is_injected: Callable[[str, int], bool] = lambda path, offset: False
    ) -> Iterator[ChosenFunction]:
        """Those of an image that is seen for the first time; else none. `is_injected`: whether something may be done to
        the calls of a function, by path and offset."""
        patterns = [pattern for pattern in self._patterns if pattern.fits_image(path)]
        if not patterns or path in self._seen:
            return
        self._seen.add(path)
        try:
            functions = list_functions(elf)
        except BinaryError:
            return
        by_offset: dict[int, list[FunctionName]] = {}
        for function in functions:
            if any(fnmatchcase(function.name, pattern.name) for pattern in patterns):
                by_offset.setdefault(function.offset, []).append(function)
        library = path.rpartition("/")[2]
        for offset, names in sorted(by_offset.items()):
            # Of several names of one function the plainest.
            chosen = min(names, key=lambda one: (one.name.startswith("_"), len(one.name), one.name))
            if chosen.is_indirect:
                self.indirect.add(chosen.name)
                continue
            described = self._describe(library, [one.name for one in names], chosen.name)
            yield ChosenFunction(
                path, offset, capture_of(described, self._descriptions, is_injected=is_injected(path, offset))
            )

    def _describe(self, library: str, names: Sequence[str], plainest: str) -> Function:
        for name in (plainest, *names):
            found = self._descriptions.find_function(library, name)
            if found is not None:
                return found
        for name in (plainest, *names):
            found = self._prototypes.find(library, name)
            if found is not None:
                return self._descriptions.hidden(found)
        found = None if self._headers is None else self._headers.find((plainest, *names))
        if found is not None:
            return self._descriptions.hidden(found)
        self.undescribed.add(plainest)
        return Function(plainest, "Other", None)
