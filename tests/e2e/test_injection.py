"""`clew api --inject`: what programs get, held against strace's own injection, and what is told of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import clew
from clew.protocol._constants import Injected
from tests.e2e.strace_lines import Call, read
from tests.e2e.test_api_command import run_clew
from tests.fuzz import injections as random_injections
from tests.fuzz.captures import build as build_captured
from tests.programs.build import SOURCES, build_plain

LIKE_STRACE = {
    "step": ("threads", ["getppid:retval=7:when=3..9+2"]),
    "first": ("threads", ["getppid:error=EPERM:when=2", "dup:error=33"]),
    "on": ("threads", ["getppid:error=EPERM:when=4+", "close:error=EIO:when=2+3"]),
    "several": ("threads", ["openat,read:error=EMFILE:when=5..8", "getppid:retval=0x5:when=2..5"]),
    "no_threads": ("threads", ["clone,clone3:error=EAGAIN:when=2"]),
    "others": ("others", ["getuid:delay_enter=1000:delay_exit=1ms", "getgid:signal=USR1", "dup:retval=3:when=2"]),
    "signals": ("others", ["getegid:signal=SIGUSR1:retval=9", "mmap:error=ENOMEM:when=9+", "execve:error=EACCES"]),
    "no_fork": ("others", ["clone,fork,vfork:error=EAGAIN", "getppid:error=EPERM:when=3"]),
}


@pytest.fixture(scope="module")
def program() -> Path:
    flags = ("-O1", "-pthread", "-fno-builtin-malloc", "-fno-builtin-free")
    return build_plain(SOURCES / "api/injected.c", *flags)


def natively(program: Path, *arguments: str) -> str:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout


def injected(program: Path, tmp_path: Path, what: str, *specs: str, more: tuple[str, ...] = ()) -> tuple[str, str]:
    """What the program says, and what clew tells."""
    asked = [word for spec in specs for word in ("--inject", spec)]
    done = run_clew([str(program), what], *asked, *more, path=tmp_path / "told")
    return done.stdout.decode(), (tmp_path / "told").read_text()


def marked(text: str, names: set[str]) -> Counter[tuple[Call, ...]]:
    """The calls of some names, thread by thread, with what they gave; how many threads made the same ones."""
    threads = [tuple(call for call in calls if call[0] in names) for calls in read(text)]

    def plain(call: Call) -> Call:
        # Which number a descriptor has depends on the other threads.
        name, arguments, result = call
        return name, re.sub(r"\b\d+\b", "N", arguments), re.sub(r"^\d+$", "N", result) if name == "openat" else result

    return Counter(tuple(map(plain, calls)) for calls in threads if calls)


@pytest.mark.skipif(shutil.which("strace") is None, reason="this machine has no strace")
@pytest.mark.parametrize("name", LIKE_STRACE)
def test_programs_get_what_strace_gives_them(program: Path, tmp_path: Path, name: str) -> None:
    what, specs = LIKE_STRACE[name]
    said, told = injected(program, tmp_path, what, *specs)
    asked = [word for spec in specs for word in ("-e", f"inject={spec}")]
    command = ["strace", "-f", "-ttt", "-T", "-o", str(tmp_path / "strace"), *asked, str(program), what]
    expected = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    assert said == expected
    assert said != natively(program, what) or "delay" in specs[0]
    names = {one for spec in specs for one in spec.split(":")[0].split(",")} - {"clone", "clone3", "execve"}
    assert marked(told, names) == marked((tmp_path / "strace").read_text(), names)


@pytest.mark.parametrize("what", ["threads", "others", "functions", "paths"])
def test_what_fits_no_call_changes_nothing(program: Path, tmp_path: Path, what: str) -> None:
    specs = ["%file:path=/no/such/*/path:error=EIO", "getppid:if=arg1 == 77:retval=1", "dup:when=1000:retval=1"]
    specs += ["libc.so*!malloc:if=arg1 == 77777:retval=0", "%network:fd=1234:error=EPERM"]
    said, told = injected(program, tmp_path, what, *specs)
    assert said == natively(program, what)
    assert "INJECTED" not in told


def test_functions_return_what_is_asked_for(program: Path, tmp_path: Path) -> None:
    specs = [
        "libc.so*!malloc:if=arg1 >= 100000 && arg1 < 100100:retval=0:when=5",
        "libc.so*!open:path=*/passwd:retval=-1:error=EMFILE:when=2+",
        "libc.so*!fopen:error=EIO",
    ]
    functions = ("--function", "libc.so*:malloc", "--function", "libc.so*:*open", "--json")
    said, told = injected(program, tmp_path, "functions", *specs, more=functions)
    expected = natively(program, "functions").splitlines()
    expected[4] = "malloc NULL 0"
    expected[10] = expected[12] = "open 0 24"
    expected[14:16] = ["fopen 0 5", "fclose 0"]
    assert said.splitlines() == expected
    calls = [json.loads(line) for line in told.splitlines()]
    given = [(one["name"], one["result"]) for one in calls if one["injected"] == ["result"]]
    assert given == [("malloc", 0), ("open", -1), ("open", -1), ("fopen", 0)]
    assert sum(one["name"] == "malloc" and not one["injected"] for one in calls) >= 7


PATHS = {
    "openat:path=/none/*:error=EIO": {0, 1, 2, 3},
    "openat:path=/none/[[]b]:error=EIO": {1},
    "openat:path=/none/[ab]:error=EIO": {0},
    'openat:path=/none/?\n":error=EIO': {2},
    "openat:path=/none/[*]:error=EIO": {3},
    "openat:path=*e:error=EIO": {5},
    "openat:path=*/none\\:*:error=EIO": set(),
    "openat:path=aaaa*a:error=EIO": {6},
    # What can't be read is no path that fits; all others are.
    "openat:path=*:error=EIO": {0, 1, 2, 3, 4, 5, 6},
}


@pytest.mark.parametrize("spec", PATHS)
def test_paths_are_those_that_the_program_names(program: Path, tmp_path: Path, spec: str) -> None:
    said, _ = injected(program, tmp_path, "paths", spec.replace("openat:", "openat:dfd=AT_FDCWD:flags=0:"))
    lines, own = natively(program, "paths").splitlines(), said.splitlines()
    expected = {number for number in range(10) if own[number] == f"path {number} -5"}
    assert expected == PATHS[spec]
    changed = {number for number, line in enumerate(lines) if own[number] != line}
    assert changed == expected


def test_of_two_paths_each_counts(program: Path, tmp_path: Path) -> None:
    for path in ("/none/a", "/none/b", "/none/[b]"):
        said, told = injected(program, tmp_path, "paths", f"rename:path={path}:error=EXDEV")
        assert "rename -18" in said
        assert re.search(r'rename\("/none/a", "/none/b"\) = -1 EXDEV \(.*\) \(INJECTED\)', told)
    assert "rename -2" in injected(program, tmp_path, "paths", "rename:path=/none/c:error=EXDEV")[0]


def test_descriptors_count_by_number_and_by_what_they_lead_to(program: Path, tmp_path: Path) -> None:
    said, _ = injected(program, tmp_path, "others", "read:path=*/hostname:error=EIO:when=2+")
    reads = [line for line in said.splitlines() if line.startswith("child read")]
    # The first one is of another file.
    assert reads == [
        "child read 1",
        "child read 1",
        "child read 1",
        *["child read -5", "child read 1"] * 4,
        "child read -5",
    ]
    said, told = injected(program, tmp_path, "others", "%file:fd=1:delay_exit=1ns")
    assert said == natively(program, "others")
    delayed = {line.split()[2].split("(")[0] for line in told.splitlines() if "DELAYED" in line}
    assert delayed == {"write", "newfstatat"}


def test_delays_are_as_long_at_least(program: Path, tmp_path: Path) -> None:
    specs = [
        "getuid:delay_enter=60ms",
        "geteuid:delay_exit=0.05s:delay_enter=10000",
        "libc.so*!malloc:delay_enter=30ms:when=1",
    ]
    specs[2] += ":if=arg1 == 100000"
    said, told = injected(program, tmp_path, "times", *specs)
    took = {line.split()[0]: float(line.split()[1]) for line in said.splitlines()}
    assert took["getuid"] >= 0.06 and took["geteuid"] >= 0.06 and took["malloc"] >= 0.03
    assert re.search(r"getuid\(\) = \d+ \(DELAYED\) <0\.\d+>", told)
    assert re.search(r"geteuid\(\) = \d+ \(DELAYED\) <0\.\d+>", told)


def test_functions_return_late(program: Path, tmp_path: Path) -> None:
    """Calls count as they begin; who leaves a function otherwise is not held, and signals come behind the delay, which
    takes no time of a processor."""
    specs = ["injected*!nest:delay_exit=400ms:when=2", "injected*!nest:delay_exit=30ms:when=2..3"]
    specs += ["injected*!leave:delay_exit=1000s", "injected*!enter:retval=8:delay_exit=35ms:delay_enter=5ms"]
    more = ("--function", "injected*:nest", "--function", "injected*:enter", "--json")
    said, told = injected(program, tmp_path, "returns", *specs, more=more)
    took = {line.split()[0]: float(line.split()[1]) for line in said.splitlines()}
    assert took["nest2"] >= 0.43 and 0.03 <= took["nest1"] < 0.43 > took["nest0"] and took["cpu"] < 0.2
    assert took["enter8"] >= 0.04 and took["sum"] == 3 and took["signals"] == 1
    calls = [json.loads(line) for line in told.splitlines()]
    given = [(one["name"], one["injected"]) for one in calls if one["name"] in ("nest", "enter")]
    late = ("nest", ["delay_exit"])
    assert sorted(given) == sorted(
        [("enter", ["result", "delay_enter", "delay_exit"]), ("nest", []), ("nest", []), late, late]
    )


@pytest.mark.parametrize("change", ["delay_enter", "delay_exit"])
def test_signals_come_to_who_is_held_where_nothing_is_injected_any_more(program: Path, change: str) -> None:
    with clew.spawn([program, "returns"], stdout=subprocess.PIPE) as session:
        injection = session.inject(f"injected*!nest:{change}=500ms:when=1")
        session.resume()
        time.sleep(0.2)
        injection.remove()
        assert session.wait(30) == 0


def test_what_was_injected_before_is_told_of_no_other_call(program: Path) -> None:
    with clew.spawn([program, "join"], stdout=subprocess.DEVNULL) as session:
        log = session.log_calls("enter", capture=["arg1", "injected", "delay_exit"])
        # So that the dispatcher is asked, whether anything is injected or not.
        session.on_call("enter", lambda call: None)
        injection = session.inject("injected*!enter:delay_enter=1us:delay_exit=2us")
        assert session.call("enter", 1) == 2
        injection.remove()
        assert session.call("enter", 2) == 3
        told = log.read().to_pylist()
    both = Injected.DELAY_ENTER | Injected.DELAY_EXIT
    assert [(one["arg1"], one["injected"], one["delay_exit"]) for one in told] == [(1, both, 2000), (2, 0, 0)]


@pytest.mark.parametrize(("end", "status"), [("exit", 0), ("signal", 128 + 15)])
def test_who_is_delayed_holds_nobody_up(program: Path, tmp_path: Path, end: str, status: int) -> None:
    """Far longer than the test may take."""
    command = [str(program), end]
    done = run_clew(command, "--inject", "getuid:delay_enter=1000s", path=tmp_path / "told")
    assert (done.returncode, done.stdout) == (status, b"beside 1000 0\n")
    for late in ("getuid", "injected*!return_late"):
        done = run_clew(command, "--inject", f"{late}:delay_exit=1000s", path=tmp_path / "told")
        assert (done.returncode, done.stdout) == (status, b"beside 1000 0\n")


@pytest.mark.parametrize("what", ["getuid:delay_enter", "getuid:delay_exit", "injected*!return_late:delay_exit"])
def test_who_is_delayed_can_be_stopped_and_left(program: Path, what: str) -> None:
    with clew.spawn([program, "join"], stdout=subprocess.PIPE) as session:
        injection = session.inject(f"{what}=1000s")
        session.resume()
        assert session.stdout is not None
        assert session.stdout.readline() == b"beside 1000 0\n"
        session.pause()
        # The other one waits for it to end.
        assert {thread.state for thread in session.threads} <= {"stopped", "waiting"}
        assert injection.n_places == 1
        session.resume()
        session.detach()
        # Natively nothing delays it.
        assert session.stdout.read() == b""


def test_signals_make_no_call_count_twice(program: Path, tmp_path: Path) -> None:
    """A call that is made again behind a handler is the same one; the handler's own are counted, too."""
    specs = ["getppid:retval=7:when=100+100", "poll:retval=3:when=8+8:delay_enter=2", "getuid:retval=7:when=2+2"]
    said, told = injected(program, tmp_path, "storm", *specs)
    assert said == "given 200 50 1\n"
    assert sum("getppid() = 7 (INJECTED)" in line for line in told.splitlines()) == 200
    handled = [line for line in told.splitlines() if " getuid() = " in line]
    assert sum("INJECTED" in line for line in handled) == len(handled) // 2


def test_a_call_that_was_left_by_a_jump_is_not_made_again(program: Path, tmp_path: Path) -> None:
    assert natively(program, "jumps") == "jumps 12 0 12\n"
    said, _ = injected(program, tmp_path, "jumps", "read:if=arg3 == 1:retval=5:when=3+3")
    assert said == "jumps 12 4 8\n"


def test_nobody_is_called_for_what_is_not_entered(program: Path) -> None:
    seen: list[str] = []
    with clew.spawn([program, "functions"], stdout=subprocess.PIPE) as session:
        session.inject("libc.so*!open:retval=-1:when=1..4")
        session.on_call("libc.so.6!open", lambda call: seen.append("open"))
        session.resume()
        assert session.stdout is not None
        text = session.stdout.read().decode()
        assert session.wait(60) == 0
    assert [line for line in text.splitlines() if line.startswith("open")] == ["open 0 0"] * 4 + ["open 1 0"] * 2
    # The last one is made by fopen.
    assert seen == ["open"] * 3


@pytest.mark.parametrize("mode", ["counts", "full"])
def test_a_trace_says_what_was_done(program: Path, tmp_path: Path, mode: str) -> None:
    specs = ["libc.so*!open:path=*/passwd:retval=-1:error=EMFILE", "libc.so*!fopen:error=EIO"]
    specs += ["openat:path=*/hostname:error=EACCES:when=2", "close:delay_enter=1ms:delay_exit=1:signal=CHLD"]
    trace = tmp_path / "it.clew"
    more = ("--function", "libc.so*:*open", "--filter", "file", "--trace", str(trace), "--mode", mode)
    said, _ = injected(program, tmp_path, "functions", *specs, more=more)
    opened = [line.removeprefix("open ") for line in said.splitlines() if line.startswith("open ")]
    # The second hostname is the system call's, the others are the function's.
    assert opened == ["0 24", "1 0", "0 24", "0 13", "0 24", "1 0"]
    recorded = clew.Trace(trace)
    assert not recorded.verify()
    calls = recorded.read("calls", ["kind", "name", "error", "injected"]).to_pylist()
    done = Counter((one["kind"], one["name"], one["error"], one["injected"]) for one in calls if one["injected"])
    closes = sum(one["name"] == "close" for one in calls)
    assert done == {
        ("library", "open", "failed", "result"): 3,
        ("library", "fopen", "failed", "result"): 1,
        ("system_call", "openat", "EACCES", "result"): 1,
        ("system_call", "close", None, "delay_enter,delay_exit,signal"): closes,
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_conditions_are_what_the_interpreter_makes_of_them(seed: int, tmp_path: Path) -> None:
    assert not random_injections.run_batch(build_captured(), tmp_path, seed)


def test_counts_have_what_was_injected(program: Path, tmp_path: Path) -> None:
    _, told = injected(program, tmp_path, "threads", "getppid:error=EPERM:when=3+", more=("-c",))
    (line,) = [line for line in told.splitlines() if line.endswith(" getppid")]
    assert line.split()[1:3] == ["48", "40"]


def test_mistakes_are_told_before_anything_is_started(program: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    done = run_clew(["touch", str(mark)], "--inject", "openatt:error=EIO", path=tmp_path / "told")
    assert done.returncode == 2 and not mark.exists()
    assert b"no system call is called 'openatt'; there is openat" in done.stderr


def test_what_was_never_found_is_told(program: Path, tmp_path: Path) -> None:
    specs = ["libc.so*!no_such_function:retval=1", "libc.so*!getenv:error=EIO"]
    asked = [word for spec in specs for word in ("--inject", spec)]
    done = run_clew([str(program), "functions"], *asked, path=tmp_path / "told")
    assert b"libc.so*!no_such_function:retval=1: nothing that was loaded has such a function" in done.stderr
    assert b"no description says how getenv fails" in done.stderr
