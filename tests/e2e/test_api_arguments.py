"""Arguments of functions wherever they are, and what formats ask for: random ones that a program is built to pass."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest

from tests.e2e.api_runs import run_clew

KINDS = ("char", "short", "int", "long", "unsigned", "float", "double", "const char *")
N_FUNCTIONS = 40
MOST_ARGUMENTS = 12


def literal(random: Random, kind: str) -> tuple[str, str]:
    """A value as C has it, and as it is told."""
    if kind == "const char *":
        text = "".join(random.choice("abcxyz") for _ in range(random.randrange(1, 9)))
        return f'"{text}"', f'"{text}"'
    if kind in ("float", "double"):
        value = random.randrange(-4000, 4000) / random.choice((1, 2, 8, 64))
        return f"{value!r}", f"{value!r}"
    bits = {"char": 7, "short": 15, "int": 31, "long": 63, "unsigned": 31}[kind]
    value = random.randrange(0 if kind == "unsigned" else -(1 << bits) + 1, 1 << bits)
    return f"{value}{'L' if kind == 'long' else ''}", str(value)


def build(folder: Path, source: str, *flags: str) -> Path:
    (folder / "passing.c").write_text(source)
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-w", *flags, "passing.c", "-o", "passing"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "passing"


def told(path: Path) -> list[str]:
    return [line.split(" ", 2)[2].rpartition(" <")[0] for line in path.read_text().splitlines()]


@pytest.mark.parametrize("seed", [1, 2])
def test_arguments_are_told_from_registers_and_the_stack(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    functions, calls, expected = [], [], []
    for number in range(N_FUNCTIONS):
        kinds = [random.choice(KINDS) for _ in range(random.randrange(MOST_ARGUMENTS + 1))]
        values = [literal(random, kind) for kind in kinds]
        result = random.choice(KINDS[:-1])
        c_result, told_result = literal(random, result)
        names = ", ".join(f"{kind} a{index}" for index, kind in enumerate(kinds)) or "void"
        functions.append(
            f'__attribute__((noipa)) {result} made_{number}({names}) {{ __asm__ volatile("" ::: "memory"); '
            f"return {c_result}; }}"
        )
        calls.append(f"made_{number}({', '.join(c for c, _ in values)});")
        expected.append(f"passing!made_{number}({', '.join(text for _, text in values)}) = {told_result}")
    source = "\n".join([*functions, "int main(void) {", *calls, "return 0; }"])
    run_clew("--function", "passing:made_*", "-o", tmp_path / "told", "--", build(tmp_path, source))
    assert told(tmp_path / "told") == expected


def test_what_is_no_number_of_a_register_is_not_guessed(tmp_path: Path) -> None:
    source = r"""
    #define APART __attribute__((noipa))
    struct pair { long a, b; };
    struct large { long many[4]; };
    APART int behind(double first, struct pair pair, int n) { return n + pair.a; }
    APART long double wide(long double x, int n) { return x * n; }
    APART struct large made(int n) { return (struct large){{n}}; }
    APART int last(int a, int b, int c, int d, int e, int f, long double x, int g) { return g; }
    int main(void) {
        behind(0.5, (struct pair){1, 2}, 3);
        wide(1, 2);
        made(7);
        last(1, 2, 3, 4, 5, 6, 7, 8);
        return 0;
    }
    """
    names = ("behind", "wide", "made", "last")
    patterns = [word for name in names for word in ("--function", f"passing:{name}")]
    run_clew(*patterns, "-o", tmp_path / "told", "--", build(tmp_path, source))
    assert told(tmp_path / "told") == [
        "passing!behind(0.5, ?, ?) = 4",
        "passing!wide(?, 2) = ?",
        "passing!made(?) = ?",
        "passing!last(1, 2, 3, 4, 5, 6, ?, ?) = 8",
    ]


def test_formats_say_which_arguments_there_are(tmp_path: Path) -> None:
    source = r"""
    #include <stdio.h>
    int main(void) {
        char room[99];
        setvbuf(stdout, NULL, _IONBF, 0);
        printf("%d %s %5.2f %% %c%hhd\n", -5, "text", 2.5, 'x', -3);
        fprintf(stdout, "%lu|%-8x|%p|%s\n", 1UL << 63, 255, (void *)16, (char *)0);
        snprintf(room, sizeof room, "%.*s%.3s", 2, "cut", "longer");
        printf("%f %f %f %f %f %f %f %f %f %d\n", 1., 2., 3., 4., 5., 6., 7., 8., 9.25, 10);
        printf("%d %d %d %d %d %d %g %d\n", 1, 2, 3, 4, 5, 6, .5, 8);
        printf("%2$s %1$s\n", "a", "b");
        printf("nothing\n");
        return 0;
    }
    """
    names = ("printf", "fprintf", "snprintf")
    patterns = [word for name in names for word in ("--function", f"libc.so.6:{name}")]
    done = run_clew(*patterns, "-s", "60", "-o", tmp_path / "told", "--", build(tmp_path, source, "-U_FORTIFY_SOURCE"))
    printed = done.stdout.decode().splitlines()
    lines = told(tmp_path / "told")
    assert [line.partition(", (FILE")[0] for line in lines if "fprintf" not in line] == [
        rf'libc.so.6!printf("%d %s %5.2f %% %c%hhd\n", -5, "text", 2.5, 120, -3) = {len(printed[0]) + 1}',
        'libc.so.6!snprintf("culon", 99, "%.*s%.3s", 2, "cu", "lon") = 5',
        r'libc.so.6!printf("%f %f %f %f %f %f %f %f %f %d\n", 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.25, 10) = '
        f"{len(printed[2]) + 1}",
        rf'libc.so.6!printf("%d %d %d %d %d %d %g %d\n", 1, 2, 3, 4, 5, 6, 0.5, 8) = {len(printed[3]) + 1}',
        r'libc.so.6!printf("%2$s %1$s\n") = 4',
        r'libc.so.6!printf("nothing\n") = 8',
    ]
    (one,) = (line for line in lines if "fprintf" in line)
    assert (
        one.partition(", ")[2] == rf'"%lu|%-8x|%p|%s\n", 9223372036854775808, 0xff, 0x10, NULL) = {len(printed[1]) + 1}'
    )
