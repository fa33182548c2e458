"""Arithmetic of captures is C's: random expressions, beside what the machine's C compiler makes of them."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.capture.compiler import compile_capture
from clew.capture.interpreter import interpret
from tests.unit.capture.places import MACHINE, MadeUpPlace

N_EXPRESSIONS = 600
TYPES = ("char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long", "unsigned long")
VALUES = {"rdi": 5, "rsi": (1 << 64) - 3, "rdx": 0x8000_0000_0000_0000, "rcx": 0x1234_5678_9ABC_DEF0, "r8": 0}


def make_expression(dice: random.Random, depth: int) -> str:
    """One that C defines: shifts are by few bits, and nothing that has a sign overflows by a constant."""
    if depth == 0:
        return dice.choice([*VALUES, str(dice.randrange(100)), "0x7f", "0xffff"])
    inner = [make_expression(dice, depth - 1) for _ in range(2)]
    match dice.randrange(8):
        case 0:
            return f"({dice.choice(TYPES)})({inner[0]})"
        case 1:
            return f"({dice.choice('~!')}({inner[0]}))"
        case 2:
            return f"(({inner[0]}) {dice.choice(['<<', '>>'])} {dice.randrange(16)})"
        case 3:
            return f"(({inner[0]}) {dice.choice(['<', '<=', '>', '>=', '==', '!='])} ({inner[1]}))"
        case 4:
            return f"(({inner[0]}) {dice.choice(['&&', '||'])} ({inner[1]}))"
        case 5:
            return f"(({inner[0]}) {dice.choice('/%')} (({inner[1]}) | 1))"
    return f"(({inner[0]}) {dice.choice('+-*&|^')} ({inner[1]}))"


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_random_expressions_are_worth_what_c_says(tmp_path: Path) -> None:
    dice = random.Random(20)
    texts = [make_expression(dice, 1 + number % 4) for number in range(N_EXPRESSIONS)]
    names = "".join(f"volatile unsigned long {name} = {value}UL;\n" for name, value in VALUES.items())
    # Of the width that literals have here.
    lines = "".join(f'    printf("%ld\\n", (long)({_wide(text)}));\n' for text in texts)
    source = tmp_path / "expressions.c"
    source.write_text(f"#include <stdio.h>\n{names}int main(void) {{\n{lines}    return 0;\n}}\n")
    program = tmp_path / "expressions"
    subprocess.run(["cc", "-w", "-O0", "-fwrapv", "-o", program, source], check=True)
    answers = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    place = MadeUpPlace(b"", **VALUES)
    for text, answer in zip(texts, answers, strict=True):
        values = interpret(compile_capture([text], MACHINE), place)
        assert values is not None
        value = values[0]
        assert isinstance(value, int)
        assert (value - int(answer)) % (1 << 64) == 0, text


def _wide(text: str) -> str:
    """With literals of 64 bits."""
    words = text.replace("(", " ( ").replace(")", " ) ").split()
    return " ".join(f"{word}L" if word[0].isdigit() else word for word in words)
