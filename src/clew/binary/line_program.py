"""Line programs of DWARF, versions 2 to 5, as arrays of rows.

Runs in the controller. A program is a string of opcodes that move an address and a line and emit rows. Many of them are
run at once, as sums over whole arrays. Where the bytes come from, and what files the rows name, is not known here; they
may be anything, and then so are the rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass

__all__ = ["LineRows", "ProgramShape", "join_rows", "run_programs"]

Array = npt.NDArray[Any]

_END_SEQUENCE: Final = b"\x00\x01\x01"
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _NEGATE_STATEMENT, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 6, 8, 9
_EXTENDED_END, _EXTENDED_ADDRESS = 1, 2
_LEB: Final = rb"[\x80-\xff]{0,9}[\x00-\x7f]"


@dataclass(frozen=True)
class ProgramShape:
    """What a program's header says of its opcodes. `operands` has, for each standard one from 1 on, how many it has.

    `is_statement`: rows are of statements until the program says otherwise.
    """

    min_instruction_bytes: int
    line_base: int
    line_range: int
    operands: bytes
    is_statement: bool = True

    @property
    def opcode_base(self) -> int:
        """The first special opcode."""
        return len(self.operands) + 1


@dataclass(frozen=True)
class LineRows:
    """Rows of line programs: from `address` (u64) on, up to that of the next row, code is of `line` of `file`.

    `program` says which program a row is of, `file` is a number in that one's header. `is_end` rows name no code: there
    the sequence ends that `sequence` numbers. `is_statement` rows are where a debugger would stop.
    """

    address: Array
    line: Array
    file: Array
    program: Array
    sequence: Array
    is_end: Array
    is_statement: Array

    def select(self, rows: Array) -> LineRows:
        """Some of the rows, by their indices or as a mask."""
        if rows.dtype == bool and rows.all():
            return self
        return LineRows(*(getattr(self, column.name)[rows] for column in fields(self)))


def join_rows(parts: Sequence[LineRows]) -> LineRows:
    """The rows of several, one after the other."""
    return LineRows(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(LineRows)))


def run_programs(programs: Sequence[bytes], shape: ProgramShape) -> LineRows:
    """The rows of `programs`, which all have one shape, in the order in which they are emitted."""
    # Each ends a sequence by itself, unless it is damaged; then the next must not go on in it.
    content = _END_SEQUENCE.join([*programs, b""])
    code = np.frombuffer(content, np.uint8)
    at = _find_opcodes(content, code, shape)
    n_bytes = np.diff(np.append(at, len(code)))
    opcode = code[at].astype(np.int64)
    is_special = opcode >= shape.opcode_base
    is_extended = (opcode == 0) & (n_bytes > 2)
    extended = np.where(is_extended, code[np.minimum(at + 2, len(code) - 1)], 0)
    is_end = extended == _EXTENDED_END

    advance, line_advance = _find_advances(code, at, n_bytes, opcode, is_special, shape)
    ends = np.flatnonzero(is_end)
    # A sequence's first opcode is behind the end of the one in front of it; its registers start anew there.
    sequence = np.cumsum(is_end) - is_end
    begins = np.concatenate([[0], ends + 1])[:-1] if len(ends) else np.zeros(1, np.int64)

    line_so_far = np.cumsum(line_advance)
    line = 1 + line_so_far - (line_so_far - line_advance)[begins][np.minimum(sequence, len(begins) - 1)]

    address_so_far = np.cumsum(advance)
    sets = np.flatnonzero(extended == _EXTENDED_ADDRESS)
    # What is to be added to the sum so far: since an address was set, or the sequence began.
    at_begin = -(address_so_far - advance)[begins]
    at_set = _read_addresses(code, at[sets], n_bytes[sets]) - address_so_far[sets]
    address = address_so_far + _hold(begins, at_begin, sets, at_set, len(opcode))

    files = np.flatnonzero(opcode == _SET_FILE)
    numbers = _read_numbers(code, at[files], n_bytes[files])
    file = _hold(begins, np.ones(len(begins), np.int64), files, numbers, len(opcode))

    changes = np.cumsum((opcode == _NEGATE_STATEMENT) & (shape.opcode_base > _NEGATE_STATEMENT))
    changes -= np.append(0, changes[begins[1:] - 1])[np.minimum(sequence, len(begins) - 1)]

    emits = np.flatnonzero(is_special | is_end | (opcode == _COPY))
    starts = np.cumsum([0, *(len(program) + len(_END_SEQUENCE) for program in programs)])
    return LineRows(
        address[emits].view(np.uint64),
        line[emits],
        file[emits],
        np.repeat(np.arange(len(programs)), np.diff(np.searchsorted(at[emits], starts))),
        sequence[emits],
        is_end[emits],
        (changes[emits] & 1 == 0) == shape.is_statement,
    )


def _hold(begins: Array, at_begin: Array, sets: Array, at_set: Array, n: int) -> Array:
    """Of `n` opcodes the value that holds there: the latest of those of `begins`, among them 0, and of `sets`."""
    events = np.concatenate([begins, sets])
    order = np.argsort(events, kind="stable")
    held: Array = np.repeat(np.concatenate([at_begin, at_set])[order], np.diff(np.append(events[order], n)))
    return held


def _find_opcodes(content: bytes, code: Array, shape: ProgramShape) -> Array:
    """Where the opcodes are."""
    tokens = _tokenizer(shape).findall(content)
    n_bytes = np.fromiter(map(len, tokens), np.int64, len(tokens))
    at = np.cumsum(n_bytes) - n_bytes
    # Special opcodes come as one token, others with their operands.
    has_operands = (code[at] < shape.opcode_base) & (n_bytes > 1)
    first, n_operand_bytes = at[has_operands] + 1, n_bytes[has_operands] - 1
    before = np.cumsum(n_operand_bytes) - n_operand_bytes
    is_opcode = np.ones(len(code), bool)
    is_opcode[np.repeat(first - before, n_operand_bytes) + np.arange(n_operand_bytes.sum())] = False
    return np.flatnonzero(is_opcode)


@cache
def _tokenizer(shape: ProgramShape) -> re.Pattern[bytes]:
    """Cuts a program into opcodes with their operands, and runs of special opcodes.

    What makes no sense is an opcode of one byte.
    """
    ways = [b"[" + re.escape(bytes([shape.opcode_base])) + rb"-\xff]+"] if shape.opcode_base < 256 else []
    for opcode, n_operands in enumerate(shape.operands, 1):
        operands = b".." if opcode == _FIXED_ADVANCE_PC else _LEB * n_operands
        ways.append(re.escape(bytes([opcode])) + operands)
    ways += [b"\x00" + re.escape(bytes([size])) + b".{%d}" % size for size in range(1, 128)]
    return re.compile(b"|".join([*ways, b"."]), re.DOTALL)


def _find_advances(
    code: Array, at: Array, n_bytes: Array, opcode: Array, is_special: Array, shape: ProgramShape
) -> tuple[Array, Array]:
    """By how much each opcode moves the address and the line."""
    of_special = np.where(is_special, opcode - shape.opcode_base, 0)
    advance = of_special // shape.line_range
    advance[opcode == _CONST_ADD_PC] = (255 - shape.opcode_base) // shape.line_range
    by_number = np.flatnonzero(opcode == _ADVANCE_PC)
    advance[by_number] = _read_numbers(code, at[by_number], n_bytes[by_number])
    advance *= shape.min_instruction_bytes
    by_word = np.flatnonzero((opcode == _FIXED_ADVANCE_PC) & (n_bytes == 3))
    advance[by_word] = code[at[by_word] + 1].astype(np.int64) | code[at[by_word] + 2].astype(np.int64) << 8
    line_advance = np.where(is_special, shape.line_base + of_special % shape.line_range, 0)
    by_number = np.flatnonzero(opcode == _ADVANCE_LINE)
    line_advance[by_number] = _read_numbers(code, at[by_number], n_bytes[by_number], is_signed=True)
    return advance, line_advance


def _read_numbers(code: Array, at: Array, n_bytes: Array, *, is_signed: bool = False) -> Array:
    """The LEB128 numbers behind the opcodes at `at`, which take `n_bytes` with them."""
    value = np.zeros(len(at), np.int64)
    for place in range(1, int(n_bytes.max(initial=1))):
        inside = np.flatnonzero(n_bytes > place)
        value[inside] |= (code[at[inside] + place] & 0x7F).astype(np.int64) << (7 * (place - 1))
    if is_signed:
        is_negative = (n_bytes > 1) & (code[at + n_bytes - 1] & 0x40 > 0) & (n_bytes < 11)
        value[is_negative] |= np.int64(-1) << (7 * (n_bytes[is_negative] - 1))
    return value


def _read_addresses(code: Array, at: Array, n_bytes: Array) -> Array:
    """The addresses that the opcodes at `at` set, of as many bytes as there are behind the three in front."""
    value = np.zeros(len(at), np.int64)
    for place in range(8):
        inside = np.flatnonzero(n_bytes > place + 3)
        value[inside] |= code[at[inside] + 3 + place].astype(np.int64) << (8 * place)
    return value
