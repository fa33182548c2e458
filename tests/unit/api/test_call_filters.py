"""What a call is chosen by, out of its name and its library."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from clew.analysis.calls.call_filters import find_filters
from clew.api.call_filters import built_in_filters
from clew.api.vocabulary import FILTERS
from clew.protocol.words import CALL_WORDS

SYSTEM_CALL, LIBRARY = CALL_WORDS.index("system_call"), CALL_WORDS.index("library")


@pytest.mark.parametrize(
    ("name", "library", "wanted"),
    [
        ("openat", None, "File"),
        ("connect", None, "Network"),
        ("futex", None, "Synchronisation"),
        ("IORING_OP_CONNECT", "io_uring", "Network"),
        ("IORING_OP_CONNECT", None, "Other"),
        ("syscall_0x3e7", None, "Other"),
        ("", None, "Other"),
    ],
)
def test_of_system_calls(name: str, library: str | None, wanted: str) -> None:
    assert built_in_filters().of_system_call(name, library) == wanted


@pytest.mark.parametrize(
    ("name", "library", "wanted"),
    [
        ("fopen", "/usr/lib/libc.so.6", "File"),
        ("clock_gettime", "[vdso]", "Time"),
        ("__vdso_clock_gettime", "[vdso]", "Time"),
        # Out of headers, of a library whose functions all have one.
        ("SSL_CTX_set_options", "/usr/lib/libssl.so.3", "Crypto"),
        ("no_such_function", "/usr/lib/libssl.so.3", "Other"),
        ("qsort", "/usr/lib/libc.so.6", "Other"),
        ("fopen", "/opt/program", "Other"),
        ("fopen", None, "Other"),
    ],
)
def test_of_functions(name: str, library: str | None, wanted: str) -> None:
    assert built_in_filters().of_function(name, library) == wanted


def test_a_static_program_has_functions_of_libraries() -> None:
    assert built_in_filters().of_function("fopen", "/opt/program", is_alone=True) == "File"
    assert built_in_filters().of_function("own", "/opt/program", is_alone=True) == "Other"


@pytest.mark.parametrize("n_more", [0, 1 << 21])
def test_each_call_has_that_of_its_name_and_library(n_more: int) -> None:
    """However many names there are; what there is not is behind the last."""
    names = ["read", "fopen", *(str(number) for number in range(n_more))]
    rows = [
        (SYSTEM_CALL, 0, 1, "File"),
        (LIBRARY, 1, 0, "File"),
        (LIBRARY, 1, 1, "Other"),
        (SYSTEM_CALL, 1, 1, "Other"),
        (LIBRARY, len(names), 0, "Other"),
        (len(CALL_WORDS), 0, 1, "Other"),
    ]
    kind, name, library = (np.array([row[column] for row in rows] * 2) for column in range(3))
    alone = np.zeros(len(kind), bool)
    found = find_filters(names, ["/lib/libc.so.6"], kind=kind, name=name, library=library, is_alone=alone)
    assert [FILTERS[one] for one in found.tolist()] == [row[3] for row in rows] * 2
    assert found.dtype == np.uint8


def test_the_page_knows_them() -> None:
    """In the same order, which is that of its choice."""
    text = (Path(__file__).resolve().parents[3] / "web/src/api/calls.ts").read_text()
    told = text.partition("CALL_FILTERS = [")[2].partition("\n]")[0]
    assert re.findall(r'"(\w+)"', told) == list(FILTERS)
