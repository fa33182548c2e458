"""Arguments where a function begins: random signatures, compiled without optimisation, hold what was passed."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import clew
from clew.errors import CaptureError

N_FUNCTIONS = 60

SCALARS = {
    "char": ("%d", "(char)@"),
    "unsigned char": ("%u", "(unsigned char)@"),
    "short": ("%d", "(short)(@ * 200)"),
    "int": ("%d", "(int)(@ * -7000000)"),
    "unsigned": ("%u", "@ * 4000000u"),
    "long": ("%ld", "@ * -70000000000L"),
    "_Bool": ("%d", "@ & 1"),
    "float": ("%.17g", "@ + 0.25f"),
    "double": ("%.17g", "@ * 0.1"),
    "void *": ("%ld", "(void *)(@ * 4096L)"),
}
"""By type: how it is printed, and what value it is given for a number."""

STRUCTS = {
    "pair": [("int", "a"), ("int", "b")],
    "byte": [("unsigned char", "only")],
    "three": [("char", "a"), ("short", "b"), ("char", "c")],
    "two_longs": [("long", "a"), ("long", "b")],
    "two_doubles": [("double", "a"), ("double", "b")],
    "mixed": [("double", "real"), ("int", "number")],
    "other_way": [("long", "number"), ("float", "real")],
    "together": [("int", "number"), ("float", "real")],
    "singles": [("float", "a"), ("float", "b"), ("float", "c")],
    "large": [("long", "a"), ("char", "b"), ("double", "c")],
    "padded": [("char", "a"), ("double", "b")],
}
UNREAD = ("or that half of one, is not read", "behind an argument")


class Taken(NamedTuple):
    """An expression of a function, and as what the program prints it."""

    expression: str
    format: str
    text: str


def make_function(dice: random.Random, number: int) -> tuple[str, str, list[Taken]]:
    """Its text, a call of it, and what it prints."""
    parameters, values, taken = [], [], []
    for index in range(dice.randrange(1, 13)):
        name, value = f"p{index}", dice.randrange(1, 120)
        if dice.random() < 0.35:
            kind = dice.choice(list(STRUCTS))
            parameters.append(f"struct {kind} {name}")
            members = [SCALARS[one][1].replace("@", str(value + n)) for n, (one, _) in enumerate(STRUCTS[kind])]
            values.append(f"(struct {kind}){{{', '.join(members)}}}")
            taken += [
                Taken(f"var:{name}.{member}", SCALARS[one][0], f"{name}.{member}") for one, member in STRUCTS[kind]
            ]
        elif dice.random() < 0.06:
            # On the stack, and aligned there; its value is not read.
            parameters.append(f"long double {name}")
            values.append(f"{value}.5L")
        else:
            kind = dice.choice(list(SCALARS))
            parameters.append(f"{kind} {name}")
            values.append(SCALARS[kind][1].replace("@", str(value)))
            cast = "(long)" if kind == "void *" else ""
            taken.append(Taken(f"var:{name}", SCALARS[kind][0], cast + name))
    result = dice.choice(["void", "struct large", "struct pair", "int"])
    body = "" if result == "void" else f"    return ({result}){{0}};\n" if "struct" in result else "    return 0;\n"
    formats = " ".join(one.format for one in taken)
    arguments = "".join(f", {one.text}" for one in taken)
    text = (
        f'{result} f{number}({", ".join(parameters)})\n{{\n    printf("f{number} {formats}\\n"{arguments});\n{body}}}\n'
    )
    return text, f"    f{number}({', '.join(values)});\n", taken


def as_printed(value: Any) -> str:
    return f"{value:.17g}" if isinstance(value, float) else str(value)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_arguments_of_random_functions_are_what_was_passed(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    functions = [make_function(dice, number) for number in range(N_FUNCTIONS)]
    structs = "".join(
        f"struct {name} {{ {' '.join(f'{kind} {member};' for kind, member in members)} }};\n"
        for name, members in STRUCTS.items()
    )
    texts, calls = "".join(text for text, _, _ in functions), "".join(call for _, call, _ in functions)
    source, program = tmp_path / "functions.c", tmp_path / "functions"
    source.write_text(f"#include <stdio.h>\n{structs}{texts}int main(void)\n{{\n{calls}    return 0;\n}}\n")
    subprocess.run(["gcc", "-w", "-O0", "-g", "-o", program, source], check=True)
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    printed = {name: words for name, *words in (line.split() for line in output.splitlines())}
    logs, n_unread = {}, 0
    with clew.spawn([program], stdout=subprocess.DEVNULL) as session:
        for number, (_, _, taken) in enumerate(functions):
            known = {}
            for index, one in enumerate(taken):
                try:
                    known[index] = session.log_calls(f"f{number}", capture=[one.expression])
                except CaptureError as error:
                    assert any(why in error.message for why in UNREAD), error.message
                    n_unread += 1
                if len(known) == 12:
                    break
            logs[f"f{number}"] = known
        session.resume()
        session.wait(60)
        n_read = 0
        for name, known in logs.items():
            for index, log in known.items():
                value = log.read().column(4).to_pylist()[0]
                expression = functions[int(name[1:])][2][index].expression
                assert as_printed(value) == printed[name][index], f"{name}, {expression}"
                n_read += 1
    assert n_read > 3 * N_FUNCTIONS and n_unread < n_read / 4
