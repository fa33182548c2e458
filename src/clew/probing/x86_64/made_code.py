"""Code that no file has, as programs make it while they run: a run of instructions from an address on.

What else leads into it is not known, nor where its function begins: of a jump that replaces several instructions each
one's first byte traps, as always.
"""

from __future__ import annotations

from typing import Final

from clew.errors import UsageError
from clew.probing.x86_64.function_code import ReadMemory, decode_function
from clew.probing.x86_64.functions import Functions
from clew.probing.x86_64.image_code import ImageCode
from clew.probing.x86_64.kinds import ENDS, Kind

__all__ = ["read_made_code"]

_RUN_BYTES: Final = 256


def read_made_code(address: int, read: ReadMemory) -> ImageCode:
    """The code from an address up to the first instruction behind which it does not go on, or so many bytes of it.
    Raises UsageError where there is no instruction."""
    data = read(address, _RUN_BYTES)
    run = decode_function(address, data)
    ends = (index for index, kind in enumerate(run.kinds) if kind in ENDS or kind == Kind.BAD)
    last = next(ends, len(run.kinds) - 1)
    if last < 0 or run.kinds[0] == Kind.BAD:
        raise UsageError(f"{address:#x}: no instruction is there")
    size_bytes = run.starts[last + 1] - address
    code = decode_function(address, data[:size_bytes], following=data[size_bytes:])
    return ImageCode(Functions.of([code]), frozenset(), {}, {})
