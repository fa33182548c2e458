"""What the benchmark programs work on, made here: the same bytes on every machine.

Runs on the machine that measures. Knows no program and no clew.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "work"

MEGABYTE = 1_000_000
_VERSION = b"1"  # changes when what is written here changes


def _make(name: str, write: Callable[[Path], None]) -> Path:
    """The file of that name, written once; its name holds the version."""
    FOLDER.mkdir(exist_ok=True)
    tag = hashlib.sha256(_VERSION + name.encode()).hexdigest()[:6]
    path = FOLDER / f"{tag}-{name}"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        write(unfinished)
        os.replace(unfinished, path)
    return path


def make_text(size_bytes: int) -> Path:
    """Lines of made-up words, few of them frequent, and numbers: compresses as prose does."""

    def write(path: Path) -> None:
        chooser = random.Random(size_bytes)
        letters = "etaoinshrdlcumwfgypbvk"
        words = ["".join(chooser.choice(letters) for _ in range(2 + rank % 9)) for rank in range(6000)]
        weights = [1.0 / (rank + 2) for rank in range(len(words))]
        written = 0
        with path.open("w") as file:
            while written < size_bytes:
                line = chooser.choices(words, weights, k=20_000)
                for at in range(0, len(line), 11):
                    line[at] += "\n"
                for at in range(7, len(line), 97):
                    line[at] = str(chooser.randrange(100_000))
                written += file.write(" ".join(line))

    return _make(f"text-{size_bytes}", write)


def make_c_source(functions: int) -> Path:
    """A preprocessed C file of structures, loops, switches and calls, for the compiler proper."""

    def write(path: Path) -> None:
        chooser = random.Random(functions)
        lines = ["typedef unsigned long word;", "struct record { word a, b; int c[16]; struct record *next; };"]
        lines += ["extern word get(struct record *); extern void put(word, ...);"]
        for index in range(functions):
            lines += _function(index, chooser)
        path.write_text("\n".join(lines) + "\n")

    return _make(f"source-{functions}.i", write)


def _function(index: int, chooser: random.Random) -> list[str]:
    def number() -> int:
        return chooser.randrange(1, 1000)

    lines = [f"word f{index}(struct record *r, word n) {{", f"  word x = n * {number()}, y = r->a;"]
    for _ in range(chooser.randrange(2, 6)):
        match chooser.randrange(5):
            case 0:
                body = f"x += r->c[i] * y; y ^= x >> {number() % 31};"
                lines += [f"  for (int i = 0; i < {number() % 16 + 1}; i++) {{ {body} }}"]
            case 1:
                lines += [f"  switch (x % {chooser.randrange(5, 12)}) {{"]
                lines += [f"    case {case}: y = x * {number()} + {case}; break;" for case in range(4)]
                lines += ["    default: x--; }"]
            case 2 if index:
                call = f"f{chooser.randrange(index)}(r->next, y)"
                lines += [f"  if (x > y + {number()}) x = {call}; else put(x, y, {number()});"]
            case 3:
                lines += [f"  while (r && y < {number()}) {{ y += get(r); r = r->next; if (y & {number()}) break; }}"]
                lines += ["  if (!r) return x;"]
            case _:
                lines += [f"  x = (x << {number() % 30 + 1} | y >> {number() % 30 + 1}) ^ {number()}ul; r->b = x;"]
    return [*lines, "  return x + y;", "}"]


def make_wide_source(functions: int) -> Path:
    """A C file of functions `f0`... of about thirty blocks each, none of which loops or calls.

    Each takes a number and a table of 64, and returns a number: `unsigned f0(unsigned, unsigned *)`.
    """

    def write(path: Path) -> None:
        chooser = random.Random(functions)
        lines = []
        for index in range(functions):
            lines += [f"unsigned f{index}(unsigned x, unsigned *t) {{", f"  unsigned y = x * {2 * index + 3}u;"]
            for _ in range(chooser.randrange(4, 18)):
                lines += _branching_statement(chooser)
            lines += ["  return x + y;", "}"]
        path.write_text("\n".join(lines) + "\n")

    return _make(f"wide-{functions}.c", write)


def _branching_statement(chooser: random.Random) -> list[str]:
    a, b, c = (chooser.randrange(1, 1000) for _ in range(3))
    match chooser.randrange(5):
        case 0:
            return [f"  if (y & {1 << a % 12}) x += t[{b % 64}] ^ {c}u; else x = (x << {a % 13 + 1}) - y;"]
        case 1:
            return [f"  if (x % {a + 2}u > {b % a}u) {{ t[{c % 64}] += x; y ^= x >> {b % 9}; }}"]
        case 2:
            cases = [f"    case {case}: y += x * {c + case}u; break;" for case in range(4)]
            return [f"  switch ((x ^ y) % {b % 5 + 5}u) {{", *cases, f"    default: x ^= {c}u; }}"]
        case 3:
            return [f"  y = x > y && (t[{a % 64}] & {b}u) ? y * {c}u : y + x;"]
        case _:
            return [f"  x = (x >> {a % 17 + 1} | x << {b % 15 + 1}) + (y & {c}u) * {a}u;"]


def make_wide_main(parts: int, functions: int, called: int) -> Path:
    """A C file whose main calls the first N of `called` functions out of `parts` copies of a wide source, once each.

    N is its argument; copy 7's functions are named `part7_f0`... They are called in an order that goes through all
    copies in turn, so that what runs is scattered over the whole program.
    """

    def write(path: Path) -> None:
        # Copies in turn; within one, in steps that are prime to their number.
        names = [f"part{turn % parts}_f{turn // parts * 7919 % functions}" for turn in range(called)]
        lines = ["#include <stdio.h>", "#include <stdlib.h>", "typedef unsigned function(unsigned, unsigned *);"]
        lines += [f"extern function {name};" for name in names]
        lines += ["static function *const called[] = {", *[f"  {name}," for name in names], "};"]
        lines += [
            "int main(int argc, char **argv) {",
            "  unsigned table[64] = {1}, x = 1;",
            "  int count = argc > 1 ? atoi(argv[1]) : 0;",
            f"  for (int i = 0; i < count && i < {called}; i++) x ^= called[i](x + i, table);",
            '  printf("%u\\n", x);',
            "}",
        ]
        path.write_text("\n".join(lines) + "\n")

    return _make(f"wide-main-{parts}-{functions}-{called}.c", write)


def make_sql(rows: int) -> Path:
    """A script that fills tables, joins, groups, updates and deletes."""

    def write(path: Path) -> None:
        lines = [
            "create table item(id integer primary key, name text, price integer, kind integer);",
            "create table sale(id integer primary key, item integer, amount integer, place text);",
            f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})"
            " insert into item select i, 'item ' || (i * 7919 % 10007), i * 31 % 997, i % 13 from n;",
            f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows * 3})"
            f" insert into sale select i, i * 7 % {rows} + 1, i % 17, 'place ' || (i % 29) from n;",
            "create index by_name on item(name);",
            "create index by_item on sale(item);",
            "select kind, count(*), sum(price * amount), max(name) from item join sale on sale.item = item.id"
            " group by kind order by kind;",
            "select place, sum(amount) from sale group by place order by 2 desc, 1 limit 5;",
            "update item set price = price + (select sum(amount) from sale where sale.item = item.id) where kind < 6;",
            "select sum(price), count(*) from item where name like 'item 1%3';",
            "delete from sale where item in (select id from item where kind = 3);",
            "select count(*), sum(id) from sale;",
        ]
        path.write_text("\n".join(lines) + "\n")

    return _make(f"script-{rows}.sql", write)
