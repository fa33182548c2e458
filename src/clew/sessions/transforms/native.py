"""Callouts in C: compiled by the machine's compiler, and put into the blocks that they are called in.

Runs in the controller. The code lies wherever a block is, so it is moved; its data lies in the shared memory of each
process, where both sides see it.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from clew.binary.elf import open_elf
from clew.errors import BinaryError, TransformError, UsageError
from clew.process.processors.chosen import native_processor
from clew.process.shared_layout import CALLOUT_DATA_BYTES
from clew.sessions.transforms.tools import run_tool

if TYPE_CHECKING:
    from clew.binary.architectures.architecture import WrappedCallout
    from clew.process.callout_data import CalloutData
    from clew.recording.following.followed import FollowedProcess

__all__ = ["NativeCode", "NativeCodes"]

_FAILED: Final = "the callout can't be compiled"
_ALIGNMENT: Final = 64
_CALLOUT_SECTION: Final = ".text.clew_callout"
_OPTIONS: Final = (
    "-O2",
    "-ffreestanding",
    "-fno-pic",
    "-fno-jump-tables",
    "-fno-stack-protector",
    "-fno-exceptions",
    "-fno-asynchronous-unwind-tables",
)
# All data together, where it will be; code as if it were at 0, for it is moved.
_SCRIPT: Final = """SECTIONS {{
  .text 0 : {{ *(.text .text.*) }}
  .data {base:#x} : {{
    *(.data .data.* .ldata .ldata.* .rodata .rodata.* .lrodata .lrodata.* .bss .bss.* .lbss .lbss.* COMMON) BYTE(0)
  }}
  /DISCARD/ : {{ *(.comment .note.* .eh_frame) }}
}}
"""


class _Symbol(NamedTuple):
    address: int
    size_bytes: int
    is_code: bool


class _Linked(NamedTuple):
    text: bytes
    data: bytes
    symbols: dict[str, _Symbol]


class NativeCode:
    """Compiled C, as `Session.compile` gives it. `functions` can be called from blocks, `variables` read."""

    def __init__(self, source: str, place: int, folder: Path) -> None:
        """Its data is to be at `place` of the data of callouts. Raises TransformError."""
        self._folder, self._place = folder, place
        self._object = folder / f"callout-{place}.o"
        self._linked: dict[int, _Linked] = {}
        self._wrapped: dict[tuple[int, str, bool], WrappedCallout] = {}
        self._data: dict[int, CalloutData] = {}
        architecture = native_processor().architecture
        options = (*_OPTIONS, *architecture.callout_options)
        text = f'{architecture.callout_header}#line 1 "callout"\n{source}\n'
        run_tool(["cc", *options, "-x", "c", "-c", "-o", str(self._object), "-"], text, what=_FAILED)
        symbols = self._link(0).symbols
        self.functions = _find_callouts(self._object)
        self.variables = sorted(name for name, symbol in symbols.items() if not symbol.is_code)

    @property
    def size_bytes(self) -> int:
        """Bytes of data."""
        return len(self._link(0).data)

    @property
    def pids(self) -> list[int]:
        """The processes that call it, or did."""
        return list(self._data)

    def read(self, name: str, pid: int | None = None) -> bytes:
        """What a variable is now, or was when the process ended: of process `pid`, by default of the first one that
        calls it. All zeros where nothing calls it yet. Raises UsageError."""
        symbol = self._variable(name)
        data = self._of(pid)
        if data is None:
            return bytes(symbol.size_bytes)
        return data.read(self._place + symbol.address, symbol.size_bytes)

    def number(self, name: str, pid: int | None = None) -> int:
        """The same as an integer without a sign."""
        return int.from_bytes(self.read(name, pid), "little")

    def write(self, name: str, value: bytes | int, pid: int | None = None) -> None:
        """Change a variable, of a process that calls it. Raises UsageError."""
        symbol, data = self._variable(name), self._of(pid)
        packed = value.to_bytes(symbol.size_bytes, "little", signed=value < 0) if isinstance(value, int) else value
        if data is None or len(packed) != symbol.size_bytes:
            raise UsageError(f"{name} has {symbol.size_bytes} bytes, in processes that call it")
        data.write(self._place + symbol.address, packed)

    def call_from(self, followed: FollowedProcess, name: str, *, keeps_flags: bool) -> WrappedCallout:
        """Machine code that calls a function, in a process that has its data from now on. Raises TransformError."""
        shared = followed.shared
        base = followed.plan.shared_base + shared.layout.callout_data_offset + self._place
        linked = self._link(base)
        symbol = linked.symbols.get(name)
        if symbol is None or name not in self.functions:
            raise TransformError(f"there is no function {name!r} in what was compiled: {', '.join(self.functions)}")
        if not shared.callout_data.has(self._place):
            shared.callout_data.put(self._place, linked.data)
        self._data.setdefault(followed.pid, shared.callout_data)
        key = (base, name, keeps_flags)
        if key not in self._wrapped:
            architecture = native_processor().architecture
            entry, size_bytes = symbol.address, symbol.size_bytes
            self._wrapped[key] = architecture.wrap_callout(linked.text, entry, size_bytes, keeps_flags=keeps_flags)
        return self._wrapped[key]

    def _variable(self, name: str) -> _Symbol:
        symbol = self._link(0).symbols.get(name)
        if symbol is None or symbol.is_code:
            raise UsageError(f"there is no variable {name!r} in what was compiled: {', '.join(self.variables)}")
        return symbol

    def _of(self, pid: int | None) -> CalloutData | None:
        if pid is None:
            return next(iter(self._data.values()), None)
        return self._data.get(pid)

    def _link(self, base: int) -> _Linked:
        """Code, data and symbols, with the data at an address; symbols of data are told from there on."""
        if base not in self._linked:
            script, output = self._folder / "callout.ld", self._folder / "callout"
            script.write_text(_SCRIPT.format(base=base or _ALIGNMENT << 32))
            run_tool(
                ["ld", "-T", str(script), "--no-warn-rwx-segments", "-e", "0", "-o", str(output), str(self._object)],
                "",
                what=_FAILED,
            )
            try:
                with open_elf(output) as elf:
                    parts = [elf.find_section(name) for name in (".text", ".data")]
                    code, data = (elf.read(one.file_offset, one.size_bytes) if one else b"" for one in parts)
            except (BinaryError, OSError) as error:
                raise TransformError(f"what was compiled can't be read: {error}") from error
            start = parts[1].address if parts[1] else 0
            self._linked[base] = _Linked(code, data, _read_symbols(output, start))
        return self._linked[base]


class NativeCodes:
    """All of a session: `folder` is its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._end = 0

    def compile(self, source: str) -> NativeCode:
        """Raises TransformError: the compiler does not take it, or there is no room for its data."""
        with self._lock:
            code = NativeCode(source, self._end, self._folder)
            end = self._end + -(-code.size_bytes // _ALIGNMENT) * _ALIGNMENT
            if end > CALLOUT_DATA_BYTES:
                raise TransformError(f"{code.size_bytes} bytes of data: {CALLOUT_DATA_BYTES - self._end} are left")
            self._end = end
            return code


def _find_callouts(compiled: Path) -> list[str]:
    """The functions that say they are callouts: others change what they like."""
    rows = run_tool(["nm", "-f", "sysv", "--defined-only", str(compiled)], "", what=_FAILED).splitlines()
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    return sorted(row[0] for row in cells if len(row) == 7 and row[3] == "FUNC" and row[6] == _CALLOUT_SECTION)


def _read_symbols(binary: Path, data_start: int) -> dict[str, _Symbol]:
    symbols = {}
    for line in run_tool(["nm", "-S", "--defined-only", str(binary)], "", what=_FAILED).splitlines():
        words = line.split()
        # Address, size, kind, name; of what has no size there is none.
        if len(words) == 4:
            is_code = words[2] in "tT"
            address = int(words[0], 16) - (0 if is_code else data_start)
            symbols[words[3]] = _Symbol(address, int(words[1], 16), is_code)
    return symbols
