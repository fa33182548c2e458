"""Whole programs of the machine, recorded: the same output and status as alone, a well-formed trace, nothing lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.workloads import PROGRAMS, compile_program, find_compiler_proper
from tests.e2e import runs
from tests.programs.build import find

pytestmark = [pytest.mark.stress, pytest.mark.timeout(600)]

MODES = ("counts", "coverage")


def check(
    command: runs.Command, folder: Path, mode: str, *, stdin: bytes = b"", is_ordered: bool = True
) -> runs.Recorded:
    """Run natively and recorded, compare, verify."""
    native = runs.run(command, stdin=stdin, timeout_seconds=300)
    recorded = runs.record(command, folder / "trace.clew", "--mode", mode, stdin=stdin, timeout_seconds=300)
    if not is_ordered:
        native, recorded = native.sorted_lines(), recorded.sorted_lines()
    assert (recorded.status, recorded.stderr) == (native.status, native.stderr)
    assert recorded.stdout == native.stdout
    read = runs.read(folder / "trace.clew")
    assert read.totals["blocks"] > 1000
    return read


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no program {name} on this machine")
    return found


@pytest.mark.parametrize("mode", MODES)
def test_ls(mode: str, tmp_path: Path) -> None:
    check([tool("ls"), "-lR", "/usr/share"], tmp_path, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("words", ["gzip -9c", "xz -6c", "xz -T2 -6c", "bzip2 -9c"])
def test_compressor(words: str, mode: str, text: Path, tmp_path: Path) -> None:
    program, *options = words.split()
    check([tool(program), *options, text], tmp_path, mode)


@pytest.mark.parametrize("program", ["gzip", "xz", "bzip2"])
def test_decompressor(program: str, text: Path, tmp_path: Path) -> None:
    packed = subprocess.run([tool(program), "-c", text], capture_output=True, check=True).stdout
    check([tool(program), "-dc"], tmp_path, "counts", stdin=packed)


@pytest.mark.parametrize("mode", MODES)
def test_sqlite(mode: str, sql: Path, tmp_path: Path) -> None:
    check([tool("sqlite3"), ":memory:", f".read {sql}"], tmp_path, mode)


@pytest.mark.parametrize("mode", MODES)
def test_perl(mode: str, text: Path, tmp_path: Path) -> None:
    check([tool("perl"), PROGRAMS / "words.pl", text, "2"], tmp_path, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("script", "argument"), [("fannkuch.py", "8"), ("tasks.py", "60000")])
def test_python(script: str, argument: str, mode: str, tmp_path: Path) -> None:
    check([sys.executable, PROGRAMS / script, argument], tmp_path, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", ["python3", sys.executable], ids=["found", "own"])
def test_python_start(program: str, mode: str, tmp_path: Path) -> None:
    check([tool(program), "-c", "import json, re, threading; print(json.dumps({'a': 1}))"], tmp_path, mode)


def test_python_threads(tmp_path: Path) -> None:
    script = (
        "import threading, queue\n"
        "q, results = queue.Queue(), []\n"
        "def work():\n"
        "    while (n := q.get()) is not None: results.append(sum(i * i for i in range(n)))\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "[t.start() for t in threads]\n"
        "[q.put(n) for n in range(400)] + [q.put(None) for _ in threads]\n"
        "[t.join() for t in threads]\n"
        "print(sum(results))\n"
    )
    check([sys.executable, "-c", script], tmp_path, "counts")


@pytest.mark.parametrize("mode", MODES)
def test_openssl(mode: str, text: Path, tmp_path: Path) -> None:
    check([tool("openssl"), "dgst", "-sha512", text], tmp_path, mode)


@pytest.mark.parametrize("options", ["aes-256-gcm", "chacha20-poly1305", "rsa2048"])
def test_openssl_speed_starts_and_stops(options: str, tmp_path: Path) -> None:
    # Timers end each measurement: an alarm signal in the middle of vector code. The figures differ, the status may not.
    command = [tool("openssl"), "speed", "-seconds", "1", *(("-evp",) if "-" in options else ()), options]
    run = runs.record(command, tmp_path / "trace.clew", timeout_seconds=120)
    assert run.status == 0
    runs.read(tmp_path / "trace.clew")


@pytest.mark.parametrize("mode", MODES)
def test_compiler_proper(mode: str, c_source: Path, tmp_path: Path) -> None:
    program = find_compiler_proper()
    if program is None:
        pytest.skip("gcc has no cc1 here")
    check([program, "-quiet", "-O2", c_source, "-o", "-"], tmp_path, mode)


@pytest.mark.parametrize("mode", MODES)
def test_threads(mode: str, tmp_path: Path) -> None:
    recorded = check([compile_program("threads"), "100000"], tmp_path, mode)
    threads = recorded.summary["processes"][0]["threads"]
    assert [thread["end"] for thread in threads] == ["exit"] * 5
    if mode == "counts":
        assert all(thread["instructions"] > 100_000 for thread in threads[1:])


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["calls.static", "calls.nopie", "exceptions.static", "threads_mutex.static"])
def test_static_and_fixed_address_programs(name: str, mode: str, tmp_path: Path) -> None:
    check([find(name).path], tmp_path, mode)


@pytest.mark.parametrize(
    "words",
    [
        "sort -R --random-source=/etc/passwd /etc/services",
        "awk {n+=NF}END{print(n)} /etc/services",
        "grep -c e /etc/services",
        "sed -n s/tcp/TCP/p /etc/services",
        "find /usr/include -name *.h -newer /etc/passwd",
        "tar -cf - /usr/include/linux",
        "sha256sum /usr/bin/perl",
        "diff /etc/services /etc/protocols",
        "od -c /etc/services",
        "bc --version",
        "readelf -a /usr/bin/ls",
        "objdump -d /usr/bin/true",
        "git --version",
    ],
    ids=lambda words: words.split()[0],
)
def test_small_tools(words: str, tmp_path: Path) -> None:
    program, *rest = words.split(" ")
    check([tool(program), *rest], tmp_path, "counts")


def test_shell_with_children(tmp_path: Path) -> None:
    script = "for i in 1 2 3; do echo $i | tr 1-3 a-c; done; (exit 5); echo $?; x=$(echo sub); echo $x | cat | wc -c"
    check([tool("sh"), "-c", script], tmp_path, "counts")


def test_gcc_driver_and_its_children(tmp_path: Path) -> None:
    source = tmp_path / "hello.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("compiled"); return 0; }\n')
    program = tmp_path / "hello"
    check([tool("gcc"), "-O2", "-o", program, source], tmp_path, "counts")
    assert runs.run([program]).stdout == b"compiled\n"


def test_node(tmp_path: Path) -> None:
    script = (
        "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }"
        "let m = new Map(); for (let i = 0; i < 20000; i++) m.set('k' + (i % 777), (m.get('k' + (i % 777)) || 0) + i);"
        "console.log(fib(22), m.size, [...m.values()].reduce((a, b) => a + b));"
    )
    check([tool("node"), "-e", script], tmp_path, "counts")


def test_java(tmp_path: Path) -> None:
    check([tool("java"), "-version"], tmp_path, "counts")


def test_go(tmp_path: Path) -> None:
    check([tool("go"), "version"], tmp_path, "counts")
