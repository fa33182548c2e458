"""How single values are written: numbers, names of flags, quoted bytes, addresses of sockets, times.

Runs in the controller. Pure functions; what a parameter is they don't know.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from clew.api.description import Flag, FlagTable, Function
from clew.api.long_doubles import LONG_DOUBLE_BITS, long_double_text

__all__ = [
    "REDACTED",
    "address4_text",
    "bits_text",
    "device_text",
    "enum_text",
    "escaped",
    "flags_text",
    "float_text",
    "hexadecimal",
    "is_error",
    "limit_text",
    "mode_text",
    "number_of",
    "octets_text",
    "pointer_text",
    "quoted",
    "real_time_signal",
    "request_text",
    "signals_text",
    "signed",
    "size_text",
    "sockaddr_text",
    "timespec_text",
    "unsigned",
    "wait_status_text",
    "width_bits",
]

REDACTED: Final = "[redacted]"
"""What stands for what is not to be told."""

_WIDE: Final = re.compile(r"\*|long|\bdouble\b|64|size_t|off_t|time_t|ptr_t|timer_t|aio_context_t|cap_user")
_NARROW: Final = re.compile(r"16|\bshort\b|\bumode_t\b")
_BYTE: Final = re.compile(r"\bchar\b|\b\w*int8_t\b|\b_*[us]8\b|\bbool\b|\b_Bool\b")
_UNSIGNED: Final = re.compile(
    r"\bunsigned\b|\b_*u(?:int|short|char)?(?:8|16|32)?(?:_t)?\b|\b(?:mode|uid|gid|socklen)_t\b"
)
_ESCAPES: Final = {9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_SPECIAL: Final = re.compile(rb"[^ !#-\[\]-~]")
"""What does not stand for itself between quotes."""
_FIRST_REAL_TIME_SIGNAL: Final = 32
_LAST_SIGNAL: Final = 64
_TIMESPEC: Final = struct.Struct("<qq")


def is_error(function: Function, result: int | None) -> bool:
    """Whether a call with that result failed, and has left nothing: by itself, or where errors are in errno."""
    if function.has_failed(result):
        return True
    own = function.result
    if own is None or result is None:
        return False
    if function.error == "minus_one_errno":
        return signed(result, width_bits(own.c_type)) == -1
    return function.error == "null_errno" and not result


def number_of(value: int, c_type: str) -> int:
    """What a register with a value of a C type means as a number: with the sign that the type has; of 64 bits always
    with one, as tables have it."""
    bits = width_bits(c_type)
    return unsigned(value, bits) if bits < 64 and _UNSIGNED.search(c_type) else signed(value, min(bits, 64))


@lru_cache(maxsize=1 << 12)
def width_bits(c_type: str) -> int:
    """How many bits a value of that C type has, of a register if it is in one; 32 for what has no other sign."""
    if c_type == "long double":
        return LONG_DOUBLE_BITS
    if _WIDE.search(c_type):
        return 64
    if _NARROW.search(c_type):
        return 16
    return 8 if _BYTE.search(c_type) else 32


def unsigned(value: int, bits: int) -> int:
    """The lowest `bits` of a register."""
    return value & (1 << bits) - 1


def signed(value: int, bits: int) -> int:
    """The lowest `bits` of a register, the first of which is the sign."""
    low = unsigned(value, bits)
    return low - (1 << bits) if low >> bits - 1 else low


def pointer_text(address: int) -> str:
    """An address, which has 64 bits."""
    address = unsigned(address, 64)
    return f"{address:#x}" if address else "NULL"


def hexadecimal(number: int) -> str:
    """A number as C's %#x has it: 0 has no prefix."""
    return f"{number:#x}" if number else "0"


def size_text(n_bytes: int) -> str:
    """Bytes of which nothing is told but how many they are."""
    return f"[{n_bytes} {'byte' if n_bytes == 1 else 'bytes'}]"


def mode_text(mode: int) -> str:
    """Permission bits, in octal as C has it, with at least three digits."""
    return f"0{mode:o}".zfill(3)


def enum_text(table: FlagTable, value: int, bits: int) -> str:
    """The name that a table has for a value of `bits`, or the value in hexadecimal."""
    wanted = unsigned(value, bits)
    for flag in table.flags:
        if unsigned(flag.value, bits) == wanted:
            return flag.name
    return hexadecimal(wanted)


def flags_text(table: FlagTable, value: int, write: Callable[[int], str] = hex) -> str:
    """The names of a value's bits and fields, in the table's order, and what is left as `write` has it.

    Of names that share bits, that with the most counts: what is several flags and has a name is told by it.
    """
    if table.macro is not None:
        return f"{table.macro}({', '.join(_field_text(table, value, mask) for mask in table.masks)})"
    rest = value
    found: set[str] = set()
    for flag in sorted(table.flags, key=_most_bits_first):
        mask = flag.mask if flag.mask is not None else flag.value
        if flag.mask is not None:
            # A field of which bits are taken already is told. 0 is a value of it like others.
            is_there = value & mask == flag.value and (rest & flag.value) == flag.value
        else:
            is_there = bool(flag.value) and rest & mask == flag.value
        if is_there:
            found.add(flag.name)
            rest &= ~mask
    names = [flag.name for flag in table.flags if flag.name in found]
    if rest:
        names.append(write(rest))
    if not names:
        return next((flag.name for flag in table.flags if not flag.value and flag.mask is None), "0")
    return "|".join(names)


def _field_text(table: FlagTable, value: int, mask: int) -> str:
    """The bits of a mask by their name; as a number, in hexadecimal where others have names."""
    named = [flag for flag in table.flags if flag.mask == mask]
    number = (value & mask) >> (mask & -mask).bit_length() - 1
    found = next((flag.name for flag in named if flag.value == value & mask), None)
    return found or (hexadecimal(number) if named else str(number))


def _most_bits_first(flag: Flag) -> int:
    return -(flag.value if flag.mask is None else flag.mask).bit_count()


def quoted(data: bytes, limit: int | None = None, *, is_cut: bool = False) -> str:
    """Bytes as a string of C's, the first `limit` of them; `...` behind it where there are more, or where `is_cut`."""
    shown = data if limit is None else data[:limit]
    return f'"{escaped(shown)}"' + ("..." if is_cut or len(shown) < len(data) else "")


def escaped(numbers: Sequence[int], octal_end: int = 256) -> str:
    """Characters by their numbers as C has them between quotes: in octal what can't be shown below `octal_end`, from
    there on as `\\u` has them, which what is no character has, too."""
    if isinstance(numbers, bytes):
        return _SPECIAL.sub(_escaped_byte, numbers).decode("ascii")
    pieces = []
    for index, number in enumerate(numbers):
        if number in _ESCAPES:
            pieces.append(_ESCAPES[number])
        elif 32 <= number < 127:
            pieces.append(chr(number))
        elif number < octal_end:
            # A digit behind it would be taken for one of its own.
            is_followed = index + 1 < len(numbers) and 48 <= numbers[index + 1] < 58
            pieces.append(f"\\{number:03o}" if is_followed else f"\\{number:o}")
        else:
            pieces.append(f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}")
    return "".join(pieces)


def _escaped_byte(found: re.Match[bytes]) -> bytes:
    number = found[0][0]
    if number in _ESCAPES:
        return _ESCAPES[number].encode("ascii")
    is_followed = found.string[found.end() : found.end() + 1].isdigit()
    return b"\\%03o" % number if is_followed else b"\\%o" % number


def octets_text(data: bytes) -> str:
    """Bytes as a string of C's, each in hexadecimal."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"'


def float_text(value: int, bits: int) -> str:
    """A number with a point by its bits, of 32, 64 or, of x87's, more: as short as tells it from others."""
    if bits > 64:
        return long_double_text(value)
    if bits == 64:
        (number,) = struct.unpack("<d", struct.pack("<Q", unsigned(value, 64)))
        return repr(number)
    (number,) = struct.unpack("<f", struct.pack("<I", unsigned(value, 32)))
    told = (repr(float(f"{number:.{n}g}")) for n in range(6, 9))
    return next((text for text in told if struct.pack("<f", float(text)) == struct.pack("<f", number)), f"{number:.9g}")


def timespec_text(data: bytes) -> str | None:
    """Seconds and nanoseconds of a `struct timespec`; None: these are too few bytes."""
    if len(data) < _TIMESPEC.size:
        return None
    seconds, ns = _TIMESPEC.unpack_from(data)
    return f"{{tv_sec={seconds}, tv_nsec={ns}}}"


def device_text(number: int) -> str:
    """The number of a device, as C takes it apart."""
    major = number >> 8 & 0xFFF | number >> 32 & ~0xFFF
    minor = number & 0xFF | number >> 12 & ~0xFF
    return f"makedev({hexadecimal(major)}, {hexadecimal(minor & 0xFFFFFFFF)})"


def address4_text(number: int) -> str:
    """An address of the internet of 32 bits, which has the order of bytes that is sent."""
    return f'inet_addr("{".".join(map(str, number.to_bytes(4, "little")))}")'


def limit_text(number: int) -> str:
    """A limit, in units of 1024 if it has as many."""
    return str(number) if number % 1024 or number <= 1024 else f"{number // 1024}*1024"


def request_text(number: int) -> str:
    """A request of ioctl by its parts: which way it goes, of what kind, which, how many bytes."""
    ways = ("_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE")
    size = number >> 16 & 0x3FFF
    parts = (number >> 8 & 0xFF, number & 0xFF, size)
    return f"_IOC({ways[number >> 30]}, {', '.join(map(hexadecimal, parts))})"


def wait_status_text(status: int, name_signal: Callable[[int], str]) -> str:
    """How a process ended or why it stopped, as the macros of C ask for it."""
    signal, code = status & 0x7F, status >> 8 & 0xFF
    if status & 0xFFFF == 0xFFFF:
        return "{WIFCONTINUED(s)}"
    if signal == 0x7F:
        return f"{{WIFSTOPPED(s) && WSTOPSIG(s) == {name_signal(code)}}}"
    if signal:
        dumped = " && WCOREDUMP(s)" if status & 0x80 else ""
        return f"{{WIFSIGNALED(s) && WTERMSIG(s) == {name_signal(signal)}{dumped}}}"
    return f"{{WIFEXITED(s) && WEXITSTATUS(s) == {code}}}"


def signals_text(data: bytes, names: FlagTable | None) -> str:
    """A set of signals, by the names that `names` has; where most are in it those that are not, behind a tilde."""
    known = {flag.value: flag.name.removeprefix("SIG") for flag in names.flags} if names else {}
    every = range(1, 8 * len(data) + 1)
    mask = int.from_bytes(data, "little")
    inside = [signal for signal in every if mask >> signal - 1 & 1]
    is_inverted = 3 * len(inside) >= 2 * len(every)
    shown = [signal for signal in every if not mask >> signal - 1 & 1] if is_inverted else inside
    told = " ".join(known.get(signal) or real_time_signal(signal).removeprefix("SIG") for signal in shown)
    return f"{'~' if is_inverted else ''}[{told}]"


def real_time_signal(signal: int) -> str:
    """The name of a signal that has none in headers; its number where it is no such signal."""
    number = signal - _FIRST_REAL_TIME_SIGNAL
    if not 0 <= number <= _LAST_SIGNAL - _FIRST_REAL_TIME_SIGNAL:
        return str(signal)
    return f"SIGRT_{number}" if number else "SIGRTMIN"


def bits_text(data: bytes) -> str:
    """The numbers of the bits that are set."""
    mask = int.from_bytes(data, "little")
    return f"[{' '.join(str(bit) for bit in range(8 * len(data)) if mask >> bit & 1)}]"


def sockaddr_text(data: bytes, families: FlagTable | None) -> str | None:
    """A socket's address, whose family is a number of `families`; None: these are too few bytes."""
    if len(data) < 2:
        return None
    number = int.from_bytes(data[:2], "little")
    family = enum_text(families, number, 16) if families else f"{number:#x}"
    write = _FAMILIES.get(family)
    rest = write(data) if write else (f"sa_data={quoted(data[2:])}" if data[2:] else None)
    return f"{{sa_family={family}{f', {rest}' if rest else ''}}}"


def _internet(data: bytes) -> str | None:
    if len(data) < 8:
        return None
    address = ".".join(map(str, data[4:8]))
    return f'sin_port=htons({int.from_bytes(data[2:4], "big")}), sin_addr=inet_addr("{address}")'


def _internet6(data: bytes) -> str | None:
    if len(data) < 24:
        return None
    import socket

    port, info = int.from_bytes(data[2:4], "big"), int.from_bytes(data[4:8], "big")
    head = f"sin6_port=htons({port}), sin6_flowinfo=htonl({info})"
    scope = f", sin6_scope_id={int.from_bytes(data[24:28], 'little')}" if len(data) >= 28 else ""
    return f'{head}, inet_pton(AF_INET6, "{socket.inet_ntop(socket.AF_INET6, data[8:24])}", &sin6_addr){scope}'


def _unix(data: bytes) -> str | None:
    path = data[2:]
    if not path:
        return None
    if not path[0]:
        # Abstract: a name that is no file's, all of whose bytes count.
        return f"sun_path=@{quoted(path[1:])}"
    return f"sun_path={quoted(path.split(bytes(1))[0])}"


_FAMILIES: Final[dict[str, Callable[[bytes], str | None]]] = {
    "AF_INET": _internet,
    "AF_INET6": _internet6,
    "AF_UNIX": _unix,
}
