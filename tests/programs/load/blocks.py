"""Writes a program of 150,000 blocks, or of a million, and says how often each of them runs.

A function runs 2 to 7 times, told the number of the time. It is made of pairs of blocks: the first always runs, and
jumps over the second while the number is below a limit.

`python -m tests.programs.load.blocks FILE.S [FUNCTIONS]` writes it for `gcc -o FILE FILE.S`.
"""

from __future__ import annotations

import sys
from pathlib import Path

FUNCTIONS = 500
FUNCTIONS_OF_A_MILLION = 3330
"""So many functions have a million blocks, those of their calls among them."""
PAIRS = 150


def times(function: int) -> int:
    """How often a function runs."""
    return 2 + function % 6


def _limit(function: int, pair: int) -> int:
    return 1 + pair % (times(function) - 1)


def expected(function: int) -> list[int]:
    """Executions of the function's blocks in the order of their addresses."""
    runs = times(function)
    # The last pair is followed by the function's return.
    return [count for pair in range(PAIRS) for count in (runs, runs - _limit(function, pair))] + [runs]


def write_source(target: Path, functions: int = FUNCTIONS) -> None:
    """Write the program for the GNU assembler."""
    lines = [".text", ".globl main"]
    for function in range(functions):
        lines += [f".type function{function}, @function", f"function{function}:"]
        for pair in range(PAIRS):
            lines += [f"    lea {pair & 63}(%rdi, %rdi, 2), %edi", f"    cmp ${_limit(function, pair)}, %ebx"]
            lines += ["    jb 1f", f"    xor ${function & 63}, %edi", "1:"]
        lines += ["    ret", f".size function{function}, . - function{function}"]
    lines += ["main:", "    push %rbx"]
    for function in range(functions):
        lines += ["    xor %ebx, %ebx", f"1:  call function{function}", "    inc %ebx"]
        lines += [f"    cmp ${times(function)}, %ebx", "    jb 1b"]
    lines += ["    xor %eax, %eax", "    pop %rbx", "    ret", '.section .note.GNU-stack,"",@progbits']
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_source(Path(sys.argv[1]), *map(int, sys.argv[2:]))
