"""What a hit of a probe costs the thread: nanoseconds of its processor time, natively subtracted, beside other tracers.

Run as `python -m bench.probes [--rounds N] [--bursts N] [--only NAME...]`. Each round runs the program once in each
way, so that whatever else the machine does hits all alike; shown is the median of the rounds, each of which is the
median of bursts. Between bursts the program sleeps, so that what was taken can be read; what was lost is counted and
shown. Peers that are not there, or that are not allowed to work here, are left out, and that is said.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from collections.abc import Callable, Iterator

from bench.machine import describe_machine
from bench.peers.probes import peer_ways
from bench.probe_places import PlacedProbes
from bench.probed_hits import FUNCTION, Attach, Program, Way, run
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ContextField, ProbeSpec

REGISTERS = tuple(ContextField(name, f"${name}") for name in ("rdi", "rsi", "rdx", "rcx"))
TEXT = ContextField("text", "str($rdx, 32)")


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


def clew_ways() -> list[Way]:
    def point(fields: tuple[ContextField, ...] = (), condition: str | None = None) -> Attach:
        return with_probe(ProbeSpec("point", FUNCTION, fields=fields, condition=condition))

    nested = with_probe(ProbeSpec("point", "nested", fields=(ContextField("backtrace", backtrace=8),)))
    return [
        Way("clew, record with time stamp", point(), 15),
        Way("clew, four registers", point(fields=REGISTERS)),
        Way("clew, filter that rejects", point(condition="$rdi == -5"), 2),
        Way("clew, entry and return", with_probe(ProbeSpec("call", FUNCTION, is_function=True)), 30),
        Way("clew, histogram of durations", with_histogram, 30),
        Way("clew, registers and string, page known", point(fields=(*REGISTERS, TEXT)), 60),
        Way("clew, registers and string, other page", point(fields=(*REGISTERS, TEXT)), 300, text="heap"),
        Way("clew, registers and string, all missing", point(fields=(*REGISTERS, ContextField("text", "str(8, 32)")))),
        Way("clew, eight frames, page known", nested, 400, called="nested", baseline="native, nested"),
        Way("clew, eight frames, over two pages", nested, 400, called="nested_over", baseline="native, nested"),
        Way("clew, trap", with_trap, 2500, called="one_byte", baseline="native, one byte"),
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.probes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bursts", type=int, default=40)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args(arguments)
    ways = [
        Way("native"),
        Way("native, one byte", called="one_byte"),
        Way("native, nested", called="nested"),
        *clew_ways(),
        *peer_ways(print),
    ]
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
