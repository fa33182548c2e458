"""What is to be read of the memory to which an argument leads in some variants of a call only.

Runs in the controller. Pure. How much that is an expression works out of the argument that chooses the variant: the sum
of all sizes, each times whether its values are there. What is read in vain is not told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clew.api.argument_words import MAX_REGISTERS
from clew.api.capture_plan import Words, size_of
from clew.api.description import Function, Parameter, Variants
from clew.api.descriptions import Descriptions
from clew.protocol._constants import MAX_CAPTURE_TEXT

__all__ = ["variant_pieces"]

_MAX_RANGES: Final = 12
"""Of values that are asked for in one expression."""

_STRINGS: Final = ("path", "string")
_STRING: Final = "string"

_Sizes = dict[int, int | str]
"""How many bytes there are, by the value that chooses: a number, an expression, or _STRING."""


def variant_pieces(function: Function, descriptions: Descriptions) -> Iterator[tuple[int, str, bool]]:
    """Which argument, what takes that to which it leads, and whether that is when the call has returned."""
    variants = function.variants
    if variants is None or variants.by >= MAX_REGISTERS:
        return
    for base in function.arguments:
        if base.index >= MAX_REGISTERS or base.index == variants.by or base.hidden == "secret":
            continue
        for is_answer in (False, True):
            words = Words(is_answer)
            sizes = _sizes(function, variants, base, descriptions, is_answer=is_answer)
            strings = [value for value, size in sizes.items() if size == _STRING]
            own = words.argument(base.index)
            chosen = f"(u32){words.argument(variants.by)}"
            if variants.mask is not None:
                chosen = f"({chosen} & {variants.mask})"
            total = [
                f"{_is_one_of(chosen, values, sizes)}*{size}"
                for size in sorted({size for size in sizes.values() if size != _STRING}, key=str)
                if (values := [value for value, one in sizes.items() if one == size])
            ]
            if base.coded_index == variants.by:
                # Requests of ioctl say in two bits which way it goes, and how much it is.
                way = f"({chosen} >> 31)" if is_answer else f"({chosen} >> 30 & 1)"
                total.append(f"{way}*({chosen} >> 16 & 0x3fff)")
            if total:
                yield base.index, f"bytes({own}, {' + '.join(total)}, {MAX_CAPTURE_TEXT})", is_answer
            if strings:
                yield base.index, f"str({own}*{_is_one_of(chosen, strings, sizes)}, {MAX_CAPTURE_TEXT})", is_answer


def _sizes(
    function: Function, variants: Variants, base: Parameter, descriptions: Descriptions, *, is_answer: bool
) -> _Sizes:
    """What the cases say of an argument, as far as that is not what the function itself says."""
    sizes: _Sizes = {}
    words = Words(is_answer)
    has_own_size = base.hidden is None and size_of(base, function, descriptions, words) is not None
    for case in variants.cases:
        own = next((one for one in case.parameters if one.index == base.index), None)
        if (
            own is None
            or not own.is_pointer
            or own.hidden is not None
            or own.direction == ("in" if is_answer else "out")
        ):
            continue
        if own.raw_type in _STRINGS:
            size: int | str = _STRING
        else:
            found = size_of(own, function, descriptions, words)
            if found is None or (not found[0].isdecimal() and has_own_size):
                # What says how much there is says it without the case, too.
                continue
            size = int(found[0]) if found[0].isdecimal() else f"({found[0]})"
        for value in descriptions.case_values(function.parameters or (), variants, case):
            is_coded = base.coded_index == variants.by and value >> 16 & 0x3FFF == size
            if not is_coded:
                sizes.setdefault(value, size)
    return sizes


def _is_one_of(chosen: str, values: list[int], sizes: _Sizes) -> str:
    """Whether the value that chooses is one of some: ranges that hold no other one that is described."""
    ranges: list[list[int]] = []
    for value in sorted(values):
        is_next = ranges and not any(ranges[-1][1] < other < value for other in sizes if sizes[other] != sizes[value])
        if is_next:
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    asked = [
        f"{chosen} == {low:#x}" if low == high else f"{chosen} >= {low:#x} && {chosen} <= {high:#x}"
        for low, high in ranges[:_MAX_RANGES]
    ]
    return f"({' || '.join(f'({one})' for one in asked)})"
