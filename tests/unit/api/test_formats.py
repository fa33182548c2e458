"""What formats ask for, of printf and of scanf, and strings of wide characters: whatever bytes they are."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.api.formats import read_format
from clew.api.scan_formats import Target, read_scan_format
from clew.api.wide_strings import narrowed, wide_text


def _wide(text: str) -> bytes:
    return text.encode("utf-32-le")


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (b"%d%hd%hhd%ld", ["int *", "short *", "signed char *", "long *"]),
        (b"%u %hu %hhu %lu", ["unsigned int *", "unsigned short *", "unsigned char *", "unsigned long *"]),
        (b"%zu %x %lx", ["unsigned long *", "unsigned int *", "unsigned long *"]),
        (b"%f %lf %Lf", ["float *", "double *", "long double *"]),
        (b"%s %5c %[a-z] %[]x] %[^]]%d", ["char *", "char *", "char *", "char *", "char *", "int *"]),
        (b"%ls%lc%S%l[ab]", ["wchar_t *"] * 4),
        (b"%*d %% %p %ms", ["void **", "char **"]),
        (b"%d %1$d %d", ["int *"]),
        (b"%d %", ["int *"]),
        (b"%[abc", []),
        (b"%d %y", ["int *"]),
    ],
)  # fmt: skip
def test_targets_of_scanf(text: bytes, asked: list[str]) -> None:
    assert [one.c_type for one in read_scan_format(text)] == asked


def test_how_many_characters_there_are_and_what_counts() -> None:
    targets = list(read_scan_format(b"%c%n%7c %n%*d%n%d"))
    assert [one.width for one in targets] == [1, None, 7, None, None, None]
    assert [one.is_counted for one in targets] == [True, False, True, False, False, True]
    # Behind what is skipped, or text, nothing is written if that is not there.
    assert [one.is_behind for one in targets if not one.is_counted] == [True, False, False]


@given(st.binary(max_size=60))
def test_any_bytes_are_a_format(text: bytes) -> None:
    assert all(isinstance(one, Target) for one in read_scan_format(b"%" + text))
    assert len(list(read_format(text))) <= 3 * len(text)
    assert narrowed(text).isascii() or 0xFF in narrowed(text)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (_wide("plain\0behind"), 'L"plain"'),
        (_wide("h\u00e9 \u4e2d \U0001f600\0"), r'L"h\u00e9 \u4e2d \U0001f600"'),
        (_wide('a"\\\n\x011\0'), r'L"a\"\\\n\0011"'),
        (b"\xff\xff\xff\xff" + bytes(4), r'L"\Uffffffff"'),
        (b"", 'L""...'),
        (_wide("cut"), 'L"cut"...'),
        (_wide("odd") + b"x\0", 'L"odd"...'),
    ],
)
def test_wide_strings(data: bytes, told: str) -> None:
    assert wide_text(data, None, None, is_cut=True) == told


def test_wide_strings_have_limits() -> None:
    assert wide_text(_wide("many\0"), 4, None) == 'L"many"'
    assert wide_text(_wide("many\0"), 3, None) == 'L"man"...'
    assert wide_text(_wide("all"), None, None) == 'L"all"'


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")))
def test_wide_strings_are_what_they_were(text: str) -> None:
    told = wide_text(_wide(text + "\0"), None, None)
    assert told.isprintable() and told.isascii()
    assert ast.literal_eval(told[1:]) == text


def test_what_is_to_be_hidden_in_wide_strings() -> None:
    def cut(data: bytes) -> bytes:
        return data.replace("g\u00e9heim".encode(), b"[redacted]")

    assert wide_text(_wide("is g\u00e9heim\0"), None, cut) == 'L"is [redacted]"'
    assert wide_text(_wide("is") + b"\xff" * 4 + bytes(4), None, cut) == r'L"is\Uffffffff"'
