"""Functions by their names, against nm and gdb."""

from __future__ import annotations

import lzma
import random
import re
import subprocess
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

import pytest

from clew.binary.code_symbols import read_code_symbols
from clew.binary.elf import open_elf
from clew.errors import BinaryError
from clew.probing.locations.image_file import is_image_named, open_image, open_image_bytes
from clew.probing.locations.place import PlaceKind
from clew.probing.locations.readable import find_named, last_part, readable_forms
from clew.probing.locations.resolve import resolve_in_image
from clew.probing.locations.syntax import parse_location
from tests.unit.probing.locations.found import Build, addresses, ask_gdb, functions_of, resolve

PLAIN = ("gcc", "-g", "-O2", "lookup.c", "lookup_other.c")
CLASSES = ("g++", "-g", "lookup_classes.cc")


def libc() -> Path:
    done = subprocess.run(["gcc", "-print-file-name=libc.so.6"], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip()).resolve()


@pytest.mark.parametrize("flags", [(), ("-no-pie",), ("-static",), ("-O0",)])
def test_each_name_that_nm_has(build: Build, flags: tuple[str, ...]) -> None:
    path = build(*PLAIN, *flags)
    expected: dict[str, set[int]] = {}
    for address, name in functions_of(path):
        expected.setdefault(name.partition("@")[0], set()).add(address)
    dice = random.Random(3)
    names = sorted(expected) if len(expected) < 60 else dice.sample(sorted(expected), 60)
    with open_image(path) as image:
        for name in names:
            places = resolve_in_image(image, parse_location(f"'{name}'")).places
            assert {place.address for place in places if place.symbol == name} == expected[name], name
            for place in places:
                assert image.elf.read(place.file_offset, 1)
                assert place.offset == place.address - image.elf.lowest_address


@pytest.mark.parametrize("pattern", ["*", "twice*", "*e", "[a-m]*", "?ain", "_*"])
def test_patterns(build: Build, pattern: str) -> None:
    path = build(*PLAIN)
    rows = [(address, name) for address, name in functions_of(path) if not name.endswith(".cold")]
    assert addresses(path, pattern) == sorted({at for at, name in rows if fnmatchcase(name, pattern)})


def test_what_is_like_nothing(build: Build) -> None:
    found = resolve(build(*PLAIN), "nothing_like_*")
    assert not found.places
    assert "has no function whose name is like nothing_like_*" in found.missing


def test_several_names_are_one_place(build: Build) -> None:
    (place,) = resolve(build(*PLAIN), "twice_too").places
    assert (place.symbol, place.aliases) == ("twice_too", ("twice",))
    assert [one.symbol for one in resolve(build(*PLAIN), "twice*").places] == ["twice"]


def test_several_functions_of_one_name(build: Build) -> None:
    found = resolve(build(*PLAIN), "shared_name")
    assert sorted(place.source for place in found.places) == ["lookup.c", "lookup_other.c"]
    assert found.warnings == ("2 functions are called shared_name: lookup.c, lookup_other.c",)


def test_copies_that_the_compiler_made(build: Build) -> None:
    path = build(*PLAIN)
    copies = [address for address, name in functions_of(path) if name.startswith("copied.")]
    assert copies
    found = resolve(path, "copied")
    assert [place.address for place in found.places] == copies
    assert "the compiler made copies of copied" in found.warnings[0]


def test_cold_parts_are_no_functions(build: Build) -> None:
    path = build(*PLAIN)
    parts = [address for address, name in functions_of(path) if name == "rarely.cold"]
    assert parts
    assert addresses(path, "rarely.cold") == addresses(path, "*.cold") == parts
    assert not set(parts) & {*addresses(path, "rarely*"), *addresses(path, "rarely"), *addresses(path, "*")}


def test_labels(build: Build) -> None:
    path = build("gcc", "lookup_labels.S")
    known = {name: address for address, name in functions_of(path)}
    for name in ("main", "inner", "seen"):
        assert addresses(path, name) == [known[name]]
    assert addresses(path, "inn*") == []
    assert addresses(path, "see*") == [known["seen"]]


def test_distances(build: Build) -> None:
    path = build(*PLAIN)
    (main,) = resolve(path, "main").places
    listing = ask_gdb(path, "x/3i main")
    starts = [int(text, 16) for text in re.findall(r"^\s+(0x[0-9a-f]+)", listing, re.MULTILINE)]
    assert starts[0] == main.address
    (second,) = resolve(path, f"main+{starts[1] - starts[0]}").places
    assert (second.address, second.kind, second.warnings) == (starts[1], PlaceKind.OFFSET, ())
    long = next(at for at, after in pairwise(starts) if after - at > 1)
    (inside,) = resolve(path, f"main+{long - starts[0] + 1}").places
    assert "inside of the instruction" in inside.warnings[0]
    (behind,) = resolve(path, "main+0x200").places
    assert "behind its end" in behind.warnings[0]
    assert "no code is there" in resolve(path, "main+0x10000000").warnings[0]


def test_addresses(build: Build) -> None:
    path = build(*PLAIN, "-no-pie")
    (main,) = resolve(path, "main").places
    (same,) = resolve(path, f"{main.address:#x}").places
    assert (same.symbol, same.kind, same.distance) == ("main", PlaceKind.ENTRY, 0)
    assert "has no code there" in resolve(path, "0x10").missing
    assert "may be loaded anywhere" in resolve(build(*PLAIN), "0x1000").missing
    (named,) = resolve(path, f"{path.name}!{main.address}").places
    assert named == same
    assert "is another image" in resolve(path, "other!main").missing


def test_stripped_files(build: Build, tmp_path: Path) -> None:
    path = build(*PLAIN, "-rdynamic")
    stripped, kept = tmp_path / "stripped", tmp_path / "kept"
    subprocess.run(["strip", "-o", stripped, path], check=True)
    dynamic = {name.partition("@")[0]: address for address, name in functions_of(path, "-D")}
    assert addresses(stripped, "twice") == [dynamic["twice"]]
    assert addresses(stripped, "*") == sorted(set(dynamic.values()))
    assert not addresses(stripped, "shared_name")
    # As distributions keep names in what they strip.
    small = tmp_path / "small"
    subprocess.run(["objcopy", "-S", "--remove-section=.comment", "--keep-symbol=shared_name", path, small], check=True)
    packed = tmp_path / "packed"
    packed.write_bytes(lzma.compress(small.read_bytes()))
    subprocess.run(["objcopy", f"--add-section=.gnu_debugdata={packed}", stripped, kept], check=True)
    assert addresses(kept, "shared_name") == addresses(path, "shared_name")
    packed.write_bytes(b"\xfd7zXZ\0 this is none")
    subprocess.run(["objcopy", f"--update-section=.gnu_debugdata={packed}", kept], check=True)
    assert addresses(kept, "twice") == [dynamic["twice"]]


def test_debug_files(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build(*PLAIN, "-Wl,--build-id")
    stripped = tmp_path / "stripped"
    with open_elf(path) as elf:
        build_id = elf.build_id
    assert build_id is not None
    debug = tmp_path / "debug" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True)
    subprocess.run(["strip", "-o", stripped, path], check=True)
    assert not addresses(stripped, "shared_name")
    for module in ("symbols", "code_symbols", "debug_sections"):
        monkeypatch.setattr(f"clew.binary.{module}.DEBUG_DIRECTORY", tmp_path / "debug")
    assert addresses(stripped, "shared_name") == addresses(path, "shared_name")
    assert addresses(stripped, "add", with_inlined=True) == addresses(path, "add", with_inlined=True)
    assert addresses(stripped, "lookup.c:10") == addresses(path, "lookup.c:10")


def test_files_in_memory(build: Build) -> None:
    path = build(*PLAIN)
    with open_image_bytes(path.read_bytes(), "in-memory") as image:
        for text in ("twice", "lookup.c:10"):
            places = resolve_in_image(image, parse_location(text)).places
            assert [place.address for place in places] == addresses(path, text)
            assert {place.image for place in places} == {"in-memory"}


def test_versions() -> None:
    path = libc()
    rows = functions_of(path, "-D")
    versioned: dict[str, dict[str, int]] = {}
    for address, name in rows:
        stem, mark, version = name.partition("@")
        versioned.setdefault(stem, {})[mark + version] = address
    # Those of which an old and a new one are at two places.
    several = {name: found for name, found in versioned.items() if len(set(found.values())) > 1}
    assert several
    with open_image(path) as image:
        for name in sorted(several)[:8]:
            for version, address in several[name].items():
                (place,) = resolve_in_image(image, parse_location(name + version)).places
                assert place.address == address
            whole = resolve_in_image(image, parse_location(name))
            assert {place.address for place in whole.places} >= set(several[name].values())
            assert f"functions are called {name}" in whole.warnings[0]
        assert not resolve_in_image(image, parse_location("malloc@NONE_1")).places


def test_functions_that_are_chosen(build: Build) -> None:
    rows = subprocess.run(["nm", "-D", libc()], check=True, capture_output=True, text=True).stdout.splitlines()
    chosen = {row.split()[2].partition("@")[0] for row in rows if " i " in row}
    assert "strlen" in chosen
    (place,) = resolve(libc(), "strlen").places
    assert place.kind == PlaceKind.CHOOSER
    assert "only a process tells" in place.warnings[0]


def test_stubs_are_refused(build: Build) -> None:
    assert "give printf itself" in resolve(build(*PLAIN), "printf@plt").missing
    assert not resolve(build(*PLAIN), "printf").places


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",)])
def test_names_of_classes(build: Build, flags: tuple[str, ...]) -> None:
    path = build(*CLASSES, *flags)
    expected: dict[str, set[int]] = {}
    for (address, mangled), (_, readable) in zip(functions_of(path, "-p"), functions_of(path, "-p", "-C"), strict=True):
        if mangled.startswith("_Z") and "." not in mangled:
            expected.setdefault(readable, set()).add(address)
    assert len(expected) >= 6
    with open_image(path) as image:
        for name, wanted in expected.items():
            places = resolve_in_image(image, parse_location(f"'{name}'")).places
            assert {place.address for place in places} == wanted, name


@pytest.mark.parametrize(
    "name",
    ["ns::over", "ns::Widget::go", "ns::Widget::small", "ns::Widget::operator()", "ns::Widget::most<int>", "main"],
)
def test_names_without_parameters(build: Build, name: str) -> None:
    path = build(*CLASSES, "-O0")
    told = ask_gdb(path, f"info line {name}")
    expected = sorted(int(text, 16) for text in re.findall(r"starts at address (0x[0-9a-f]+)", told))
    assert expected
    assert addresses(path, name) == expected


def test_short_names_of_classes(build: Build) -> None:
    path = build(*CLASSES, "-O0")
    assert addresses(path, "ns::over(int)") == addresses(path, "_ZN2ns4overEi")
    assert addresses(path, "ns::Widget::most") == sorted(
        [*addresses(path, "ns::Widget::most<int>"), *addresses(path, "ns::Widget::most<double>")]
    )
    assert len(addresses(path, "ns::Widget::operator<")) == 1
    assert addresses(path, "ns::W*") == addresses(path, "ns::Widget::*")
    assert len(addresses(path, "(anonymous namespace)::secret")) == 1
    assert "did you mean (anonymous namespace)::secret(int)?" in resolve(path, "secret").missing
    assert addresses(path, "ns::over(const std::string&)") == []
    assert len(addresses(path, "ns::over(std::*string*)")) == 1
    assert addresses(path, "*::over(int)") == addresses(path, "ns::over(int)")
    assert set(addresses(path, "*(double)")) == set(addresses(path, "ns::over(double)"))
    assert "3 functions are meant by ns::over" in resolve(path, "ns::over").warnings[0]


@pytest.mark.parametrize("flags", [(), ("-C", "symbol-mangling-version=v0")], ids=["default", "v0"])
def test_names_of_rust(build: Build, flags: tuple[str, ...]) -> None:
    path = build("rustc", "-g", "-O", *flags, "lookup_modules.rs")
    rows = functions_of(path)
    serve = [address for address, name in rows if "5serve" in name]
    shown = sorted(address for address, name in rows if "5shown" in name)
    assert addresses(path, "lookup_modules::net::Conn::serve") == serve
    assert addresses(path, "lookup_modules::net::shown") == shown
    assert len(shown) == 2
    found = addresses(path, "<lookup_modules::net::Conn as core::fmt::Display>::fmt")
    assert found == [address for address, name in rows if "Display" in name and "lookup_modules" in name]
    assert {*serve, *shown} <= set(addresses(path, "lookup_modules::net::*"))
    assert "did you mean" in resolve(path, "serve").missing


def test_names_of_go(tmp_path: Path, build: Build) -> None:
    text = tmp_path / "go.c"
    text.write_text(
        "int f1(int n){return n;} int f2(int n){return n+1;} int f3(int n){return n+2;} int main(){return 0;}"
    )
    path = tmp_path / "go"
    names = ("net/http.(*conn).serve", "net/http.(*conn).close", "net/http.(other).f.(*conn).g")
    subprocess.run(
        ["objcopy", *(f"--redefine-sym=f{n}={one}" for n, one in enumerate(names, 1)), build("gcc", str(text)), path],
        check=True,
    )
    known = {name: address for address, name in functions_of(path)}
    assert addresses(path, "net/http.(*conn).serve") == [known["net/http.(*conn).serve"]]
    assert addresses(path, "net/http.(*conn).*") == sorted(
        [known["net/http.(*conn).serve"], known["net/http.(*conn).close"]]
    )
    assert len(addresses(path, "net/http.*")) == 3


@pytest.mark.parametrize("flags", [("-O2",), ("-O2", "-gdwarf-4"), ("-O2", "-flto")])
def test_inlined_instances(build: Build, flags: tuple[str, ...]) -> None:
    path = build("gcc", "-g", *flags, "lookup.c", "lookup_other.c")
    entries = {int(one, 16) for one in _instances(path, "add")}
    assert entries
    found = resolve(path, "add", with_inlined=True)
    assert {place.address for place in found.places} == entries
    assert {place.kind for place in found.places} == {PlaceKind.INLINED}
    assert {place.source for place in found.places} <= {"add inlined in main", "add inlined in twice"}
    told = resolve(path, "add")
    assert not told.places
    assert f"it was inlined at {len(entries)} place" in told.missing
    assert entries <= set(addresses(path, "a*", with_inlined=True))


def _instances(path: Path, name: str) -> list[str]:
    """Where instances of a function are entered, as readelf lists its entries."""
    done = subprocess.run(["readelf", "--debug-dump=info", path], check=True, capture_output=True, text=True)
    blocks = re.split(r"\n <[0-9a-f]+><([0-9a-f]+)>: Abbrev Number", done.stdout)
    entries = dict(zip(blocks[1::2], blocks[2::2], strict=True))
    is_named = re.compile(rf"DW_AT_name\s+: (?:\([^)]*\): )?{name}\s*$", re.MULTILINE).search
    origins = {at for at, text in entries.items() if "DW_TAG_subprogram" in text and is_named(text)}
    found = []
    for text in entries.values():
        origin = re.search(r"DW_AT_abstract_origin: <0x([0-9a-f]+)>", text)
        entry = re.search(r"DW_AT_entry_pc\s+: (0x[0-9a-f]+)", text)
        if "DW_TAG_inlined_subroutine" in text and origin and origin[1] in origins and entry:
            found.append(entry[1])
    return found


def test_inlined_members(build: Build) -> None:
    path = build(*CLASSES, "-O2")
    told = ask_gdb(path, "break ns::Widget::small", "info breakpoints")
    assert "ns::Widget::small" in told
    (place,) = resolve(path, "ns::Widget::small", with_inlined=True).places
    assert place.source == "ns::Widget::small() const inlined in ns::Widget::go(int)"
    assert (place.kind, place.symbol) == (PlaceKind.INLINED, "_ZN2ns6Widget2goEi")


def test_inlined_instances_beside_the_function_are_counted(build: Build) -> None:
    path = build(*PLAIN)
    entries = {int(one, 16) for one in _instances(path, "seen_by_others")}
    assert len(entries) == 1
    alone = resolve(path, "seen_by_others")
    assert [place.kind for place in alone.places] == [PlaceKind.ENTRY]
    assert alone.warnings == ("seen_by_others was also inlined, at 1 place, left out here (--inline)",)
    both = resolve(path, "seen_by_others", with_inlined=True)
    assert {place.address for place in both.places} == {alone.places[0].address, *entries}
    assert not both.warnings


def test_shorter_names() -> None:
    forms = list(readable_forms("_ZN2ns3VecIiE4pushEi"))
    assert forms[0] == "ns::Vec<int>::push(int)"
    assert {"ns::Vec<int>::push", "ns::Vec::push"} <= set(forms)
    assert "foo" in readable_forms("_Z3fooIiEvT_")
    assert "ns::operator<<" in readable_forms("_ZN2nslsERSoRKNS_1AE")
    assert "ns::A::operator int" in readable_forms("_ZNK2ns1AcviEv")
    # What leads to a function is another one.
    assert "B::f" not in readable_forms("_ZThn16_N1B1fEv")
    assert list(readable_forms("main")) == []
    assert last_part("ns::A::operator()") == "operator()"
    assert last_part("ns::f<int>(char)") == "f"


@pytest.mark.parametrize("language", ["c++", "rust", "rust-v0"])
def test_what_is_left_out_early_is_not_meant(build: Build, language: str) -> None:
    """Most names are left out by the words in them: whatever is made of a name has to find that name."""
    if language == "c++":
        path = libc().with_name("libstdc++.so.6")
        names = [name.partition("@")[0] for _, name in functions_of(path, "-D")] if path.exists() else []
    else:
        version = ("-C", "symbol-mangling-version=v0") if language == "rust-v0" else ()
        names = [name for _, name in functions_of(build("rustc", "-g", "-O", *version, "lookup_modules.rs"))]
    mangled = sorted({name for name in names if any(readable_forms(name))})
    if not mangled:
        pytest.skip("there are no such names here")
    dice = random.Random(11)
    for name in dice.sample(mangled, min(len(mangled), 500)):
        for form in dict.fromkeys(readable_forms(name)):
            assert list(find_named([name], form, is_pattern=False)) == [0], (name, form)
            start, end = sorted(dice.choices(range(len(form) + 1), k=2))
            pattern = re.sub(r"\[", "?", f"{form[:start]}*{form[end:]}")
            assert list(find_named([name], pattern, is_pattern=True)) == [0], (name, pattern)


def test_names_of_images() -> None:
    assert is_image_named("", "/lib/libc.so.6")
    assert is_image_named("libc.so.6", "/lib/libc.so.6")
    assert is_image_named("libc*", "/lib/libc.so.6")
    assert is_image_named("/lib/libc.so.6", "/lib/libc.so.6")
    assert is_image_named("*/libc.so.6", "/lib/libc.so.6")
    assert is_image_named("libx.so.1", "/lib/libx.so.1.2.3", "libx.so.1")
    assert not is_image_named("libx.so.1", "/lib/libx.so.1.2.3")
    assert not is_image_named("/usr/lib/libc.so.6", "/lib/libc.so.6")


def test_damaged_files_are_refused_or_answered(build: Build, tmp_path: Path) -> None:
    dice = random.Random(9)
    content = build(*PLAIN).read_bytes()
    path = tmp_path / "damaged"
    n_answered = 0
    for _ in range(120):
        changed = bytearray(content)
        for _ in range(dice.choice([1, 5, 60])):
            changed[dice.randrange(len(changed))] = dice.choice([0, 1, 0x7F, 0xFF, dice.randrange(256)])
        path.write_bytes(changed)
        try:
            with open_image(path) as image:
                read_code_symbols(image.elf)
                for text in ("twice", "t*", "add", "lookup.c:10", "usdt:*:*", "main+1"):
                    resolve_in_image(image, parse_location(text), with_inlined=True)
                    n_answered += 1
        except BinaryError:
            continue
    assert n_answered
