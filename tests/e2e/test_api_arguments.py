"""Arguments of functions wherever they are, and what formats ask for: random ones that a program is built to pass."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from random import Random

import pytest

from tests.e2e.api_runs import run_clew, told_lines

KINDS = ("char", "short", "int", "long", "unsigned", "float", "double", "long double", "const char *")
N_FUNCTIONS = 40
MOST_ARGUMENTS = 12


def literal(random: Random, kind: str) -> tuple[str, str]:
    """A value as C has it, and as it is told."""
    if kind == "const char *":
        text = "".join(random.choice("abcxyz") for _ in range(random.randrange(1, 9)))
        return f'"{text}"', f'"{text}"'
    if kind in ("float", "double", "long double"):
        value = random.randrange(-4000, 4000) / random.choice((1, 2, 8, 64))
        return f"{value!r}{'L' if kind == 'long double' else ''}", f"{value!r}"
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
        if result == "long double":
            told_result = "? (in st(0))"
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
    APART _Float128 quad(_Float128 x, int n) { return x; }
    APART struct large made(int n) { return (struct large){{n}}; }
    APART int last(int a, int b, int c, int d, int e, int f, long double x, int g) { return g; }
    int main(void) {
        behind(0.5, (struct pair){1, 2}, 3);
        wide(1, 2);
        made(7);
        quad(1, 2);
        last(1, 2, 3, 4, 5, 6, 7, 8);
        return 0;
    }
    """
    names = ("behind", "wide", "made", "quad", "last")
    patterns = [word for name in names for word in ("--function", f"passing:{name}")]
    run_clew(*patterns, "-o", tmp_path / "told", "--", build(tmp_path, source))
    assert told(tmp_path / "told") == [
        "passing!behind(0.5, ?, ?) = 4",
        "passing!wide(1.0, 2) = ? (in st(0))",
        "passing!made(?) = ?",
        "passing!quad(?, ?) = ?",
        "passing!last(1, 2, 3, 4, 5, 6, 7.0, 8) = 8",
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
        printf("%Lg %d %Lg\n", 2.5L, 7, -0.125L);
        printf("%d %d %d %d %d %d %Lg\n", 1, 2, 3, 4, 5, 6, 1e10L);
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
        r'libc.so.6!printf("%Lg %d %Lg\n", 2.5, 7, -0.125) = 13',
        rf'libc.so.6!printf("%d %d %d %d %d %d %Lg\n", 1, 2, 3, 4, 5, 6, 10000000000.0) = {len(printed[7]) + 1}',
    ]
    (one,) = (line for line in lines if "fprintf" in line)
    assert (
        one.partition(", ")[2] == rf'"%lu|%-8x|%p|%s\n", 9223372036854775808, 0xff, 0x10, NULL) = {len(printed[1]) + 1}'
    )


SCANNING = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <wchar.h>
int main(void) {
    signed char small; unsigned char natural; short half; unsigned short other; int n, m, at = -7; unsigned u, h;
    long l; float f; double d; long double e; void *p;
    char text[32] = "as it was", more[32], three[3]; wchar_t wide[32];
    n = sscanf("-5 200 -300 40000 70 0x1f -9000000000", "%hhd %hhu %hd %hu %u %x %ld", &small, &natural, &half, &other,
               &u, &h, &l);
    printf("[%d], [%u], [%d], [%u], [%u], [%#x], [%ld]) = %d\n", small, natural, half, other, u, h, l, n);
    n = sscanf("1.5 2.25 -0.125 0xabc", "%f%lf%Lf%p", &f, &d, &e, &p);
    printf("[%g], [%g], [%Lg], [%p]) = %d\n", f, d, e, p, n);
    n = sscanf("word [tail] xyz12", "%s %[][a-z] %3c%d%n", text, more, three, &m, &at);
    printf("\"%s\", \"%s\", \"%.3s\", [%d], [%d]) = %d\n", text, more, three, m, at, n);
    n = sscanf("7 seven", "%d %d %s", &m, &at, text);
    printf("[%d], SHELF, SHELF) = %d\n", m, n);
    n = sscanf("", "%d%n", &m, &at);
    printf("SHELF, SHELF) = %d\n", n);
    n = sscanf("8 x", "%d y%n", &m, &at);
    printf("[%d], SHELF) = %d\n", m, n);
    n = sscanf("9 wide", "%d %ls", &m, wide);
    printf("[%d], L\"%ls\") = %d\n", m, wide, n);
    n = swscanf(L"10 narrow", L"%d %s", &m, text);
    printf("[%d], \"%s\") = %d\n", m, text, n);
    n = sscanf("1 2 3 4 5 6 7 8 9", "%d %d %d %d %d %d %d %d %d", &n, &m, &n, &m, &n, &m, &n, &m, &at);
    printf("8 of them) = %d\n", n);
    char *pages = mmap(NULL, 3 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + (2 << 12), 1 << 12);
    n = sscanf("across page", "%s %s", pages + (1 << 12) - 3, pages + (2 << 12) - 5);
    printf("\"%s\", \"%s\") = %d\n", pages + (1 << 12) - 3, pages + (2 << 12) - 5, n);
    return 0;
}
"""


def test_scanf_is_told_with_what_it_has_read(tmp_path: Path) -> None:
    program = build(tmp_path, SCANNING)
    done = run_clew("--function", "libc.so.6:*scanf", "-s", "60", "-o", tmp_path / "told", "--", program)
    lines = [line.partition("!")[2] for line in told_lines(tmp_path / "told")]
    found = [line.partition("%")[2].partition('", ')[2] for line in lines]
    # Four words of the stack are taken.
    assert found[8].count("[") == 8
    found[8] = "8 of them" + found[8][found[8].index(") =") :]
    assert found == done.stdout.decode().splitlines()


WIDE = r"""
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <wchar.h>
int main(void) {
    char *pages = mmap(NULL, 3 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    wchar_t *across = (wchar_t *)(pages + 4096 - 8), *last = (wchar_t *)(pages + 8192 - 12), room[64];
    munmap(pages + 8192, 4096);
    volatile long result;
    wcscpy(across, L"across");
    wcscpy(last, L"at");
    wcscpy(room, L"h\u00e9 \u4e2d\n");
    result = wcslen(across);
    result = wcscmp(last, across);
    result = wcsncmp(last, L"atlas", 2);
    wmemset(last, L'x', 3);
    wmemcpy(room, last, 3);
    result = wmemcmp(room, last, 0);
    result = wcsnlen(last, 3);
    swprintf(room, 64, L"%d|%ls|%s|%.2ls|%g", 5, across, "narrow", L"many", 0.5);
    fputws(L"", stdout);
    return 0;
}
"""


def test_strings_of_wide_characters_are_told_up_to_where_they_end(tmp_path: Path) -> None:
    names = ["wcscpy", "wcslen", "wcscmp", "wcsncmp", "wmemcpy", "wmemcmp", "wcsnlen", "swprintf", "fputws"]
    patterns = [word for name in names for word in ("--function", f"libc.so.6:{name}")]
    program = build(tmp_path, WIDE, "-U_FORTIFY_SOURCE")
    run_clew(*patterns, "-o", tmp_path / "told", "--", program)
    lines = [line.partition("!")[2] for line in told_lines(tmp_path / "told")]
    # The library calls some of its own.
    own = lines[: next(index for index, line in enumerate(lines) if line.startswith("wcsnlen")) + 1]
    own += [line for line in lines if line.startswith(("swprintf", "fputws"))]
    assert [re.sub(r"(wcscmp.* = )\d+", r"\1N", line) for line in own] == [
        'wcscpy(SHELF, L"across") = SHELF',
        'wcscpy(SHELF, L"at") = SHELF',
        r'wcscpy(SHELF, L"h\u00e9 \u4e2d\n") = SHELF',
        'wcslen(L"across") = 6',
        'wcscmp(L"at", L"across") = N',
        'wcsncmp(L"at", L"at", 2) = 0',
        'wmemcpy(SHELF, L"xxx", 3) = SHELF',
        'wmemcmp(L"", L"", 0) = 0',
        'wcsnlen(L"xxx", 3) = 3',
        # Of what a format asks for nothing is taken behind the end of its page.
        'swprintf(L"5|across|narrow|ma|0.5", 64, L"%d|%ls|%s|%.2ls|%g", 5, L"ac"..., "narrow", L"ma", 0.5) = 22',
        'fputws(L"", SHELF) = 1',
    ]


def test_bad_addresses_of_wide_strings_are_addresses(tmp_path: Path) -> None:
    source = r"""
    #include <stdio.h>
    #include <wchar.h>
    __attribute__((noipa)) int mine(const wchar_t *one, const wchar_t *other, const wchar_t *no) { return 5; }
    int main(void) {
        mine((wchar_t *)0x10, (wchar_t *)-1L, NULL);
        return 0;
    }
    """
    description = tmp_path / "mine.json"
    string = {"CType": "const wchar_t *", "RawType": "wide_string"}
    parameters = [{"Index": index, "Name": f"s{index}"} | string for index in range(3)]
    parameters.append({"Index": -1, "Name": "result", "CType": "int", "RawType": "int"})
    function = {"Name": "mine", "Filter": "Other", "Parameters": parameters}
    description.write_text(json.dumps({"Libraries": [{"Name": "passing", "Functions": [function]}]}))
    options: list[str | Path] = ["--api-file", description, "--function", "passing:mine", "-o", tmp_path / "told"]
    run_clew(*options, "--", build(tmp_path, source))
    assert told(tmp_path / "told") == ["passing!mine(0x10, 0xffffffffffffffff, NULL) = 5"]
