"""
what: 150,000 distinct blocks, each run once or twice, most of them straight after one another
build: -O0 -no-pie
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(target: Path, functions: int = 500, blocks: int = 300) -> None:
    """Write the assembly source: functions of `blocks` blocks, by conditional jumps over an instruction each."""
    lines = [".text", ".globl main"]
    for function in range(functions):
        lines.append(f"f{function}:")
        for block in range(blocks // 2):
            number = function * blocks + block
            lines += [f"    lea {number & 127}(%rdi, %rdi, 2), %edi", f"    test ${1 << number % 8}, %dil", "    jz 1f"]
            lines += [f"    xor ${number & 127}, %edi", "1:"]
        lines.append("    ret")
    lines += ["main:", "    push %rbx", "    mov $1, %edi"]
    lines += [f"    call f{function}" for function in range(functions)]
    lines += [
        "    mov %edi, %esi",
        "    mov $format, %edi",
        "    xor %eax, %eax",
        "    call printf",
        "    xor %eax, %eax",
    ]
    lines += ["    pop %rbx", "    ret", ".data", 'format: .asciz "%x\\n"', '.section .note.GNU-stack,"",@progbits']
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
