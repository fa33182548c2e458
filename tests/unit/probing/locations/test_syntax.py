"""What people write for places, and what is no place."""

from __future__ import annotations

import os
import random

import pytest

from clew.errors import UsageError
from clew.probing.locations.readable import find_named
from clew.probing.locations.syntax import (
    AddressPlace,
    LinePlace,
    Location,
    NamePlace,
    UsdtPlace,
    has_pattern,
    parse_location,
)


def name(text: str, name: str, *, image: str = "", distance: int = 0, is_quoted: bool = False) -> NamePlace:
    return NamePlace(text, image, name, distance, is_quoted)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0x401136", AddressPlace("0x401136", "", 0x401136)),
        ("4198710", AddressPlace("4198710", "", 0x401136)),
        ("020010466", AddressPlace("020010466", "", 0x401136)),
        ("010", AddressPlace("010", "", 8)),
        ("0x401136+0x10", AddressPlace("0x401136+0x10", "", 0x401146)),
        ("libc.so.6!0x98930", AddressPlace("libc.so.6!0x98930", "libc.so.6", 0x98930)),
        ("main", name("main", "main")),
        ("main+0x10", name("main+0x10", "main", distance=16)),
        ("main+16", name("main+16", "main", distance=16)),
        ("main+020", name("main+020", "main", distance=16)),
        ("main + 020", name("main + 020", "main", distance=16)),
        ("  main ", name("main", "main")),
        ("libc.so.6!open*", name("libc.so.6!open*", "open*", image="libc.so.6")),
        ("lib*!malloc+4", name("lib*!malloc+4", "malloc", image="lib*", distance=4)),
        ("/bin/x!f", name("/bin/x!f", "f", image="/bin/x")),
        ("a.c:42", LinePlace("a.c:42", "", "a.c", 42)),
        ("src/a b.cc:7", LinePlace("src/a b.cc:7", "", "src/a b.cc", 7)),
        ("libfoo.so!a.c:42", LinePlace("libfoo.so!a.c:42", "libfoo.so", "a.c", 42)),
        ("ns::f", name("ns::f", "ns::f")),
        ("ns::f(int, char)", name("ns::f(int, char)", "ns::f(int, char)")),
        ("ns::42", name("ns::42", "ns::42")),
        ("ns::f(int)+0x10", name("ns::f(int)+0x10", "ns::f(int)", distance=16)),
        ("ns::operator!", name("ns::operator!", "ns::operator!")),
        ("ns::operator!=(int)", name("ns::operator!=(int)", "ns::operator!=(int)")),
        ("x.so!ns::operator!=", name("x.so!ns::operator!=", "ns::operator!=", image="x.so")),
        ("operator+", name("operator+", "operator+")),
        ("net/http.(*conn).serve", name("net/http.(*conn).serve", "net/http.(*conn).serve")),
        ("'10'", name("'10'", "10", is_quoted=True)),
        ('"a!b*"', name('"a!b*"', "a!b*", is_quoted=True)),
        ("x.so!'a+0x10'+0x20", name("x.so!'a+0x10'+0x20", "a+0x10", image="x.so", distance=32, is_quoted=True)),
        ("memcpy@GLIBC_2.2.5", name("memcpy@GLIBC_2.2.5", "memcpy@GLIBC_2.2.5")),
        ("usdt:libc:setjmp", UsdtPlace("usdt:libc:setjmp", "", "libc", "setjmp")),
        ("libc.so.6!usdt:libc:*", UsdtPlace("libc.so.6!usdt:libc:*", "libc.so.6", "libc", "*")),
    ],
)
def test_places(text: str, expected: Location) -> None:
    assert parse_location(text) == expected


def test_a_path_is_made_absolute() -> None:
    assert parse_location("./x!f").image == os.path.abspath("x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "an empty place"),
        ("   ", "an empty place"),
        ("08", "08 is no octal number"),
        ("0x", "0x is no hexadecimal number"),
        ("12ab", "12ab is no decimal number; a name that begins with a digit is written in quotes"),
        ("1_000", "1_000 is no decimal number"),
        ("main+09", "09 is no octal number"),
        ("0x10000000000000000", "larger than 64 bits"),
        ("0xffffffffffffffff+1", "no program has code there"),
        ("0", "no program has code there"),
        ("+0x10", "a distance from nothing"),
        ("a.c:0", "0 is no line"),
        ("a.c:010", "010 is no line; lines are decimal numbers"),
        ("a.c:99999999999", "99999999999 is no line"),
        ("!f", "IMAGE!PLACE was expected"),
        ("libc!", "IMAGE!PLACE was expected"),
        ("''", "a name in quotes was expected"),
        ("'a'b", "a name in quotes was expected"),
        ("usdt:libc", "usdt:PROVIDER:PROBE was expected"),
        ("usdt:a:b:c", "usdt:PROVIDER:PROBE was expected"),
        ("usdt::b", "usdt:PROVIDER:PROBE was expected"),
        ("a\nb", "not printable"),
        ("a\x1bb", "not printable"),
        ("a" * 5000, "longer than 4096 characters"),
        ("*a" * 33, "at most 32 stars"),
    ],
)
def test_what_is_no_place(text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_location(text)
    assert told in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.message.isprintable()


def test_numbers_of_all_kinds_are_one_place() -> None:
    places = [parse_location(text) for text in ("0x1f", "0X1F", "31", "037")]
    assert {one.address for one in places if isinstance(one, AddressPlace)} == {31}
    assert len(places) == 4


@pytest.mark.parametrize(("text", "expected"), [("a*", True), ("a?", True), ("[ab]c", True), ("a[]", False)])
def test_patterns(text: str, expected: bool) -> None:
    assert has_pattern(text) is expected
    where = parse_location(text)
    quoted = parse_location(f"'{text}'")
    assert isinstance(where, NamePlace) and isinstance(quoted, NamePlace)
    assert where.may_be_pattern is expected
    assert not quoted.may_be_pattern


def test_any_text_is_a_place_or_refused() -> None:
    dice = random.Random(5)
    pieces = [
        "a",
        "0",
        "8",
        "0x",
        "1",
        "+",
        ":",
        "::",
        "!",
        "'",
        '"',
        "*",
        "[",
        "]",
        "?",
        "(",
        ")",
        "operator",
        "usdt:",
        " ",
        "\\",
        "-",
        "é",
    ]
    n_places = 0
    for _ in range(4000):
        text = "".join(dice.choice(pieces) for _ in range(dice.randrange(9)))
        try:
            where = parse_location(text)
        except UsageError as error:
            assert error.message
            continue
        n_places += 1
        if isinstance(where, NamePlace):
            # Patterns of all kinds are ones.
            names = ["a", "_Z1av", "a*", where.name]
            assert 3 in find_named(names, where.name, is_pattern=False)
            list(find_named(names, where.name, is_pattern=True))
    assert n_places > 500
