"""`clew api` beside the kernel's own events of the same run: each call that is told was made, with these six registers
and this result, in this order; and none is missing, by a native run of the same program."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.api.reading import load_built_in
from tests.e2e import runs
from tests.e2e.kernel_events import KernelCall, Recorder, open_recorder
from tests.programs.build import SOURCES, build_plain

OTHERWISE = {
    "rt_sigaction": "handlers and masks of signals are kept by the runtime, which has handlers of its own",
    "rt_sigprocmask": "as these",
    "sigaltstack": "as these",
    "rt_sigreturn": "as these",
    "clone": "a new thread begins on a stack of the runtime's, which calls for it with arguments of its own",
    "clone3": "as clone",
    "vfork": "as clone",
}
"""What the runtime does in another way than by the same call, and why."""

PYTHON = [sys.executable, "-S", "-E"]
SHELL = """ls /usr | sort | wc; (exit 3); trap true USR1; kill -USR1 $$; sleep 0.01; cat < /dev/null"""
Told = tuple[str, tuple[int, ...], int | None]


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    with open_recorder(tmp_path_factory.mktemp("kernel")) as recorder:
        yield recorder


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A description of all system calls in which each argument is a number."""

    def register(index: int) -> dict[str, Any]:
        return {"Index": index, "Name": f"register{index}", "CType": "unsigned long", "RawType": "hex"}

    calls = [
        {
            "Name": function.name,
            "Number": {"x86_64": number},
            "Filter": "Other",
            "Parameters": [register(index) for index in (*range(6), *([] if function.result is None else [-1]))],
        }
        for number, function in load_built_in().system_calls.items()
    ]
    path = tmp_path_factory.mktemp("raw") / "raw.json"
    path.write_text(json.dumps({"SystemCalls": calls}))
    return path


def words_of(name: str) -> list[str]:
    """The command line of a program."""
    if name == "structures":
        return [str(build_plain(SOURCES / "api" / "structures.c", "-O1", "-w"))]
    if name == "threads":
        return [str(build_plain(SOURCES / "threads_mutex.c", "-O1", "-pthread"))]
    commands = {
        "ls": ["ls", "-l", "/usr"],
        "shell": ["bash", "-c", SHELL],
        "sockets": [*PYTHON, str(SOURCES / "api" / "sockets.py")],
        "http": [*PYTHON, str(SOURCES / "api" / "serving.py")],
    }
    return commands[name]


def run_told(recorder: Recorder, words: list[str], raw: Path, folder: Path) -> dict[int, list[Told]]:
    """What clew tells of each thread of a program while the kernel tells of it, too."""
    out = folder / "told"
    clew = [sys.executable, "-m", "clew", "api", "--json", "--api-file", str(raw), "-o", str(out), "--", *words]
    done = recorder.run([*runs.FIXED_LAYOUT, *clew], runs.environment(), folder)
    assert done.returncode == 0, done.stderr
    told: dict[int, list[tuple[int, Told]]] = defaultdict(list)
    for line in out.read_text().splitlines():
        call = json.loads(line)
        found = re.fullmatch(r"\w+\((.*)\) = .*", call["text"])
        assert found, call
        arguments = tuple(0 if word == "NULL" else int(word, 16) for word in found[1].split(", "))
        # By their ends: one that a signal came in front of began before what the handler calls, and is made after it.
        ended_ns = call["time_ns"] + (call["duration_ns"] or 0)
        told[call["tid"]].append((ended_ns, (call["name"], arguments, call["result"])))
    return {tid: [call for _, call in sorted(calls, key=lambda one: one[0])] for tid, calls in told.items()}


def is_same(told: Told, call: KernelCall, names: dict[int, str]) -> bool:
    """Whether a call that is told is that of the kernel; a result that nobody tells may be any."""
    name, arguments, result = told
    is_one = names.get(call.number) == name and call.arguments == arguments
    return is_one and (result is None or result == call.result)


@pytest.mark.parametrize("name", ["ls", "structures", "sockets", "threads", "shell", "http"])
def test_the_kernel_had_each_call_that_is_told(name: str, recorder: Recorder, raw: Path, tmp_path: Path) -> None:
    told = run_told(recorder, words_of(name), raw, tmp_path)
    kernels = recorder.read()
    names = {number: function.name for number, function in load_built_in().system_calls.items()}
    n_compared: Counter[str] = Counter()
    for tid, calls in told.items():
        # The runtime's own calls are in between.
        rest = iter(kernels[tid])
        for call in calls:
            if call[0] not in OTHERWISE:
                assert any(is_same(call, other, names) for other in rest), (tid, call)
                n_compared[call[0]] += 1
    assert n_compared.total() > 100


@pytest.mark.parametrize("name", ["ls", "structures"])
def test_none_is_missing_and_all_are_what_they_are_natively(
    name: str, recorder: Recorder, raw: Path, tmp_path: Path
) -> None:
    """Where memory lies at the same addresses all arguments are the same."""
    words = words_of(name)
    told = run_told(recorder, words, raw, tmp_path)
    done = recorder.run([*runs.FIXED_LAYOUT, *words], runs.environment(), tmp_path)
    assert done.returncode == 0
    by_number = load_built_in().system_calls
    native = {
        tid: [(by_number[call.number].name, call.arguments, call.result) for call in calls]
        for tid, calls in recorder.read().items()
    }
    first = native[min(native)]
    begun = max(place for place, call in enumerate(first) if call[0] == "execve" and call[2] == 0)
    del first[: begun + 1]
    assert list(comparable(told)) == list(comparable(native))


def comparable(threads: dict[int, list[Told]]) -> Iterator[list[Told]]:
    """Calls of each thread, in the order in which threads began, with what runs have in common."""
    places = {tid: -1000 - place for place, tid in enumerate(sorted(threads))}
    n_arguments = {one.name: len(one.arguments) for one in load_built_in().system_calls.values()}
    for tid in sorted(threads):
        calls = []
        for name, arguments, result in threads[tid]:
            used = tuple(places.get(value, value) for value in arguments[: n_arguments[name]])
            is_clock = name in ("time", "times", "getppid")
            calls.append((name, used, None if is_clock or result is None else places.get(result, result)))
        # Who ends itself by a signal does not come back.
        yield calls[:-1] if calls[-1][0] == "kill" else calls
