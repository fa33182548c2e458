"""Writes a program of 150,000 blocks, and says how often each of them runs.

A function runs 2 to 7 times, told the number of the time. It is made of pairs of blocks: the first always runs, and
jumps over the second while the number is below a limit.
"""

from __future__ import annotations

from pathlib import Path

FUNCTIONS = 500
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


def write_source(target: Path) -> None:
    """Write the program for the GNU assembler."""
    lines = [".text", ".globl main"]
    for function in range(FUNCTIONS):
        lines += [f".type function{function}, @function", f"function{function}:"]
        for pair in range(PAIRS):
            lines += [f"    lea {pair & 63}(%rdi, %rdi, 2), %edi", f"    cmp ${_limit(function, pair)}, %ebx"]
            lines += ["    jb 1f", f"    xor ${function & 63}, %edi", "1:"]
        lines += ["    ret", f".size function{function}, . - function{function}"]
    lines += ["main:", "    push %rbx"]
    for function in range(FUNCTIONS):
        lines += ["    xor %ebx, %ebx", f"1:  call function{function}", "    inc %ebx"]
        lines += [f"    cmp ${times(function)}, %ebx", "    jb 1b"]
    lines += ["    xor %eax, %eax", "    pop %rbx", "    ret", '.section .note.GNU-stack,"",@progbits']
    target.write_text("\n".join(lines) + "\n")
