"""All functions of real programs and libraries, probed at once where they begin and where they return.

What the programs write is what they write natively. In the program each function's calls are counted where it begins,
by one probe, and where it returns, by another: both are the same but for calls that never return.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from clew.probing.locations.in_process import ProcessPlace
from clew.probing.locations.place import PlaceKind
from clew.sessions.aggregate_table import AggregateWish
from clew.sessions.probes.probe_launch import ProbedCommand
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ProbeSpec
from tests.programs.build import SOURCES

MAX_KEYS = 1 << 14
MAX_REFUSED = 0.001
SCRIPT = """
import collections, hashlib, json, re, threading, zlib
out = []
def work(turn):
    data = {str(n): [n * turn, {"third": n / 3}] for n in range(200)}
    text = json.dumps(data, sort_keys=True)
    assert json.loads(text) == data
    try:
        {}[turn]
    except KeyError as error:
        text += repr(error)
    out.append((turn, hashlib.md5(text.encode()).hexdigest(), len(re.findall(r"\\d+\\.\\d", text))))
threads = [threading.Thread(target=work, args=(turn,)) for turn in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
def some():
    for n in range(1000):
        yield n
print(sorted(out), sum(some()), sorted(collections.Counter("to and fro" * 20).items()))
"""
NODE_SCRIPT = """
const text = JSON.stringify([...Array(500).keys()].map((n) => ({ n, third: n / 3, name: `of ${n}` })));
const words = text.match(/\\d+\\.\\d/g).sort();
const digest = require("crypto").createHash("sha256").update(text).digest("hex");
const packed = require("zlib").deflateSync(text);
setTimeout(() => console.log(words.length, digest, packed.length, new Map([[1, words[0]]])), 5);
"""
PYTHON = Path(sysconfig.get_config_var("LIBDIR") or "/") / str(sysconfig.get_config_var("INSTSONAME") or "-")
CC1 = Path(subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, check=True, text=True).stdout.strip())


def is_own_library() -> bool:
    """Whether this Python has its code in a library: it may be installed beside one that does not use it."""
    return str(PYTHON.resolve()) in Path("/proc/self/maps").read_text()


class Told(NamedTuple):
    """What came of a run: by where functions begin, how often each began and how often it returned; their names; how
    many places were armed in all; what was refused; what the program wrote."""

    begun: Counter[int]
    returned: Counter[int]
    names: dict[int, str]
    n_armed: int
    refused: list[str]
    output: str


def run(command: Sequence[str | Path], specs: Sequence[ProbeSpec], capfd: pytest.CaptureFixture[str]) -> Told:
    """A command with probes of calls that are counted by their place, none of which is lost."""
    refused: list[str] = []
    armed: dict[int, int] = {}
    names: dict[int, str] = {}
    session = ProbeSession(specs)
    try:
        probed = ProbedCommand(session, [str(word) for word in command])
        while not probed.wait(0):
            session.wait(0.02)
            assert not session.read().losses
        assert not session.read().losses
        refused = [text for text in session.take_remarks() if "no probe at" in text]
        target = session.owned[0]
        for one in target.armed:
            assert isinstance(one.place, ProcessPlace)
            place = one.place.place
            if place is not None and place.kind != PlaceKind.CHOOSER:
                armed[one.address] = one.place.address
                names[one.place.address] = one.place.name
        n_armed = len(target.armed)
        counts: dict[bool, Counter[int]] = {True: Counter(), False: Counter()}
        for spec, found in session.sums():
            assert not found.n_left_out
            for row in found.read().to_pylist():
                if row["$rip"] in armed:
                    counts[spec.is_function][armed[row["$rip"]]] += row["count"]
    finally:
        session.close()
    assert probed.exit_status == 0
    return Told(counts[False], counts[True], names, n_armed, refused, capfd.readouterr().out)


def counted(where: str, *, is_function: bool) -> ProbeSpec:
    return ProbeSpec(where, where, is_function, wish=AggregateWish(["$rip"], None, None, MAX_KEYS, False))


def never_returned(told: Told) -> set[str]:
    """Functions of which a call never returned: one, which was open when the program ended."""
    difference = {start: told.begun[start] - told.returned[start] for start in told.begun.keys() | told.returned.keys()}
    assert set(difference.values()) <= {0, 1}
    return {told.names[start].rpartition("!")[2] for start, n in difference.items() if n}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("".join(f"{n * 7919 % 10007} of {n * n % 101}\n" for n in range(20000)))
    return path


def native(command: Sequence[str | Path]) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


@pytest.mark.parametrize(
    "words",
    [
        ("ls", "-l", "/usr/bin"),
        pytest.param(("sort", "--parallel=4", "-S", "200K", "TEXT"), marks=pytest.mark.long),
        pytest.param(("awk", "{ n[$3] += $1 } END { for (k in n) print k, n[k] }", "TEXT"), marks=pytest.mark.long),
        pytest.param(("sed", "-E", "s/([0-9]+) of/<\\1>/; y/0123/abcd/", "TEXT"), marks=pytest.mark.long),
    ],
    ids=lambda words: words[0],
)
def test_all_functions_of_libc(words: Sequence[str], text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = [str(text) if word == "TEXT" else word for word in words]
    expected = native(command)
    specs = [counted("libc.so.6!*", is_function=is_function) for is_function in (False, True)]
    told = run(command, specs, capfd)
    assert told.output == expected
    assert not told.refused
    assert told.n_armed > 5000
    assert len(told.begun) > 100
    left = {name for name in never_returned(told) if not name.startswith("__libc_start")}
    assert "exit" in left
    assert left <= {"exit", "__run_exit_handlers", "_exit", "_Exit", "start_thread"}


@pytest.mark.long
@pytest.mark.skipif(not is_own_library(), reason=f"{PYTHON}: Python has no library of its own here")
def test_all_functions_of_python(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command: list[str | Path] = [sys.executable, "-S", "-E", script]
    expected = native(command)
    told = run(command, [counted(f"{PYTHON.name}!*", is_function=one) for one in (False, True)], capfd)
    assert told.output == expected
    assert len(told.refused) <= MAX_REFUSED * told.n_armed, told.refused[:5]
    assert told.n_armed > 15000
    assert sum(told.begun.values()) > 10**6
    # Python returns from all that it has called, its threads' functions among it.
    assert not never_returned(told)


@pytest.mark.long
@pytest.mark.skipif(not CC1.exists(), reason="gcc has no cc1 of its own here")
def test_all_functions_of_a_compiler(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "source.i", tmp_path / "output.s"
    subprocess.run(["gcc", "-E", "-o", source, SOURCES / "probes" / "probed_loading.c"], check=True)
    command: list[str | Path] = [CC1, "-fpreprocessed", "-quiet", "-O2", source, "-o", output]
    native(command)
    expected = output.read_bytes()
    output.unlink()
    told = run(command, [counted("cc1!*", is_function=one) for one in (False, True)], capfd)
    assert output.read_bytes() == expected
    assert told.n_armed > 90_000
    assert len(told.refused) <= MAX_REFUSED * told.n_armed, told.refused[:5]
    assert sum(told.begun.values()) > 10**6
    assert never_returned(told) == {"_start"}


@pytest.mark.long
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
def test_all_functions_of_node(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its threads are ended while they wait: not all calls return."""
    script = tmp_path / "script.js"
    script.write_text(NODE_SCRIPT)
    command: list[str | Path] = [str(shutil.which("node")), script]
    expected = native(command)
    told = run(command, [counted("node!*", is_function=one) for one in (False, True)], capfd)
    assert told.output == expected
    assert told.n_armed > 100_000
    assert len(told.refused) <= MAX_REFUSED * told.n_armed, told.refused[:5]
    assert sum(told.begun.values()) > 10**6
    assert all(told.returned[start] <= n for start, n in told.begun.items())
