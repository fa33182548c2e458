"""Places in processes, against what the dynamic linker gives (dlsym)."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clew.address import Pid
from clew.errors import TargetError
from clew.probing.locations.in_process import ProcessPlaces, open_process, read_word
from clew.probing.locations.place import PlaceKind
from clew.probing.locations.syntax import parse_location
from clew.process.maps import read_maps
from tests.unit.probing.locations.found import Build, addresses

OWN = Pid(os.getpid())


def linked(name: str) -> int:
    """Where the dynamic linker has a function: of one that is chosen what was chosen."""
    address = ctypes.cast(getattr(ctypes.CDLL("libc.so.6"), name), ctypes.c_void_p).value
    assert address is not None
    return address


@pytest.fixture(scope="module")
def own() -> Iterator[ProcessPlaces]:
    with open_process(OWN) as places:
        yield places


@contextmanager
def running(path: Path) -> Iterator[Pid]:
    """A program that waits for its input to end, as soon as it has printed something."""
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline()
        try:
            yield Pid(process.pid)
        finally:
            process.stdin.close()
            process.wait(20)


@pytest.mark.parametrize("name", ["malloc", "getenv", "qsort", "open", "pthread_create"])
def test_functions(own: ProcessPlaces, name: str) -> None:
    found = own.resolve(parse_location(f"libc.so.6!{name}"))
    assert [place.address for place in found.places] == [linked(name)]
    assert found.places[0].name.startswith("libc.so.6!")


@pytest.mark.parametrize("name", ["memcpy", "strlen", "memchr"])
def test_functions_that_are_chosen(own: ProcessPlaces, name: str) -> None:
    found = own.resolve(parse_location(f"libc.so.6!{name}"))
    entries = [place for place in found.places if place.place and place.place.kind == PlaceKind.ENTRY]
    choosers = [place for place in found.places if place.place and place.place.kind == PlaceKind.CHOOSER]
    assert choosers
    chosen = next(place for place in entries if place.address == linked(name))
    assert chosen.place is not None
    assert name in (chosen.place.symbol, *chosen.place.aliases)


def test_a_name_in_several_images_is_told(own: ProcessPlaces) -> None:
    found = own.resolve(parse_location("getpid"))
    assert linked("getpid") in [place.address for place in found.places]
    images = {place.place.image for place in found.places if place.place}
    assert (len(images) > 1) == any("images" in one for one in found.warnings)


def test_patterns_without_an_image_are_of_the_program(own: ProcessPlaces) -> None:
    program = os.readlink("/proc/self/exe")
    for text in ("main*", "*"):
        places = own.resolve(parse_location(text)).places
        assert {place.place.image for place in places if place.place} <= {program}
    # Libraries of other tests may be loaded: of all that has a shorter name the readable ones take their time.
    everywhere = own.resolve(parse_location("*!strto*")).places
    assert linked("strtol") in {place.address for place in everywhere}


def test_addresses(own: ProcessPlaces) -> None:
    address = linked("malloc")
    for text in (f"{address}", f"{address:#x}", f"0{address:o}"):
        (place,) = own.resolve(parse_location(text)).places
        assert place.address == address
        assert place.place is not None
        assert (place.place.kind, place.place.distance) == (PlaceKind.ENTRY, 0)
    assert "no code there" in own.resolve(parse_location("0x10")).missing
    (inside,) = own.resolve(parse_location(f"{address + 1:#x}")).places
    assert inside.place is not None and inside.place.warnings


def test_what_is_not_there(own: ProcessPlaces) -> None:
    assert "nothing that is loaded is called none.so" in own.resolve(parse_location("none.so!f")).missing
    assert "nothing that is loaded has it" in own.resolve(parse_location("no_such_function_at_all")).missing
    assert "has no function" in own.resolve(parse_location("libc.so.6!no_such_function_at_all")).missing


def test_code_without_a_file(own: ProcessPlaces) -> None:
    import mmap

    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as memory:
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        own.renew(read_maps(OWN))
        (place,) = own.resolve(parse_location(f"{address:#x}")).places
        assert (place.address, place.place) == (address, None)
    own.renew(read_maps(OWN))


def test_static_probes(build: Build, tmp_path: Path) -> None:
    waiting = tmp_path / "waiting.c"
    waiting.write_text('#include <stdio.h>\nint go(void) { puts("x"); fflush(stdout); return getchar() != EOF; }\n')
    path = build("gcc", "-O2", "lookup_notes.c", str(waiting), "-Wl,--wrap=printf", _wrap(tmp_path))
    with running(path) as pid, open_process(pid) as places:
        found = places.resolve(parse_location(f"{path.name}!usdt:*:*"))
        image = next(one for one in places.images if one.file.path == str(path))
        assert [place.address - image.bias for place in found.places] == addresses(path, "usdt:*:*")
        (first,) = places.resolve(parse_location("usdt:shop:first")).places
        assert first.semaphore is not None and first.place is not None and first.place.usdt is not None
        assert first.semaphore - image.bias == first.place.usdt.semaphore
        word = read_word(pid, first.semaphore)
        assert word is not None and word & 0xFFFF == 0
        assert places.resolve(parse_location("main")).places[0].address == image.bias + addresses(path, "main")[0]


def _wrap(tmp_path: Path) -> str:
    """What is called where the program prints: it waits."""
    source = tmp_path / "wrap.c"
    source.write_text("int go(void); int __wrap_printf(const char *f, ...) { return go() + !f; }\n")
    return str(source)


@pytest.mark.parametrize("flags", [(), ("-no-pie",), ("-static",), ("-static-pie",)])
def test_files_that_are_gone(build: Build, tmp_path: Path, flags: tuple[str, ...]) -> None:
    source = tmp_path / "gone.c"
    source.write_text(
        "#include <stdio.h>\n#include <string.h>\nint work(int n) { return n * 3; }\n"
        'int main(int n, char **v) { puts("x"); fflush(stdout); return getchar() + work(n) + (int)strlen(v[0]) > 0; }\n'
    )
    built = build("gcc", str(source), *flags)
    path = tmp_path / "gone"
    shutil.copy(built, path)
    with running(path) as pid:
        with open_process(pid) as places:
            (expected,) = places.resolve(parse_location("work")).places
            entries = places.resolve(parse_location("strlen")).places
            assert [one for one in entries if one.place and one.place.kind == PlaceKind.ENTRY]
        path.unlink()
        with open_process(pid) as places:
            (found,) = places.resolve(parse_location("work")).places
            assert found.address == expected.address
            assert found.name == expected.name == "gone!work"
            assert places.resolve(parse_location("gone!wor*")).places == (found,)
            assert not places.warnings


def test_a_process_that_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait(20)
    with pytest.raises(TargetError), open_process(Pid(process.pid)):
        pass


def test_words() -> None:
    value = ctypes.c_uint64(0x1122334455667788)
    assert read_word(OWN, ctypes.addressof(value)) == value.value
    assert read_word(OWN, 0) is None
    assert read_word(OWN, 1 << 63) is None
