"""Which functions of libraries are captured: those whose images and names fit what somebody asks for.

Runs in the controller; images are looked at in the thread that owns the target, while who loaded them waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final

from clew.api.captures import CallCapture, capture_of
from clew.binary.function_names import FunctionName, list_functions
from clew.binary.vdso import VDSO_NAME
from clew.dataclass import dataclass
from clew.errors import BinaryError, UsageError
from clew.sessions.function_descriptions import FunctionDescriptions

if TYPE_CHECKING:
    from clew.api.description import Function
    from clew.api.descriptions import Descriptions
    from clew.api.headers import Headers
    from clew.binary.debug_file import DebugFile
    from clew.binary.elf import ElfFile
    from clew.sessions.debug_prototypes import DebugPrototypes

__all__ = [
    "VDSO",
    "ChosenFunction",
    "FunctionChoice",
    "FunctionPattern",
    "FunctionPlace",
    "parse_pattern",
    "parse_place",
]

_PATTERN: Final = re.compile(r"(?:(?P<image>[^:!]+)[:!](?!:))?(?P<name>.+)", re.DOTALL)

_PLACE: Final = re.compile(
    r"(?P<name>\w+)=(?P<image>.+)\+(?P<offset>0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,18}|0)", re.DOTALL
)


@dataclass(frozen=True)
class FunctionPattern:
    """Names of functions, in images whose file's name or path fits; both have *, ? and []. `is_of_vdso`: those of the
    vDSO that are described, which nothing else is meant by."""

    image: str
    name: str
    is_of_vdso: bool = False

    @property
    def text(self) -> str:
        """How it is said."""
        return f"{self.image}:{self.name}"

    def fits_image(self, path: str) -> bool:
        """Whether it is about an image."""
        if self.is_of_vdso or path == VDSO_NAME:
            return self.is_of_vdso and path == VDSO_NAME
        return fnmatchcase(path.rpartition("/")[2], self.image) or fnmatchcase(path, self.image)


def parse_pattern(text: str) -> FunctionPattern:
    """`libssl*:SSL_*`, or `malloc` of any image. Raises UsageError."""
    found = _PATTERN.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r}: which functions? Say IMAGE:NAME, as in libz*:deflate*")
    return FunctionPattern(found["image"] or "*", found["name"])


VDSO: Final = FunctionPattern(VDSO_NAME, "*", is_of_vdso=True)


@dataclass(frozen=True)
class FunctionPlace:
    """A function that somebody knows the place of: the name in `image` describes it, and it is `offset` bytes behind
    the base of images that fit; `text` is how it was said."""

    text: str
    image: FunctionPattern
    offset: int


def parse_place(text: str) -> FunctionPlace:
    """`SSL_write=app+0x1234`. Raises UsageError."""
    found = _PLACE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r}: which function is where? Say NAME=IMAGE+0xOFFSET, as in SSL_write=app+0x1234")
    return FunctionPlace(text, FunctionPattern(found["image"], found["name"]), int(found["offset"], 0))


@dataclass(frozen=True)
class ChosenFunction:
    """A function of the image `path`, `offset` bytes behind its base, and what is captured of its calls.

    `symbol` is its name there. `on_choice`: it only chooses the function that is meant; what is told of that.
    """

    path: str
    offset: int
    symbol: str
    capture: CallCapture
    on_choice: Callable[[bool], None] | None = None


class FunctionChoice:
    """The functions that some patterns mean, and those at some `places`, image by image."""

    def __init__(
        self,
        patterns: Sequence[FunctionPattern],
        descriptions: Descriptions,
        places: Sequence[FunctionPlace] = (),
        headers: Headers | None = None,
        filters: Collection[str] = (),
    ) -> None:
        """`headers`: what is asked of functions that nothing else describes. `filters`: only those of the vDSO that are
        of these kinds."""
        self._patterns, self._places, self._descriptions, self._filters = patterns, places, descriptions, filters
        self._seen: set[str] = set()
        self._describe = FunctionDescriptions(descriptions, headers)
        self.unchosen: set[str] = set()
        """Those which other functions are called for, of which nobody knows yet which these are."""
        self.alike: set[str] = set()
        """Those for which a function is called that is recorded under another name."""
        self.missing = {one.text for one in places}
        self.unmet = {one.text for one in patterns if not one.is_of_vdso}
        """Patterns that fit no function of what was loaded."""
        """The places that no image has had."""

    @property
    def undescribed(self) -> set[str]:
        """Those of which nobody knows the parameters."""
        return self._describe.undescribed

    def of_image(
        self,
        path: str,
        elf: ElfFile,
        find_debug: Callable[[], DebugFile | None] = lambda: None,
        n_spare: int = 0,
        is_injected: Callable[[str, int], bool] = lambda path, offset: False,
    ) -> Iterator[ChosenFunction]:
        """Those of an image that is seen for the first time; else none.

        `find_debug` gives its debugging information. Captures leave room for `n_spare` fields. `is_injected`: whether
        something may be done to the calls of a function, by path and offset.
        """
        if path in self._seen:
            return
        self._seen.add(path)
        taken: set[int] = set()
        for place in self._places:
            if place.image.fits_image(path) and place.offset < elf.loaded_bytes and place.offset not in taken:
                self.missing.discard(place.text)
                taken.add(place.offset)
                function = self._describe.by_name(place.image.name)
                changes = is_injected(path, place.offset)
                capture = capture_of(function, self._descriptions, n_spare, is_injected=changes)
                yield ChosenFunction(path, place.offset, function.name, capture)
        patterns = [pattern for pattern in self._patterns if pattern.fits_image(path)]
        if patterns:
            yield from self._named(path, elf, find_debug, patterns, taken, n_spare, is_injected)

    def _named(
        self,
        path: str,
        elf: ElfFile,
        find_debug: Callable[[], DebugFile | None],
        patterns: Sequence[FunctionPattern],
        taken: set[int],
        n_spare: int,
        is_injected: Callable[[str, int], bool],
    ) -> Iterator[ChosenFunction]:
        try:
            functions = list_functions(elf)
        except BinaryError:
            return
        by_offset: dict[int, list[FunctionName]] = {}
        for function in functions:
            fitting = {pattern.text for pattern in patterns if fnmatchcase(function.name, pattern.name)}
            self.unmet -= fitting
            if fitting and function.offset not in taken:
                by_offset.setdefault(function.offset, []).append(function)
        library = path.rpartition("/")[2]
        debug = _read_debug(find_debug()) if by_offset else None
        for offset, names in sorted(by_offset.items()):
            # Of several names of one function the plainest.
            chosen = min(names, key=lambda one: (one.name.startswith("_"), len(one.name), one.name))
            own = None if chosen.is_indirect else debug
            all_names = [chosen.name, *(one.name for one in names)]
            described = self._describe.find(elf, library, all_names, offset, own)
            on_choice = None
            if chosen.is_indirect:
                self.unchosen.add(chosen.name)
                on_choice = partial(self._note_choice, chosen.name)
            if path == VDSO_NAME and not self._is_of_vdso(described):
                continue
            capture = capture_of(described, self._descriptions, n_spare, is_injected=is_injected(path, offset))
            yield ChosenFunction(path, offset, chosen.name, capture, on_choice)

    def _is_of_vdso(self, function: Function) -> bool:
        """Whether a function of the vDSO is asked for: what nobody describes stands for no system call."""
        if function.parameters is None:
            self._describe.undescribed.discard(function.name)
            return False
        return not self._filters or function.filter in self._filters

    def _note_choice(self, name: str, is_recorded: bool) -> None:
        self.unchosen.discard(name)
        (self.alike.discard if is_recorded else self.alike.add)(name)


def _read_debug(file: DebugFile | None) -> DebugPrototypes | None:
    if file is None or file.sections is None:
        return None
    # Late: most libraries have none.
    from clew.sessions.debug_prototypes import DebugPrototypes

    return DebugPrototypes(file)
