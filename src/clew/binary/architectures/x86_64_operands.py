"""Operands of the assembler (AT&T) as expressions of captures: what static probes say of their arguments.

Runs in the controller.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

__all__ = ["express_operand"]

_WHOLE: Final = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp")
_ADDRESS: Final = re.compile(
    r"(?:%(?P<segment>[a-z]s):)?"
    r"(?P<sum>[^()%]*)"
    r"(?:\((?:%(?P<base>[a-z0-9]+))?(?:,\s*%(?P<index>[a-z0-9]+))?(?:,\s*(?P<scale>[1248]))?\))?"
)
_TERM: Final = re.compile(r"(?P<sign>[+-]?)\s*(?P<what>0[xX][0-9a-fA-F]+|[0-9]+|[A-Za-z_.$][\w.$]*(?:@[A-Za-z]+)?)\s*")
_NUMBER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_VECTOR: Final = re.compile(r"xmm([0-9]+)")


def _names_of_parts() -> dict[str, tuple[str, int, int]]:
    """By the name of a part of a general register the register, how far up it is, and its bytes."""
    parts = {name: (name, 0, 8) for name in _WHOLE}
    for name in _WHOLE:
        stem = name[1:]
        parts[f"e{stem}"], parts[stem] = (name, 0, 4), (name, 0, 2)
        if stem.endswith("x"):
            parts[f"{stem[0]}l"], parts[f"{stem[0]}h"] = (name, 0, 1), (name, 8, 1)
        else:
            parts[f"{stem}l"] = (name, 0, 1)
    for number in range(8, 16):
        whole = f"r{number}"
        parts |= {whole + end: (whole, 0, size) for end, size in (("", 8), ("d", 4), ("w", 2), ("b", 1), ("l", 1))}
    return parts


_PARTS: Final = _names_of_parts()


def express_operand(operand: str, kind: str, find_symbol: Callable[[str], str]) -> str:
    """An operand as an expression whose value has a type of captures' (`i32`, `f64`, ...).

    `find_symbol` gives what captures call a symbol. Raises ValueError with why there is no such expression.
    """
    if operand.startswith("$"):
        return _constant(operand[1:], kind, find_symbol)
    if operand.startswith("%") and ":" not in operand:
        return _register(operand[1:], kind)
    return f"*({kind}*)({_address(operand, find_symbol)})"


def _constant(text: str, kind: str, find_symbol: Callable[[str], str]) -> str:
    if _NUMBER.fullmatch(text):
        return f"({kind}){_integer(text)}"
    names, distance = _sum(text, find_symbol)
    if not names:
        raise ValueError(f"${text} is a constant that is not understood")
    return f"({kind})({'+'.join(names)}{f'{distance:+}' if distance else ''})"


def _integer(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    # As the assembler reads it: octal with a 0 in front.
    is_octal = digits.startswith("0") and digits.isdecimal() and len(digits) > 1
    value = sign * int(digits, 8 if is_octal else 0)
    if not -1 << 63 <= value < 1 << 64:
        raise ValueError(f"{text} is larger than 64 bits")
    return value


def _register(name: str, kind: str) -> str:
    vector = _VECTOR.fullmatch(name)
    if vector is not None:
        # Captures have the low half of these registers, as a double.
        if kind in ("f64", "u64", "i64"):
            return name
        raise ValueError(f"%{name} holds a number of another size than captures take from there ({kind})")
    if name not in _PARTS:
        raise ValueError(f"%{name} is a register that captures do not have")
    whole, distance, _ = _PARTS[name]
    if kind.startswith("f"):
        raise ValueError(f"%{name} holds no floating-point number that captures could take")
    return f"({kind})({whole}>>{distance})" if distance else f"({kind}){whole}"


def _address(operand: str, find_symbol: Callable[[str], str]) -> str:
    found = _ADDRESS.fullmatch(operand)
    if found is None or not operand:
        raise ValueError(f"{operand} is an operand that is not understood")
    if found["segment"]:
        raise ValueError(f"{operand} lies in the thread's own memory")
    terms = []
    for part in ("base", "index"):
        name = found[part]
        if name is None:
            continue
        if part == "base" and name == "rip":
            # The assembler counts from there, and means the symbol itself.
            if not _sum(found["sum"], find_symbol)[0]:
                raise ValueError(f"{operand} counts from an instruction that is not known")
            continue
        if name not in _PARTS or _PARTS[name][2] != 8:
            raise ValueError(f"{operand} counts from a register that captures do not have")
        scale = int(found["scale"] or 1)
        terms.append(f"{name}*{scale}" if part == "index" and scale > 1 else name)
    names, distance = _sum(found["sum"], find_symbol)
    # Names come first: captures take what stands in front of `IMAGE!NAME` for a part of it.
    whole = "+".join([*names, *terms])
    if not whole and not found["sum"]:
        raise ValueError(f"{operand} is an operand that is not understood")
    return whole + (f"{distance:+}" if distance else "") if whole else f"{distance:#x}"


def _sum(text: str, find_symbol: Callable[[str], str]) -> tuple[list[str], int]:
    """Symbols, and the sum of numbers, that are added up; nothing where nothing is written."""
    at, total, names = 0, 0, []
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None or (at and not found["sign"]):
            raise ValueError(f"{text} is a sum that is not understood")
        if found["what"][0].isdigit():
            total += _integer(found["sign"] + found["what"])
        elif found["sign"] == "-" or "@" in found["what"]:
            raise ValueError(f"{text} is worked out by the linker")
        else:
            names.append(find_symbol(found["what"]))
        at = found.end()
    if not -1 << 63 <= total < 1 << 64:
        raise ValueError(f"{text} is larger than 64 bits")
    return names, total
