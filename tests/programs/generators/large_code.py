"""
what: 10,000 small functions, called in turn by calls and through a table, all in one run
build: -O0 -no-pie
"""

from __future__ import annotations

import random
import sys
from pathlib import Path


def main(target: Path, functions: int = 10_000) -> None:
    """Write the assembly source: every function mixes rdi, with branches of its own, and returns it."""
    chooser = random.Random(7)
    lines = [".text", ".globl main"]
    for index in range(functions):
        lines += [f"f{index}:", f"    imul ${chooser.randrange(3, 999, 2)}, %rdi, %rdi"]
        for branch in range(chooser.randrange(4)):
            condition = chooser.choice(["jz", "jnz", "js", "jns", "jp", "jnp"])
            lines += [f"    test ${1 << chooser.randrange(31)}, %edi", f"    {condition} 1f"]
            lines += [f"    add ${chooser.randrange(1000)}, %rdi", "1:"]
            if branch == 2 and index > 10:
                lines += [f"    call f{chooser.randrange(index // 2)}"]
        lines += [f"    xor ${chooser.randrange(1 << 30)}, %rdi", "    ret"]
    lines += ["main:", "    push %rbx", "    push %rbp", "    push %r12", "    mov $1, %edi"]
    lines += [f"    call f{index}" for index in range(functions)]
    lines += ["    mov $3, %ebp", "2:", "    xor %ebx, %ebx"]
    lines += ["1:  call *table(, %rbx, 8)", "    inc %ebx", f"    cmp ${functions}, %ebx", "    jb 1b"]
    lines += ["    dec %ebp", "    jnz 2b"]
    lines += ["    mov %rdi, %rsi", "    mov $format, %edi", "    xor %eax, %eax", "    call printf"]
    lines += ["    xor %eax, %eax", "    pop %r12", "    pop %rbp", "    pop %rbx", "    ret"]
    lines += [".data", "table:"] + [f"    .quad f{index}" for index in range(functions)]
    lines += ['format: .asciz "%lx\\n"', '.section .note.GNU-stack,"",@progbits']
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
