"""Typed arrays on their way to the page: the container of docs/format/container.md.

Pure. Arrays come in as numpy arrays and go out little-endian, aligned to 8 bytes, so that the page looks at them where
they lie.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from clew.protocol._constants import CONTAINER_MAGIC, CONTAINER_VERSION
from clew.store.columns import Array

__all__ = ["MEDIA_TYPE", "decode_container", "encode_container", "pack_texts"]

MEDIA_TYPE: Final = "application/vnd.clew.arrays"
_HEAD: Final = struct.Struct("<QII")
_ALIGNMENT: Final = 8
_TYPES: Final = {
    "u8": "<u1",
    "i8": "<i1",
    "u16": "<u2",
    "i16": "<i2",
    "u32": "<u4",
    "i32": "<i4",
    "u64": "<u8",
    "i64": "<i8",
    "f32": "<f4",
    "f64": "<f8",
}


def encode_container(kind: str, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """A container of `arrays`, of one dimension each, with `meta`, which JSON can say. Raises ValueError for others."""
    described, parts, offset = [], [], 0
    for name, array in arrays.items():
        word = f"{'f' if array.dtype.kind == 'f' else array.dtype.kind}{array.dtype.itemsize * 8}"
        if word not in _TYPES or array.ndim != 1:
            raise ValueError(f"array {name}: {array.dtype} with {array.ndim} dimensions has no place in a container")
        content = np.ascontiguousarray(array, _TYPES[word]).tobytes()
        described.append({"name": name, "type": word, "offset": offset, "length": len(array)})
        padding = -len(content) % _ALIGNMENT
        parts.append(content + bytes(padding))
        offset += len(content) + padding
    header = json.dumps({"kind": kind, "meta": meta, "arrays": described}, separators=(",", ":")).encode()
    header += b" " * (-(_HEAD.size + len(header)) % _ALIGNMENT)
    return b"".join([_HEAD.pack(CONTAINER_MAGIC, CONTAINER_VERSION, len(header)), header, *parts])


def decode_container(content: bytes) -> tuple[str, dict[str, Any], dict[str, Array]]:
    """What `encode_container` was given. Raises ValueError for what is no container of this version."""
    if len(content) < _HEAD.size:
        raise ValueError("too short for a container")
    magic, version, header_bytes = _HEAD.unpack_from(content)
    if magic != CONTAINER_MAGIC or version != CONTAINER_VERSION:
        raise ValueError("no container of this version")
    header = json.loads(content[_HEAD.size : _HEAD.size + header_bytes])
    base = _HEAD.size + header_bytes
    arrays = {
        one["name"]: np.frombuffer(content, _TYPES[one["type"]], one["length"], base + one["offset"])
        for one in header["arrays"]
    }
    return header["kind"], header["meta"], arrays


def pack_texts(name: str, texts: Sequence[str]) -> dict[str, Array]:
    """Texts as two arrays: `name.bytes`, UTF-8, and `name.ends`, where each ends in them."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.uint32) if encoded else np.zeros(0, np.uint32)
    return {f"{name}.bytes": np.frombuffer(b"".join(encoded), np.uint8), f"{name}.ends": ends.astype(np.uint32)}
