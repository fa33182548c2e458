"""Which addresses of a process are meant by what somebody wrote for a place.

Runs in the controller, beside the process: nothing is stopped. What a process has mapped may be gone from its folder,
or be another file by now: files are opened as the process sees them, or by the mapping itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from clew.address import Pid, RemoteAddress
from clew.binary.elf import open_elf
from clew.binary.vdso import VDSO_NAME, open_vdso
from clew.dataclass import dataclass
from clew.errors import BinaryError, TargetError
from clew.probing.locations.functions import find_functions_called
from clew.probing.locations.image_file import ImageFile, is_image_named
from clew.probing.locations.place import ImagePlace, PlaceKind, Resolution
from clew.probing.locations.resolve import resolve_in_image
from clew.probing.locations.syntax import AddressPlace, Location, NamePlace
from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping, read_maps

__all__ = ["LoadedImage", "ProcessPlace", "ProcessPlaces", "ProcessResolution", "open_process", "read_word"]

MAX_TOLD: Final = 6
_DELETED: Final = " (deleted)"
_MASK: Final = (1 << 64) - 1


class LoadedImage(NamedTuple):
    """A file whose code a process has mapped: `bias` is what addresses there are more than link addresses.

    `ranges` are where its code is, from a start up to an end each.
    """

    file: ImageFile
    bias: int
    ranges: tuple[tuple[int, int], ...]

    def has(self, address: int) -> bool:
        """Whether its code is at an address."""
        return any([start <= address < end for start, end in self.ranges])  # noqa: C419 (quicker, of one or two)


class ProcessPlace(NamedTuple):
    """A place at an address of a process. `place` is the same in a file; None: no file's code is there.

    `semaphore` is the address of what counts who wants a static probe, None: nothing does.
    """

    address: RemoteAddress
    place: ImagePlace | None
    semaphore: RemoteAddress | None = None

    @property
    def name(self) -> str:
        """What it is called, for people."""
        if self.place is None:
            return f"{self.address:#x}"
        return f"{os.path.basename(self.place.image)}!{self.place.name}"


@dataclass(frozen=True)
class ProcessResolution:
    """What was found in a process, by address, each address once. Where nothing was, `missing` says why."""

    places: tuple[ProcessPlace, ...]
    warnings: tuple[str, ...] = ()
    missing: str = ""


class ProcessPlaces:
    """The places in what a process has mapped; `read` gives the word of eight bytes at an address, None: none is.

    `program` is the path of the program itself: what patterns without an image are about.
    """

    def __init__(
        self,
        mappings: list[Mapping],
        program: str,
        open_file: Callable[[Mapping], contextlib.AbstractContextManager[ImageFile]],
        read: Callable[[int], int | None],
    ) -> None:
        self._program, self._read, self._open_file = program.removesuffix(_DELETED), read, open_file
        self._open = contextlib.ExitStack()
        self._files: dict[str, ImageFile | None] = {}
        self._images: list[LoadedImage] = []
        self._resolved: dict[tuple[str, Location, bool], Resolution] = {}
        """What was found in files: each time that something is loaded all is asked for again."""
        self._code: list[tuple[int, int]] = []
        self.warnings: list[str] = []
        """Of files that can't be read."""
        self.renew(mappings)

    def move_to(self, pid: Pid) -> None:
        """From now on process `pid` shows them, which has the same memory as the one that did."""
        self._open_file = lambda mapping: _open_mapped(pid, mapping)
        self._read = lambda address: read_word(pid, address)

    def close(self) -> None:
        """Let go of the files."""
        self._open.close()
        self._files.clear()
        self._images.clear()

    @property
    def images(self) -> list[LoadedImage]:
        """The files whose code is mapped, by their addresses."""
        return self._images

    def renew(self, mappings: list[Mapping]) -> None:
        """Go on with what is mapped now; files stay open."""
        code = [one for one in mappings if one.protection & PROT_EXEC]
        self._code = [(one.start, one.end) for one in code]
        ranges: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for mapping in code:
            file = self._file(mapping) if mapping.path.startswith("/") or mapping.path == VDSO_NAME else None
            linked = None if file is None else file.elf.find_address(mapping.file_offset)
            if linked is not None:
                ranges.setdefault((mapping.path, mapping.start - linked), []).append((mapping.start, mapping.end))
        self._images = []
        for (path, bias), spans in ranges.items():
            found = self._files[path]
            if found is not None:
                self._images.append(LoadedImage(found, bias, tuple(spans)))

    def _file(self, mapping: Mapping) -> ImageFile | None:
        if mapping.path not in self._files:
            self._files[mapping.path] = None
            try:
                self._files[mapping.path] = self._open.enter_context(self._open_file(mapping))
            except (BinaryError, OSError) as error:
                why = error.reason if isinstance(error, BinaryError) else error.strerror
                self.warnings.append(f"{mapping.path}: its code is left out: {why}")
        return self._files[mapping.path]

    def resolve(self, where: Location, *, with_inlined: bool = False) -> ProcessResolution:
        """The places that are meant."""
        if isinstance(where, AddressPlace) and not where.image:
            return self._at_address(where)
        wanted = [one for one in self._images if self._is_wanted(one, where)]
        if not wanted:
            named = where.image or self._program
            return ProcessResolution((), (), f"{where.text}: nothing that is loaded is called {named}")
        found: dict[int, ProcessPlace] = {}
        warnings: list[str] = []
        missing: list[str] = []
        unknown: list[str] = []
        for image in wanted:
            try:
                resolution = self._resolve_in(image.file, where, with_inlined=with_inlined)
            except BinaryError as error:
                warnings.append(f"{image.file.path}: {error.reason}")
                continue
            warnings += resolution.warnings
            missing += [resolution.missing] if resolution.missing else []
            for place in resolution.places:
                for one in self._load(image, place, unknown):
                    found.setdefault(one.address, one)
        if unknown:
            told = ", ".join(unknown[:MAX_TOLD]) + (f", and {len(unknown) - MAX_TOLD} more" * (len(unknown) > MAX_TOLD))
            warnings.append(
                f"nothing that is loaded has chosen a function yet for {told}: where it will be is not known"
            )
        places = tuple(found[address] for address in sorted(found))
        holders = list(dict.fromkeys(one.place.image for one in places if one.place is not None))
        if len(holders) > 1 and not where.image:
            warnings.append(f"{where.text} is in {len(holders)} images: {', '.join(holders[:4])}; IMAGE! chooses one")
        if places:
            return ProcessResolution(places, tuple(dict.fromkeys(warnings)))
        # What is like it in one image tells more than that others have nothing.
        told = next((one for one in missing if one.endswith(("?", ")"))), missing[0] if len(missing) == 1 else "")
        why = told or f"{where.text}: nothing that is loaded has it"
        return ProcessResolution((), tuple(dict.fromkeys(warnings)), why)

    def find_functions_called(self, name: str) -> list[int]:
        """Where functions begin whose symbols are called just so, in all that is loaded."""
        return [
            address
            for image in self._images
            for linked in find_functions_called(image.file, name)
            for address in [linked + image.bias & _MASK]
            if image.has(address)
        ]

    def _resolve_in(self, file: ImageFile, where: Location, *, with_inlined: bool) -> Resolution:
        key = file.path, where, with_inlined
        if key not in self._resolved:
            self._resolved[key] = resolve_in_image(file, where, with_inlined=with_inlined)
        return self._resolved[key]

    def _is_wanted(self, image: LoadedImage, where: Location) -> bool:
        path, soname = image.file.path, image.file.soname
        if not where.image and isinstance(where, NamePlace) and where.may_be_pattern:
            # All functions of all libraries are hardly ever meant.
            return path == self._program
        return is_image_named(where.image, path, soname)

    def _at_address(self, where: AddressPlace) -> ProcessResolution:
        if not any(start <= where.address < end for start, end in self._code):
            return ProcessResolution((), (), f"{where.text}: the process has no code there")
        image = next((one for one in self._images if one.has(where.address)), None)
        if image is None:
            return ProcessResolution((ProcessPlace(RemoteAddress(where.address), None),))
        inside = AddressPlace(where.text, image.file.path, where.address - image.bias)
        place = next(iter(resolve_in_image(image.file, inside).places), None)
        return ProcessResolution((ProcessPlace(RemoteAddress(where.address), place),))

    def _load(self, image: LoadedImage, place: ImagePlace, unknown: list[str]) -> Iterator[ProcessPlace]:
        """The place in memory; of code that chooses a function the place of what it chose, too."""
        address = place.address + image.bias & _MASK
        if not image.has(address):
            return
        semaphore = None if place.usdt is None else place.usdt.semaphore
        at = None if semaphore is None else RemoteAddress(semaphore + image.bias & _MASK)
        if place.kind != PlaceKind.CHOOSER:
            yield ProcessPlace(RemoteAddress(address), place, at)
            return
        chosen = self._find_chosen(image, place)
        for one in chosen:
            entry = image.file.place(PlaceKind.ENTRY, one - image.bias)
            names = tuple(name for name in (place.symbol, *place.aliases) if name != entry.symbol)
            yield ProcessPlace(RemoteAddress(one), entry._replace(aliases=names))
        unknown += [] if chosen else [place.symbol]
        yield ProcessPlace(RemoteAddress(address), place)

    def _find_chosen(self, image: LoadedImage, place: ImagePlace) -> list[int]:
        """Where the functions are that were chosen, as words of all images have them."""
        found = set()
        chooser = place.address - place.distance
        for other in self._images:
            with contextlib.suppress(BinaryError):
                chosen = other.file.chosen
                words = [word for name in (place.symbol, *place.aliases) for word in chosen.by_name.get(name, ())]
                if other is image:
                    words += chosen.by_chooser.get(chooser, ())
                for word in words:
                    value = self._read(word + other.bias & _MASK)
                    # The word may not have been filled yet, or be another function's of the same name.
                    if value is not None and value != chooser + image.bias and image.has(value):
                        found.add(value)
        return sorted(found)


@contextlib.contextmanager
def open_process(pid: Pid) -> Iterator[ProcessPlaces]:
    """The places of process `pid`, by what it has mapped now. Raises TargetError if it is gone, or may not be seen."""
    try:
        mappings = read_maps(pid)
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError | ProcessLookupError)
        why = "no such process" if is_gone else error.strerror
        raise TargetError(pid, f"process {pid}: {why}") from error

    def open_file(mapping: Mapping) -> contextlib.AbstractContextManager[ImageFile]:
        return _open_mapped(pid, mapping)

    places = ProcessPlaces(mappings, program, open_file, lambda address: read_word(pid, address))
    try:
        yield places
    finally:
        places.close()


@contextlib.contextmanager
def _open_mapped(pid: Pid, mapping: Mapping) -> Iterator[ImageFile]:
    if mapping.path == VDSO_NAME:
        with open_vdso() as elf:
            yield ImageFile(elf, VDSO_NAME, Path(f"/proc/self/fd/{elf.descriptor}"))
        return
    # By the mapping itself only who has more rights may open it (proc(5)).
    by_mapping = f"/proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}"
    seen = [f"/proc/{pid}/root{mapping.path}", mapping.path] if not mapping.path.endswith(_DELETED) else []
    last = BinaryError(Path(mapping.path), "it is gone")
    for path in (*seen, by_mapping, f"/proc/{pid}/exe"):
        if path.endswith("/exe") and os.readlink(path) != mapping.path:
            continue
        opened = contextlib.ExitStack()
        try:
            elf = opened.enter_context(open_elf(Path(path)))
        except BinaryError as error:
            last = error
            continue
        with opened:
            yield ImageFile(elf, mapping.path.removesuffix(_DELETED), Path(path))
        return
    raise last


def read_word(pid: Pid, address: int) -> int | None:
    """The eight bytes at an address of a process as a number; None where they can't be read."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
            data = os.pread(file.fileno(), 8, address)
    except (OSError, OverflowError):
        return None
    return int.from_bytes(data, "little") if len(data) == 8 else None
