"""Which names of symbols are meant by a name or a pattern: as they are in the file, or as their source writes them.

Runs in the controller. A function of C++ or Rust is meant by its whole name (`ns::f<int>(char)`), and by shorter ones:
without parameters, and without what its templates were given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from typing import Final

from clew.binary.demangle import demangle

__all__ = ["find_named", "last_part", "readable_forms"]

_THUNK: Final = re.compile(r"^(?:non-virtual thunk|virtual thunk|covariant return thunk|guard variable|\w+ for) ")
_BEHIND: Final = re.compile(r"(?: \[clone [^]]*\]| \[[\w.]+\]| const| volatile| noexcept| &&?)$")
_HASH: Final = re.compile(r"::h[0-9a-f]{16}$")
_TAG: Final = re.compile(r"\[abi:\w+\]")
_OPERATOR: Final = re.compile(r"\boperator(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|[<>]=?|[^\w\s(]{1,3})?")
_TOKENS: Final = re.compile(rf"{_OPERATOR.pattern}|->|[<>()\[\]{{}} ]")
_OPENING, _CLOSING = frozenset("<([{"), frozenset(">)]}")
_OF_TYPE: Final = re.compile(r"^<([^<> ]+(?:<.*>)?)>::")
_WORD: Final = re.compile(r"(?<!\w)[A-Za-z_]\w*", re.ASCII)
_RUST_HASH: Final = re.compile(r"17h[0-9a-f]{16}E")
_GO_RECEIVER: Final = re.compile(r"(?<=\.)\(\*(?=[\w.\[\]]+\))")
_MANGLED: Final = ("_Z", "_R", "__Z")
_MADE_UP: Final = frozenset(
    """
    __float128 __int128 _Complex _Float16 _Imaginary abi alignof allocator anonymous arg as auto basic_iostream
    basic_istream basic_ostream basic_string binding bool char char16_t char32_t char8_t char_traits clone co_await
    complex const const_cast construction covariant decimal128 decimal32 decimal64 decltype default delete double
    dynamic_cast enable_if false float float128 for function guard half imaginary init initialization int iostream
    istream lambda literal long name namespace new noexcept non nullptr nullptr_t object operator ostream parameter
    reference reinterpret_cast requires restrict return safe short signed sizeof static static_cast std string
    structured template temporary this throw thunk TLS to transaction transaction_clone true type typeid typeinfo
    unnamed unsigned variable virtual void volatile vtable VTT wchar_t wrapper
    """.split()  # noqa: SIM905
)
_MADE_UP_IN_RUST: Final = frozenset(
    """
    as bool C char closure const crate dyn extern f32 f64 fn for i128 i16 i32 i64 i8 impl isize mut reify Self self
    shim static str u128 u16 u32 u64 u8 unsafe usize vtable
    """.split()  # noqa: SIM905
)
"""What demanglers write that is not in mangled names."""


def readable_forms(name: str) -> Iterator[str]:
    """What a symbol is called in its source: the whole name, and shorter ones; nothing where that is no other."""
    whole = demangle(name)
    if whole == name:
        return
    yield whole
    plain = _HASH.sub("", whole)
    yield plain
    if _THUNK.match(plain):
        return
    while (cut := _BEHIND.sub("", plain)) != plain:
        plain = cut
        yield plain
    plain = _without_parameters(plain)
    yield plain
    if "<" in plain:
        plain = _without_result(plain)
        yield plain
    if "[" in plain:
        plain = _TAG.sub("", plain)
        yield plain
    if "<" in plain:
        if " as " not in plain.partition(">::")[0]:
            plain = _OF_TYPE.sub(r"\1::", plain)
            yield plain
        yield _without_templates(plain)


def last_part(name: str) -> str:
    """What a function is called inside of its class or namespace: the last part of its shortest name."""
    shortest = _without_templates(_without_result(_without_parameters(name)))
    found = list(_OPERATOR.finditer(shortest))
    if found and found[-1].end() == len(shortest):
        return shortest[found[-1].start() :]
    return shortest.rpartition("::")[2]


def find_named(names: list[str], wanted: str, *, is_pattern: bool) -> Iterator[int]:
    """The numbers of the names of symbols that a name means, or that are as a pattern has it."""
    may_be = _filter_of(wanted, is_pattern=is_pattern)
    # Blanks differ from tool to tool; and the star of a pointer that has methods in Go is meant as it is.
    squeezed, matches = wanted.replace(" ", ""), re.compile(translate(_GO_RECEIVER.sub("([*]", wanted))).match

    def is_meant(form: str) -> bool:
        return matches(form) is not None if is_pattern else form.replace(" ", "") == squeezed

    def is_found(name: str) -> bool:
        if name == wanted or (is_pattern and is_meant(name)):
            return True
        return name.startswith(_MANGLED) and may_be(name) and any(map(is_meant, readable_forms(name)))

    # A word that nobody makes up is in all names that it means as it is.
    is_word = not is_pattern and _WORD.fullmatch(wanted) is not None and wanted not in _MADE_UP | _MADE_UP_IN_RUST
    least = wanted if is_word else ""
    return (number for number, name in enumerate(names) if least in name and is_found(name))


def _filter_of(wanted: str, *, is_pattern: bool) -> Callable[[str], bool]:
    """Whether a mangled name may be meant at all, since the words of the wanted one are in it.

    Identifiers are in mangled names as they are, but for those that have a short form, or that demanglers make up.
    """
    if not wanted.isascii():
        return lambda name: True
    found = _WORD.findall(re.sub(r"\[[^]]*\]", "?", wanted) if is_pattern else wanted)
    of_cpp, of_rust = (
        # At a star, a word may be a part of one of those.
        [word for word in found if not any(word in other if is_pattern else word == other for other in made_up)]
        for made_up in (_MADE_UP, _MADE_UP_IN_RUST)
    )
    # A whole identifier has its length in front, but for what older compilers of Rust have escaped, and suffixes.
    counted = [] if is_pattern else [f"{len(word)}{word}" for word in of_cpp if not word.startswith("_")]

    def may_be(name: str) -> bool:
        is_rust = name.startswith("_R") or ("17h" in name and _RUST_HASH.search(name) is not None)
        words = of_rust if is_rust else of_cpp
        if any(word not in name for word in words):
            return False
        return is_rust or "." in name or all(word in name for word in counted)

    return may_be if is_pattern or of_cpp or of_rust else lambda name: False


def _without_parameters(name: str) -> str:
    if not name.endswith(")"):
        return name
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if not depth:
            front = name[:at]
            is_operator = front.endswith("operator") and name[at:] == "()"
            return name if is_operator or not front or front.endswith(("::", " ")) else front
    return name


def _without_result(name: str) -> str:
    """Without the type in front that templates have."""
    depth = start = 0
    for token in _TOKENS.finditer(name):
        text = token[0]
        if text == " ":
            start = start if depth else token.end()
        elif text in _OPENING:
            depth += 1
        elif text in _CLOSING:
            depth -= 1
        elif text != "->" and not depth:
            # What a conversion converts to is a part of its name.
            break
    return name[start:]


def _without_templates(name: str) -> str:
    kept: list[str] = []
    depth = at = 0
    for token in _TOKENS.finditer(name):
        text = token[0]
        # `<T as Trait>::f`: what stands in front is a part of the name.
        if text == "<" and (depth or token.start() > 0):
            if not depth:
                kept.append(name[at : token.start()].removesuffix("::"))
            depth += 1
        elif text == ">" and depth:
            depth -= 1
            at = at if depth else token.end()
    return "".join(kept) + ("" if depth else name[at:])
