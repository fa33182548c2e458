"""`clew diff` of recordings in mode full: where two runs of a program part."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.errors import UsageError
from tests.e2e import runs

SOURCE = """
#include <pthread.h>
#include <unistd.h>
volatile long sum;
#define NEVER_INLINE __attribute__((noinline))
NEVER_INLINE void each(long i) { sum += i; }
NEVER_INLINE void odd(long i) { sum += 2 * i; }
NEVER_INLINE void other_end(void) { sum++; }
static void *work(void *other) { for (long i = 0; i < 100; i++) each(i); if (other) odd(3); return 0; }
static long number(const char *word) { long n = 0; for (int i = 0; i < 6; i++) n = n * 10 + word[i] - '0'; return n; }
int main(int argc, char **argv)
{
    long times = number(argv[1]), when = number(argv[2]);
    for (long i = 0; i < times; i++) {
        if (i == when) odd(i);
        each(i);
    }
    if (argv[3][0] == 't') {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, i && argv[3][1] == 'o' ? argv : 0);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    }
    if (argv[3][0] == 'e') { other_end(); _exit(0); }
    return 0;
}
"""
NEVER = "999999"


@pytest.fixture(scope="module", params=["static", pytest.param("dynamic", marks=pytest.mark.stress)])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "program.c").write_text(SOURCE)
    flags = [
        "-g",
        "-O1",
        "-fno-inline",
        "-Wl,--build-id",
        "-pthread",
        *(["-static"] if request.param == "static" else []),
    ]
    subprocess.run(["gcc", *flags, "-o", folder / "program", folder / "program.c"], check=True)
    return folder / "program"


def record(program: Path, trace: Path, *words: str) -> Path:
    run = runs.record([program, *words], trace, "--mode", "full")
    assert (run.status, run.stderr) == (0, b"")
    return trace


def order(a: Path, b: Path, **options: Any) -> list[dict[str, Any]]:
    """The order compared; the other way round it is mirrored."""
    there, back = clew.diff(a, b).order(**options), clew.diff(b, a).order(**options)
    mirrored = {"a_ends": "b_ends", "b_ends": "a_ends"}
    assert [row["end"] for row in there] == [mirrored.get(row["end"], row["end"]) for row in back]
    for row, other in zip(there, back, strict=True):
        assert [(parting["a"]["at"], parting["b"]["at"]) for parting in row["partings"][:1]] == [
            (parting["b"]["at"], parting["a"]["at"]) for parting in other["partings"][:1]
        ]
    return there


def symbols(places: list[dict[str, Any]]) -> list[str]:
    return [place["symbol"] for place in places]


def test_one_call_more(program: Path, tmp_path: Path) -> None:
    a = record(program, tmp_path / "a", "300000", NEVER, "-")
    b = record(program, tmp_path / "b", "300000", "200000", "-")
    (threads,) = order(a, b, only="program")
    assert (threads["start"], threads["end"]) == ("main", "together")
    (parting,) = threads["partings"]
    assert parting["last"]["symbol"] == "main" == parting["met"]["symbol"]
    assert parting["a"]["ran"] == {"instruction": 0, "execution": 0}
    assert parting["b"]["ran"]["instruction"] > 2
    assert "odd" in symbols(parting["b"]["next"])
    line = 1 + SOURCE.splitlines().index("        if (i == when) odd(i);")
    assert parting["last"]["line"] == f"{program.parent / 'program.c'}:{line}"
    assert parting["n_calls"] >= len(parting["calls"]) > 0
    # The numbers are those of the path: behind the parting it executes what is told.
    for side, path in (("a", a), ("b", b)):
        trace = clew.Trace(path)
        at = parting[side]["at"]
        block_id = int(trace.path().blocks(at["execution"], 1)[0])
        (block,) = [row for row in trace.blocks.to_pylist() if row["block_id"] == block_id]
        assert hex(block["app_pc"]) == parting[side]["next"][0]["app_pc"]
        assert trace.path().find_instruction(at["instruction"]).execution == at["execution"]
    # From behind it on there is none, and in front of its own function it is the first.
    assert order(a, b, start="each:200002", only="program")[0]["partings"] == []
    (late,) = order(a, b, start="program!each:199999", only="program")[0]["partings"]
    assert late == parting


def test_all_code_of_the_same_run(program: Path, tmp_path: Path) -> None:
    """Whatever differs by addresses alone lies outside of main."""
    a, b = (record(program, tmp_path / name, "001000", "000500", "-") for name in ("a", "b"))
    (threads,) = order(a, b)
    assert (threads["start"], threads["end"], threads["partings"]) == ("main", "together", [])
    (itself,) = order(a, a, start="0", only="*")
    assert (itself["start"], itself["end"], itself["partings"]) == ("0", "together", [])
    assert itself["a"]["end"]["instruction"] == itself["a"]["instructions"]
    run = runs.run(runs.clew_command("diff", "--exit-code", a, a))
    assert (run.status, run.stderr) == (0, b"")
    conclusion = run.stdout.decode().splitlines()[-1]
    is_static = "libc.so.6" not in run.stdout.decode()
    assert conclusion.endswith("from main on" + ("" if is_static else ", without the C library"))
    assert threads["without_c_library"] is not is_static
    (everything,) = order(a, a, only="*")
    assert (everything["without_c_library"], everything["end"]) == (False, "together")


def test_another_end(program: Path, tmp_path: Path) -> None:
    a = record(program, tmp_path / "a", "001000", NEVER, "-")
    b = record(program, tmp_path / "b", "001000", NEVER, "e")
    parting = order(a, b, only="program")[0]["partings"][0]
    assert "other_end" in symbols(parting["b"]["next"])
    assert "other_end" not in symbols(parting["a"]["next"])


def test_more_partings_than_are_wanted(program: Path, tmp_path: Path) -> None:
    a = record(program, tmp_path / "a", "000100", NEVER, "-")
    b = record(program, tmp_path / "b", "000200", "000050", "-")
    assert [len(order(a, b, only="program", partings=n)[0]["partings"]) for n in (1, 2, 3)] == [1, 2, 2]
    assert order(a, b, only="program", partings=1)[0]["end"] == "limit"
    (_, longer) = order(a, b, only="program", partings=2)[0]["partings"]
    assert longer["b"]["ran"]["execution"] > 200


def test_threads_are_compared_in_the_order_in_which_they_were_made(program: Path, tmp_path: Path) -> None:
    a = record(program, tmp_path / "a", "000100", NEVER, "t-")
    b = record(program, tmp_path / "b", "000100", NEVER, "to")
    found = order(a, b, only="program")
    assert [threads["start"] for threads in found] == ["main", "0", "0"]
    ways = [[symbols(parting["b"]["next"]) for parting in threads["partings"]] for threads in found]
    assert [any("odd" in way for way in of_thread) for of_thread in ways] == [False, False, True]
    # Only the last thread of B comes there, and none of A.
    assert [threads["end"] for threads in order(b, b, start="odd")] == [None, None, "together"]
    alone = record(program, tmp_path / "alone", "000100", NEVER, "--")
    more = order(alone, a, only="program")
    assert [(threads["a"] is None, threads["end"]) for threads in more[1:]] == [(True, None)] * 2


def test_what_is_printed(program: Path, tmp_path: Path) -> None:
    a = record(program, tmp_path / "a", "001000", NEVER, "-")
    b = record(program, tmp_path / "b", "001000", "000500", "-")
    run = runs.run(runs.clew_command("diff", "--only", "prog*", a, b))
    assert (run.status, run.stderr) == (0, b"")
    text = run.stdout.decode()
    assert ", from main on\n" in text
    whole = runs.run(runs.clew_command("diff", a, b)).stdout
    assert whole.count(b"part behind main+0x") == 1
    assert "\n1. part behind main+0x" in text and "\n   A  goes straight on\n" in text and " → odd (program.c:" in text
    run = runs.run(runs.clew_command("diff", "--json", "--partings", "0", a, b))
    assert json.loads(run.stdout)["order"] is None
    for options, said in (
        (("--from", "nowhere"), b"no thread came there in both"),
        (("--from", "main:2"), b"no thread came there in both"),
        (("--from", "main:0"), b"from 1 on"),
        (("--only", "nothing"), b"no code ran in an image of this name"),
    ):
        run = runs.run(runs.clew_command("diff", *options, a, b))
        assert run.status == 2 and said in run.stderr, options


def test_one_of_another_mode(program: Path, tmp_path: Path) -> None:
    a = record(program, tmp_path / "a", "001000", NEVER, "-")
    assert runs.record([program, "001000", NEVER, "-"], tmp_path / "b").status == 0
    diff = clew.diff(a, tmp_path / "b")
    content = diff.to_dict()
    assert content["order"] is None and diff.order() == []
    assert "the order is compared only where both are of mode full" in content["notes"]
    with pytest.raises(UsageError, match="mode full"):
        diff.order(start="main")
