"""What is to be read of the memory that an argument leads to: expressions of captures, each with its place.

Runs in the controller. Pure. An expression is in the language of captures (`capture/grammar.py`); `Words` says how the
arguments are named in it, which depends on when it is worked out. Of arrays, and of what structures lead to, only the
first are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clew.api.argument_words import MAX_REGISTERS
from clew.api.description import Function, Member, Parameter, Struct
from clew.api.descriptions import Descriptions
from clew.api.pieces import REST, Path
from clew.api.ring_entries import field_text, is_answered
from clew.api.values import width_bits
from clew.api.vocabulary import RESULT
from clew.api.wide_strings import WIDE_BYTES
from clew.dataclass import dataclass
from clew.protocol._constants import MAX_CAPTURE_TEXT

__all__ = [
    "ENDED_ELEMENTS",
    "MAX_ROOT_ELEMENTS",
    "Words",
    "inner_pieces",
    "page_rest",
    "paged_pieces",
    "root_pieces",
    "size_of",
]

MAX_ROOT_ELEMENTS: Final = 64
"""Of an array that an argument leads to."""

ENDED_ELEMENTS: Final = 21
"""Of an array that ends with an element of 0."""

_INNER_ELEMENTS: Final = (8, 4, 2)
"""Of arrays, by how deep they are, those of which it is read what they lead to."""

_INNER_BYTES: Final = 512
"""Of a string or a buffer that a structure leads to."""

_MAX_WIDE: Final = 1024
"""Of a string of wide characters, which nothing reads up to its end alone."""

_PAGE: Final = 4096
_FIXED_BYTES: Final = {"timespec": 16}
_MOST_BYTES: Final = {"sockaddr": 128, "sigset": 8, "bits": 128}
_LOADS: Final = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


@dataclass(frozen=True)
class Words:
    """How an expression names arguments: as they are, or, where a call has returned, as they were (`is_returned`).

    `fields`, of an operation of io_uring: which fields they are, by index.
    """

    is_returned: bool
    places: tuple[str | None, ...] = tuple(f"arg{index + 1}" for index in range(MAX_REGISTERS))
    fields: tuple[str, ...] = ()

    def argument(self, index: int) -> str:
        """An argument, which has a place."""
        if self.fields:
            field = self.fields[index]
            was = self.is_returned and not is_answered(field)
            return field_text(field, lambda word: f"entry({word})" if was else word)
        return f"entry({self.places[index]})" if self.is_returned else f"{self.places[index]}"


def root_pieces(
    parameter: Parameter, function: Function, descriptions: Descriptions, words: Words
) -> tuple[tuple[Path, str], ...]:
    """What takes that to which an argument leads, and the path of each; none: nobody knows how much it is, or it is
    known later."""
    own = words.argument(parameter.index)
    if parameter.hidden is not None:
        return ()
    if parameter.raw_type in ("path", "string"):
        return (((), f"str({own}, {MAX_CAPTURE_TEXT})"),)
    if parameter.raw_type == "wide_string":
        return paged_pieces(own, _MAX_WIDE, _count(parameter, function, words))
    if parameter.is_ended:
        return (((), f"words({own}, {ENDED_ELEMENTS})"),)
    found = size_of(parameter, function, descriptions, words)
    if found is None:
        return ()
    size, most = found
    return (((), f"bytes({own}, {size})" if size.isdecimal() or most is None else f"bytes({own}, {size}, {most})"),)


def _count(parameter: Parameter, function: Function, words: Words) -> str | None:
    """How many elements there are, as a number without a sign: a negative one is more than any."""
    says = next((one for one in function.arguments if one.index == parameter.count), None)
    said = _said(parameter.count, function, words)
    return None if says is None or said is None else f"(u{width_bits(says.c_type)}){said}"


def paged_pieces(address: str, most: int, count: str | None = None) -> tuple[tuple[Path, str], ...]:
    """What takes bytes of which nobody knows how many are there, `most` or those of `count` wide characters: up to the
    end of the page, and what is behind that, which may not be there."""
    wanted = str(most)
    if count is not None:
        n_most = most // WIDE_BYTES
        wanted = f"({most} - ({count} < {n_most})*({most} - {WIDE_BYTES}*{count}))"
    left = page_rest(address)
    own = left if count is None else f"{wanted} - ({left} < {wanted})*({wanted} - {left})"
    behind = f"({left} < {wanted})*({wanted} - {left})"
    return (
        ((), f"bytes({address}, {own}, {most})"),
        (REST, f"bytes(({address} | {_PAGE - 1}) + 1, {behind}, {most})"),
    )


def page_rest(address: str) -> str:
    """How many bytes there are from an address to the end of its page."""
    return f"({_PAGE} - ({address} & {_PAGE - 1}))"


def size_of(
    parameter: Parameter, function: Function, descriptions: Descriptions, words: Words
) -> tuple[str, int | None] | None:
    """How many bytes an argument leads to, as an expression, and how many of them are taken at most."""
    raw_type, own = parameter.raw_type, words.argument(parameter.index)
    if raw_type in _FIXED_BYTES:
        return str(_FIXED_BYTES[raw_type]), None
    struct = descriptions.struct(parameter.struct)
    if struct is not None and parameter.elements is not None:
        return str(min(parameter.elements * struct.size, MAX_CAPTURE_TEXT)), None
    count = _said(parameter.count, function, words)
    if parameter.count is not None and (struct is not None or raw_type == "bits"):
        if count is None:
            return None
        if struct is None:
            return f"({count}+7)/8", _MOST_BYTES[raw_type]
        most = min(MAX_ROOT_ELEMENTS * struct.size, MAX_CAPTURE_TEXT) // struct.size * struct.size
        return f"(u32){count}*{struct.size}", most
    size = _said(parameter.size_index, function, words)
    if struct is not None:
        last = struct.members[-1]
        if size is not None and not last.size and last.size_name is None and struct.length is None:
            # So many bytes are behind what comes first.
            return f"{last.offset}+{size}", MAX_CAPTURE_TEXT
        if size is not None:
            return size, MAX_CAPTURE_TEXT if struct.length is not None else struct.size
        said = struct.find(last.size_name) if last.size_name and not last.size else None
        if said is not None:
            # It ends with as many bytes as one of its members says.
            return f"{last.offset}+*({_LOADS[said.size]}*)({own}+{said.offset})", MAX_CAPTURE_TEXT
        return str(struct.size), None
    if raw_type == "sigset" and parameter.size_index is None:
        return str(_MOST_BYTES[raw_type]), None
    if raw_type not in ("buffer", "sockaddr", "sigset", "bits", "octets") or size is None:
        return None
    return size, _MOST_BYTES.get(raw_type)


def _said(index: int | None, function: Function, words: Words) -> str | None:
    """The number that another parameter is, or leads to."""
    if index is None or index >= len(words.places):
        return None
    if index == RESULT:
        return "retval" if words.is_returned else None
    says = next((one for one in function.arguments if one.index == index), None)
    if says is None or words.places[index] is None:
        return None
    word = words.argument(index)
    return f"*(unsigned*){word}" if says.is_pointer else word


def inner_pieces(
    parameter: Parameter, function: Function, descriptions: Descriptions, words: Words
) -> Iterator[tuple[Path, str]]:
    """What takes that to which addresses within the structures lead to which an argument does, and its path."""
    struct = descriptions.struct(parameter.struct)
    if struct is None or struct.length is not None or parameter.hidden is not None:
        return
    address = words.argument(parameter.index)
    walk = _Walk(descriptions)
    if not parameter.is_array:
        yield from walk.struct(struct, address, (), "", 0)
        return
    count = _said(parameter.count, function, words)
    n_elements = min(parameter.elements or _INNER_ELEMENTS[0], _INNER_ELEMENTS[0])
    if parameter.is_ended:
        n_elements = ENDED_ELEMENTS - 1
    if count is not None:
        count = f"(u32){count}"
    yield from walk.elements(struct, address, n_elements, count, (), 0)


class _Walk:
    """Goes through structures, and tells what they lead to."""

    def __init__(self, descriptions: Descriptions) -> None:
        self._descriptions = descriptions

    def elements(
        self, struct: Struct, address: str, n_elements: int, count: str | None, path: Path, depth: int
    ) -> Iterator[tuple[Path, str]]:
        """Of the first elements of an array, of which there are `count`."""
        if struct.length is not None or depth >= len(_INNER_ELEMENTS):
            return
        each = [
            list(
                self.struct(
                    struct, _at(address, index * struct.size), (*path, index), _is_there(index, count), depth + 1
                )
            )
            for index in range(n_elements)
        ]
        for pieces in each:
            yield from pieces

    def struct(self, struct: Struct, address: str, path: Path, factor: str, depth: int) -> Iterator[tuple[Path, str]]:
        """Of one structure; `factor` is 0 where it is not there."""
        for member in struct.members:
            place = _at(address, member.offset)
            own_path = path if struct.is_plain else (*path, member.name)
            inner = self._descriptions.struct(member.struct)
            if member.hidden is not None:
                continue
            if member.leads:
                yield from self._led_to(struct, member, address, f"*(u64*)({place})", own_path, factor, depth)
            elif inner is not None and not member.is_many:
                yield from self.struct(inner, place, own_path, factor, depth)

    def _led_to(
        self, struct: Struct, member: Member, address: str, target: str, path: Path, factor: str, depth: int
    ) -> Iterator[tuple[Path, str]]:
        inner = self._descriptions.struct(member.struct)
        if member.raw_type in ("path", "string"):
            yield path, f"str({target}{factor}, {_INNER_BYTES})"
            return
        if member.raw_type == "wide_string" and member.size_name is None:
            yield path, f"bytes({target}{factor}, {page_rest(target)}, {_INNER_BYTES})"
            return
        count = _member(struct, member.count, address)
        size = _member(struct, member.size_name, address)
        if inner is None:
            fixed = _FIXED_BYTES.get(member.raw_type)
            if size is not None or fixed is not None:
                most = _MOST_BYTES.get(member.raw_type, _INNER_BYTES)
                yield path, f"bytes({target}, {fixed if size is None else size}{factor}, {most})"
            return
        if count is not None:
            n_elements = _INNER_ELEMENTS[min(depth + 1, len(_INNER_ELEMENTS) - 1)]
            most = MAX_ROOT_ELEMENTS * inner.size
            yield path, f"bytes({target}, {count}*{inner.size}{factor}, {min(most, MAX_CAPTURE_TEXT)})"
            yield from self.elements(inner, target, n_elements, count, path, depth + 1)
        elif member.elements is not None or size is None:
            yield path, f"bytes({target}, {(member.elements or 1) * inner.size}{factor}, {MAX_CAPTURE_TEXT})"
        else:
            yield path, f"bytes({target}, {size}{factor}, {_INNER_BYTES})"


def _at(address: str, distance: int) -> str:
    return f"({address})+{distance}" if distance else address


def _is_there(index: int, count: str | None) -> str:
    """A factor that is 0 where an element is none of the array's."""
    return "" if count is None else f"*({count} > {index})"


def _member(struct: Struct, name: str | None, address: str) -> str | None:
    """The number that a member is."""
    member = None if name is None else struct.find(name)
    if member is None or member.bits is not None or member.size not in _LOADS:
        return None
    return f"*({_LOADS[member.size]}*)({_at(address, member.offset)})"
