"""`clew api`: system calls as text, held against what strace writes of the same program, thread by thread."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.e2e.strace_lines import read
from tests.programs.build import SOURCES, build_plain

UNEQUAL = ("rt_sigreturn",)
"""Calls whose results are not compared either."""

COMMANDS = {
    "ls": ["ls", "-l", "/usr"],
    "failing": ["ls", "/no/such/place"],
    "shell": ["sh", "-c", "ls /usr; cat /etc/hostname; cd /; pwd"],
    "python": [
        sys.executable,
        "-S",
        "-E",
        "-c",
        "import json, pathlib; print(pathlib.Path('/etc/hostname').read_text())",
    ],
    "find": ["find", "/etc/apt", "-newer", "/etc/hostname"],
    "stat": ["stat", "/", "/dev/null", "/etc/passwd"],
    "df": ["df", "--output=target,fstype", "/", "/dev"],
    "dd": ["dd", "if=/dev/zero", "of=/dev/null", "bs=64", "count=20", "status=none"],
    "tar": ["tar", "-cf", "/dev/null", "-C", "/etc", "hostname"],
    "timeout": ["timeout", "5", "sleep", "0.01"],
    "uname": ["uname", "-a"],
    "nice": ["nice", "id"],
    "sockets": [sys.executable, "-S", "-E", str(SOURCES / "api" / "sockets.py")],
    "structures": [],
}


def run_clew(words: list[str], *arguments: str, path: Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "clew", "api", *arguments, "-o", str(path), *(["--", *words] if words else [])]
    environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}
    return subprocess.run(command, env=environ, capture_output=True, check=False, timeout=120)


@pytest.mark.skipif(shutil.which("strace") is None, reason="this machine has no strace")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_calls_as_strace_has(name: str, tmp_path: Path) -> None:
    words = COMMANDS[name] or [str(build_plain(SOURCES / "api" / "structures.c", "-O1", "-w"))]
    command = ["strace", "-f", "-ttt", "-T", "-o", str(tmp_path / "strace"), *words]
    known = subprocess.run(command, env=runs.environment(), capture_output=True, check=False, timeout=120)
    found = run_clew(words, path=tmp_path / "clew")
    assert (found.returncode, found.stdout, found.stderr) == (known.returncode, known.stdout, known.stderr)
    expected, told = (read((tmp_path / which).read_text()) for which in ("strace", "clew"))
    # It began the program.
    assert expected[0].pop(0)[0] == "execve"
    if words[0] == sys.executable:
        # How its memory is cut up depends on addresses, which are other ones each time.
        for calls in (*expected, *told):
            calls[:] = [call for call in calls if call[0] not in ("mmap", "munmap", "brk", "madvise", "mremap")]
    assert [len(calls) for calls in told] == [len(calls) for calls in expected]
    for ours, theirs in zip(told, expected, strict=True):
        assert [call[0] for call in ours] == [call[0] for call in theirs]
        differences = [
            pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1] and pair[0][0] not in UNEQUAL
        ]
        assert not differences


def test_structures_that_say_what_is_not_so_are_told_nevertheless(tmp_path: Path) -> None:
    """strace itself does not end where a program says that it waits for two thousand million descriptors."""
    program = build_plain(SOURCES / "api" / "structures_hostile.c", "-O1", "-w")
    assert run_clew([str(program)], path=tmp_path / "clew").returncode == 0
    text = (tmp_path / "clew").read_text()
    (told,) = read(text)
    n_calls = Counter(name for name, _, result in told if result.startswith("-1"))
    each = ("readv", "recvmsg", "sendmmsg", "bind", "setsockopt", "sched_setaffinity", "clone3", "ioctl")
    assert all(n_calls[name] == 8 for name in each), n_calls
    assert (n_calls["sendmsg"], n_calls["writev"], n_calls["execve"], n_calls["select"]) == (24, 9, 2, 1)
    assert max(map(len, text.splitlines())) < 20_000


def test_calls_are_chosen_and_counted(tmp_path: Path) -> None:
    words = ["cat", "/no/such/file", "/etc/hostname"]
    assert run_clew(words, "--filter", "file", "--failed", path=tmp_path / "failed").returncode == 1
    failed = (tmp_path / "failed").read_text().splitlines()
    assert any('"/no/such/file", O_RDONLY) = -1 ENOENT (No such file or directory)' in line for line in failed)
    assert all(" = -1 E" in line for line in failed)
    run_clew(words, "--json", path=tmp_path / "json")
    objects = [json.loads(line) for line in (tmp_path / "json").read_text().splitlines()]
    assert {one["name"] for one in objects} >= {"openat", "read", "write", "exit_group"}
    assert [one["result"] for one in objects if one["name"] == "exit_group"] == [None]
    run_clew(words, "-c", path=tmp_path / "counts")
    counts = (tmp_path / "counts").read_text().splitlines()
    by_name = {line.split()[-1]: line.split() for line in counts[1:]}
    assert int(by_name["openat"][1]) == sum(one["name"] == "openat" for one in objects)
    assert int(by_name["total"][1]) == len(objects)


def test_what_nobody_describes_is_told_raw_and_counted(tmp_path: Path) -> None:
    words = [str(build_plain(SOURCES / "api" / "unknown_calls.c", "-O1"))]
    counted = b"5 calls without a description, arguments raw: syscall_0x190 (3), create_module (1), syscall_0x1ff (1)\n"
    for options in ((), ("--json",), ("-c",), ("-c", "--trace", str(tmp_path / "it.clew"))):
        done = run_clew(words, *options, path=tmp_path / "told")
        assert done.returncode == 0
        assert done.stderr.endswith(counted)
        text = (tmp_path / "told").read_text()
        if not options:
            line = "syscall_0x190(0x1, 0x2, 0x3, 0x4, 0x5, 0x6) = -1 ENOSYS (Function not implemented)"
            assert text.count(line) == 3
            assert "syscall_0x1ff(0x7, " in text and "create_module(0x" in text
        elif "--json" in options:
            objects = [json.loads(line) for line in text.splitlines()]
            raw = Counter(one["name"] for one in objects if not one["described"])
            assert raw == {"syscall_0x190": 3, "syscall_0x1ff": 1, "create_module": 1}
        else:
            by_name = {line.split()[-1]: line.split() for line in text.splitlines()[1:]}
            assert by_name["syscall_0x190"][1:3] == ["3", "3"]


def test_a_description_of_ones_own_counts(tmp_path: Path) -> None:
    own = {
        "SystemCalls": [
            {
                "Name": "openat",
                "Number": {"x86_64": 257},
                "Filter": "Database",
                "Parameters": [
                    {"Index": 0, "Name": "where", "CType": "int", "RawType": "int"},
                    {"Index": 1, "Name": "what", "CType": "const char *", "RawType": "string"},
                    {"Index": -1, "Name": "result", "CType": "long", "RawType": "int"},
                ],
            }
        ]
    }
    (tmp_path / "own.json").write_text(json.dumps(own))
    run_clew(
        ["cat", "/etc/hostname"],
        "--api-file",
        str(tmp_path / "own.json"),
        "--filter",
        "database",
        path=tmp_path / "out",
    )
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines and all(re.search(r'openat\(-100, "[^"]*"(\.\.\.)?\) = ', line) for line in lines)


def test_a_process_that_runs_is_looked_at_and_left(tmp_path: Path) -> None:
    script = "import os, time\nwhile True:\n    os.getppid(); time.sleep(0.01)"
    with subprocess.Popen([sys.executable, "-S", "-c", script]) as process:
        try:
            arguments = ["--pid", str(process.pid), "--duration", "1", "--filter", "process", "--json"]
            done = run_clew([], *arguments, path=tmp_path / "out")
            assert done.returncode == 0, done.stderr
            objects = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
            assert {one["tid"] for one in objects} == {process.pid}
            parents = [one["result"] for one in objects if one["name"] == "getppid"]
            assert len(parents) > 10 and set(parents) == {os.getpid()}
            assert process.poll() is None
            status = Path(f"/proc/{process.pid}/status").read_text()
            assert "TracerPid:\t0" in status
        finally:
            process.kill()


def test_what_ends_by_a_signal_is_told_as_shells_do(tmp_path: Path) -> None:
    assert run_clew(["sh", "-c", "kill -9 $$"], path=tmp_path / "out").returncode == 128 + 9
    assert run_clew([], path=tmp_path / "out").returncode == 2
    assert run_clew(["true"], "--pid", "1", path=tmp_path / "out").returncode == 2


def test_descriptors_are_told_by_what_they_stand_for(tmp_path: Path) -> None:
    script = 'echo one > "$0/a"; cat < "$0/a" > "$0/b"; mv "$0/b" "$0/c"; cat "$0/c"'
    words = ["sh", "-c", script, str(tmp_path)]
    run_clew(words, "-y", path=tmp_path / "told")
    text = (tmp_path / "told").read_text()
    assert f'openat(AT_FDCWD<{Path.cwd()}>, "{tmp_path}/a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3<{tmp_path}/a>' in text
    assert f'write(1<{tmp_path}/a>, "one\\n", 4) = 4' in text
    assert re.search(rf"dup2\(3<{tmp_path}/b>, 1<.*>\) = 1<{tmp_path}/b>", text)
    # Under whatever name it was opened.
    run_clew(words, "-P", f"{tmp_path}/[bc]", path=tmp_path / "some")
    some = [re.sub(r"^\d+ [\d.]+ ", "", line) for line in (tmp_path / "some").read_text().splitlines()]
    assert any(line.startswith(f'openat(AT_FDCWD, "{tmp_path}/b", O_WRONLY') for line in some)
    assert any(line.startswith("rename") for line in some)
    assert not any(f'"{tmp_path}/a"' in line for line in some)
    run_clew(words, "--fd", "1", path=tmp_path / "ones")
    lines = (tmp_path / "ones").read_text().splitlines()
    assert lines
    assert all(re.search(r"[(, ]1[,)]| = 1 ", line) for line in lines)
