"""What a hit of a probe costs the thread: nanoseconds of its processor time, natively subtracted, beside other tracers.

Run as `python -m bench.probes [--rounds N] [--bursts N] [--only NAME...]`. Each round runs the program once in each
way, so that whatever else the machine does hits all alike; shown is the median of the rounds, each of which is the
median of bursts. Between bursts the program sleeps, so that what was taken can be read; what was lost is counted and
shown. Peers that are not there, or that are not allowed to work here, are left out, and that is said.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.machine import describe_machine
from bench.probe_places import PlacedProbes
from bench.workloads import compile_program
from clew.address import Pid
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ContextField, ProbeSpec

N_CALLS = 4000
FUNCTION = "short_function"
REGISTERS = tuple(ContextField(name, f"${name}") for name in ("rdi", "rsi", "rdx", "rcx"))
TEXT = ContextField("text", "str($rdx, 32)")
TRACING = Path("/sys/kernel/tracing")
GROUP = "clew_bench"
PEER_SECONDS = 60.0

Attach = Callable[["Program"], contextlib.AbstractContextManager[Callable[[], int]]]
"""Has a tracer attached to the program; what it gives reads what has come, and says how much was lost since."""


@dataclass
class Way:
    """A way to run the program: how it is traced, and what it may cost."""

    name: str
    attach: Attach | None = None
    bar_ns: float | None = None
    text: str = "stack"
    called: str = FUNCTION
    prefix: tuple[str, ...] = ()
    """The command that it runs under."""
    baseline: str = "native"
    times: list[float] = field(default_factory=list)
    lost: int = 0
    failure: str = ""


class Program:
    """The program, which waits to begin."""

    def __init__(self, way: Way, bursts: int) -> None:
        self.path = compile_program("probe_hits")
        words = [*way.prefix, self.path, str(bursts), str(N_CALLS), way.text, way.called]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        if self.stdout.readline() != "ready\n":
            raise RuntimeError("the program did not start")
        self.pid = Pid(self.process.pid)

    def go_on(self) -> None:
        self.stdin.write("\n")
        self.stdin.flush()

    def end(self) -> None:
        """Let it end, or end it."""
        with contextlib.suppress(OSError):
            self.go_on()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def with_probe(spec: ProbeSpec) -> Attach:
    """Probed by clew."""

    @contextlib.contextmanager
    def attach(program: Program) -> Iterator[Callable[[], int]]:
        session = ProbeSession([spec])
        try:
            target = session.attach(program.pid)

            def read() -> int:
                target.rings.drain(session.sink)
                return target.rings.take_lost()

            yield read
        finally:
            session.close()

    return attach


def with_histogram(program: Program) -> contextlib.AbstractContextManager[Callable[[], int]]:
    """clew adds up how long calls take, and writes down none."""
    return PlacedProbes.histogram(program.pid, program.path, FUNCTION)


def with_trap(program: Program) -> contextlib.AbstractContextManager[Callable[[], int]]:
    """A place that clew can only trap at."""
    return PlacedProbes.trapped(program.pid, program.path, "one_byte")


def with_uprobe(kind: str, fetched: str = "", accepted: str = "") -> Attach:
    """Probed by the kernel, whose ring is emptied."""

    @contextlib.contextmanager
    def attach(program: Program) -> Iterator[Callable[[], int]]:
        symbols = subprocess.run(["nm", program.path], capture_output=True, text=True, check=True).stdout
        address = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(f" {FUNCTION}"))
        # Of a program that is linked to one place: its first segment is the file's beginning.
        offset = address - 0x400000
        event = TRACING / "events" / GROUP / "hit"
        _write(TRACING / "uprobe_events", f"{kind}:{GROUP}/hit {program.path}:{offset:#x} {fetched}\n")
        try:
            if accepted:
                _write(event / "filter", accepted)
            _write(event / "enable", "1")
            with (TRACING / "trace_pipe").open("rb", buffering=0) as pipe:
                os.set_blocking(pipe.fileno(), False)

                def read() -> int:
                    with contextlib.suppress(OSError):
                        while pipe.read(1 << 20):
                            pass
                    return 0

                yield read
        finally:
            _write(event / "enable", "0")
            _write(TRACING / "uprobe_events", f"-:{GROUP}/hit\n")

    return attach


def with_bpftrace(script: str) -> Attach:
    """Probed by a program that the kernel runs."""

    @contextlib.contextmanager
    def attach(program: Program) -> Iterator[Callable[[], int]]:
        text = f'BEGIN {{ printf("ready\\n"); }} uprobe:{program.path}:{FUNCTION} {{ {script} }}'
        words = ["bpftrace", "-p", str(program.pid), "-e", text]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tracer:
            assert tracer.stdout is not None
            said = [tracer.stdout.readline() for _ in range(2)]
            try:
                if "ready\n" not in said:
                    raise RuntimeError(" ".join(said).strip())
                yield lambda: 0
            finally:
                tracer.kill()

    return attach


def _write(path: Path, text: str) -> None:
    """Write to a file of the kernel's, at whose end nobody can seek."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def clew_ways() -> list[Way]:
    def point(fields: tuple[ContextField, ...] = (), condition: str | None = None) -> Attach:
        return with_probe(ProbeSpec("point", FUNCTION, fields=fields, condition=condition))

    return [
        Way("clew, record with time stamp", point(), 15),
        Way("clew, four registers", point(fields=REGISTERS)),
        Way("clew, filter that rejects", point(condition="$rdi == -5"), 2),
        Way("clew, entry and return", with_probe(ProbeSpec("call", FUNCTION, is_function=True)), 30),
        Way("clew, histogram of durations", with_histogram, 30),
        Way("clew, registers and string, page known", point(fields=(*REGISTERS, TEXT)), 60),
        Way("clew, registers and string, other page", point(fields=(*REGISTERS, TEXT)), 300, text="heap"),
        Way("clew, registers and string, all missing", point(fields=(*REGISTERS, ContextField("text", "str(8, 32)")))),
        Way("clew, trap", with_trap, 2500, called="one_byte", baseline="native, one byte"),
    ]


def peer_ways(say: Callable[[str], None]) -> list[Way]:
    ways = []
    if (TRACING / "uprobe_events").exists():
        ways += [
            Way("uprobe", with_uprobe("p")),
            Way("uprobe, filter that rejects", with_uprobe("p", "a=%di:s64", "a == -5")),
            Way("uprobe, registers and string", with_uprobe("p", "a=%di b=%si c=%dx d=%cx s=+0(%dx):string")),
            Way("uretprobe", with_uprobe("r", "$retval")),
        ]
    else:
        say("uprobes are left out: tracefs is not mounted at /sys/kernel/tracing")
    if shutil.which("bpftrace"):
        ways.append(Way("bpftrace, count", with_bpftrace("@ = count();")))
    else:
        say("bpftrace is left out: it is not installed")
    if shutil.which("uftrace"):
        folder = Path(tempfile.mkdtemp(prefix="clew-bench-"))
        prefix = ("uftrace", "record", "-P", FUNCTION, "-d", str(folder / "data"), "--no-event", "--no-sched")
        ways.append(Way("uftrace, dynamic, entry and return", prefix=prefix))
    else:
        say("uftrace is left out: it is not installed")
    say("frida and LTTng-UST are left out: they need a program of their own in, or around, the one that is measured")
    return ways


def run(way: Way, bursts: int) -> None:
    """One round of a way."""
    program = Program(way, bursts)
    try:
        with way.attach(program) if way.attach else contextlib.nullcontext(lambda: 0) as read:
            program.go_on()
            deadline = time.monotonic() + PEER_SECONDS
            while not select.select([program.stdout], [], [], 0.0005)[0]:
                way.lost += read()
                if time.monotonic() > deadline:
                    raise RuntimeError("it took too long")
            way.times.append(float(program.stdout.readline().split()[0]))
            way.lost += read()
    finally:
        program.end()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.probes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bursts", type=int, default=40)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args(arguments)
    ways = [Way("native"), Way("native, one byte", called="one_byte"), *clew_ways(), *peer_ways(print)]
    ways = [way for way in ways if way.name.startswith("native") or not options.only or way.name in options.only]
    for _ in range(options.rounds):
        for way in ways:
            if not way.failure:
                try:
                    run(way, options.bursts)
                except (OSError, RuntimeError, ValueError, IndexError) as error:
                    way.failure = (str(error) or type(error).__name__).splitlines()[0]
    machine = describe_machine([])
    print(f"{machine['processor']}, {machine['processors']} processors, Linux {machine['kernel']}")
    medians = {way.name: statistics.median(way.times) for way in ways if way.times}
    print(f"{'ns a hit, natively subtracted':44} {'median':>9} {'least':>9} {'most':>9} {'bar':>6} {'lost':>7}")
    missed = 0
    for way in ways:
        if way.failure or not way.times:
            print(f"{way.name:44} failed: {way.failure}")
            continue
        base = 0.0 if way.name.startswith("native") else medians[way.baseline]
        own = [value - base for value in way.times]
        median = statistics.median(own)
        is_missed = way.bar_ns is not None and median > way.bar_ns
        missed += is_missed
        bar = "" if way.bar_ns is None else f"{way.bar_ns:g}"
        mark = " missed" if is_missed else ""
        print(f"{way.name:44} {median:9.2f} {min(own):9.2f} {max(own):9.2f} {bar:>6} {way.lost:7}{mark}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
