"""How the values of captures are kept in tables.

Pure.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from clew.protocol._constants import CaptureType

__all__ = ["ARROW_TYPES"]

ARROW_TYPES: Final = {
    CaptureType.I8: pa.int8(),
    CaptureType.U8: pa.uint8(),
    CaptureType.I16: pa.int16(),
    CaptureType.U16: pa.uint16(),
    CaptureType.I32: pa.int32(),
    CaptureType.U32: pa.uint32(),
    CaptureType.I64: pa.int64(),
    CaptureType.U64: pa.uint64(),
    CaptureType.F32: pa.float32(),
    CaptureType.F64: pa.float64(),
    CaptureType.TEXT: pa.binary(),
}
