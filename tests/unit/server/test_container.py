"""Containers of typed arrays hold what they were given."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clew.protocol._constants import CONTAINER_MAGIC
from clew.server.container import decode_container, encode_container, pack_texts
from clew.store.columns import Array

NUMBERS = hnp.arrays(
    st.sampled_from(
        [np.dtype(f"{kind}{size}") for kind in "ui" for size in (1, 2, 4, 8)] + [np.dtype("f4"), np.dtype("f8")]
    ),
    st.integers(0, 40),
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
META = st.dictionaries(st.text(max_size=8), PLAIN, max_size=4)


@settings(deadline=None)
@given(st.text(max_size=20), META, st.dictionaries(st.text(max_size=12), NUMBERS, max_size=6))
def test_what_was_put_in_comes_out(kind: str, meta: dict[str, Any], arrays: dict[str, Array]) -> None:
    content = encode_container(kind, meta, arrays)
    found_kind, found_meta, found = decode_container(content)
    assert (found_kind, found_meta, list(found)) == (kind, meta, list(arrays))
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=30), NUMBERS, max_size=6))
def test_arrays_lie_where_the_format_says(arrays: dict[str, Array]) -> None:
    """Read with nothing but the document: docs/format/container.md."""
    content = encode_container("kind", {}, arrays)
    magic, version, header_bytes = struct.unpack_from("<8sII", content)
    assert (magic, version) == (b"CLDATA11", 1)
    assert (16 + header_bytes) % 8 == 0
    header = json.loads(content[16 : 16 + header_bytes])
    for one, array in zip(header["arrays"], arrays.values(), strict=True):
        start = 16 + header_bytes + one["offset"]
        assert start % 8 == 0
        little_endian = array.astype(array.dtype.newbyteorder("<"))
        assert content[start : start + array.nbytes] == little_endian.tobytes()
        assert (one["type"], one["length"]) == (f"{array.dtype.kind}{array.itemsize * 8}", len(array))
    assert len(content) % 8 == 0


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), max_size=20))
def test_texts_are_cut_where_they_end(texts: list[str]) -> None:
    packed = pack_texts("name", texts)
    content, ends = packed["name.bytes"].tobytes(), packed["name.ends"].tolist()
    starts = [0, *ends][: len(ends)]
    assert [content[start:end].decode() for start, end in zip(starts, ends, strict=True)] == texts
    assert [packed["name.bytes"].dtype.str, packed["name.ends"].dtype.str] == ["|u1", "<u4"]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 2)),
        np.zeros(2, bool),
        np.zeros(2, complex),
        np.array(["a"]),
        np.zeros(2, object),
        np.zeros(2, "f2"),
    ],
    ids=str,
)
def test_what_has_no_place_is_refused(array: Array) -> None:
    with pytest.raises(ValueError, match="no place in a container"):
        encode_container("kind", {}, {"it": array})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"CLDATA11",
        b"x" * 64,
        struct.pack("<QII", CONTAINER_MAGIC, 2, 0),
        struct.pack(">QII", CONTAINER_MAGIC, 1, 0),
    ],
)
def test_what_is_no_container_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="container"):
        decode_container(content)


def test_the_pages_golden_container_is_what_is_written() -> None:
    """web/src/protocol/container.test.ts reads it."""
    arrays: dict[str, Array] = {
        "a": np.array([1, 2, 255], np.uint8),
        "b": np.array([-1, 300], np.int16),
        "c": np.array([0, 2**64 - 1], np.uint64),
        "d": np.array([0.5, -1e300]),
        "empty": np.zeros(0, np.uint32),
        **pack_texts("t", ["main", "", "größe", "\0<b>"]),
    }
    golden = Path(__file__).resolve().parents[3] / "web/src/protocol/golden-container.bin"
    assert golden.read_bytes() == encode_container("golden", {"n": 3, "name": "é"}, arrays)
