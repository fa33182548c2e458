"""How fast events of a program that runs come into arrays of Python: clew's beside frida's Stalker and PyQBDI.

Run as `python -m bench.event_peers [--only NAME...] [--kinds block call,ret ...] [--rounds N] [--peers NAME...]`;
`--peers none` leaves the peers out. Each round runs a program under clew and under each peer in turn, so that whatever
else the machine does hits all alike. Wall-clock time, from when following starts to the last event taken: with clew at
the program's entry, where the dynamic linker is done, with the peers at main(). Whoever is not done by `--limit` is cut
off, and what was taken until then counts. The rate is the median of the rounds.

Whether a peer's events are right is judged by how many are the program's own (bench/taken.py): first in a small run of
the program, which all can finish, then in each round that was not cut off. That has to be clew's number, but for a
handful around main(), or for a hundredth where clew's own runs differ, as addresses change what interpreters do. Where
the program's text tells how many calls there are, clew's number has to be that one. Behind a cross is the share that
came; what a peer does not follow is missing, too. Where there is next to nothing to judge by, nothing is said.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from bench.inputs import make_sql
from bench.peers.event_takers import KINDS as PEER_KINDS
from bench.peers.event_takers import find_peers, take_with_peer
from bench.taken import Taken, name_own_code, take_with_clew
from bench.workloads import PROGRAMS, Workload, load_workloads

KINDS = ("block", "call,ret", "exec", "memory")
USUAL = ("fib", "exceptions", "threads", "gzip", "sqlite3", "py_tasks")

_HANDFUL = 100
_SMALL_LIMIT_SECONDS = 30.0
_SMALL_FIB = 24
_SMALL_EXCEPTIONS = 1000


def _count_fib_calls(number: int) -> int:
    """How often fib calls itself, and is called once."""
    before, calls = 1, 1
    for _ in range(number - 1):
        before, calls = calls, before + calls + 1
    return calls


# The last argument with which a program is small.
_SMALL: dict[str, Callable[[], str]] = {
    "fib": lambda: str(_SMALL_FIB),
    "exceptions": lambda: str(_SMALL_EXCEPTIONS),
    "threads": lambda: "200",
    "gzip": lambda: str(PROGRAMS / "tasks.py"),
    "sqlite3": lambda: f".read {make_sql(100)}",
    "py_tasks": lambda: "20",
}
# Own calls of small programs. An exception takes two functions of the program, and four of the library, to which jumps
# in the program lead.
_KNOWN_CALLS = {"fib": _count_fib_calls(_SMALL_FIB), "exceptions": 6 * _SMALL_EXCEPTIONS}

Take = Callable[[Sequence[str], str, str, float], Taken]


@dataclass
class _Follower:
    """clew or a peer, with what it took of a program's events of a kind: of the small one, and in each round."""

    name: str
    take: Take
    small: list[Taken] = field(default_factory=list)
    rounds: list[Taken] = field(default_factory=list)

    @property
    def failure(self) -> str:
        return next((taken.failure for taken in [*self.small, *self.rounds] if taken.failure), "")


def measure(workload: Workload, kinds: str, peers: Sequence[str], rounds: int, limit: float) -> list[_Follower]:
    """Run a program under clew and each peer, alternately; clew is the first of those returned."""
    code = name_own_code(workload)
    clew = _Follower("clew", take_with_clew)
    followers = [clew, *(_Follower(peer, partial(take_with_peer, peer)) for peer in peers if kinds in PEER_KINDS[peer])]
    make_argument = _SMALL.get(workload.name)
    if make_argument is not None:
        small = (*workload.command[:-1], make_argument())
        for follower in (*followers, clew):
            follower.small.append(follower.take(small, kinds, code, _SMALL_LIMIT_SECONDS))
    for _ in range(rounds):
        for follower in followers:
            if follower is clew or not follower.failure:
                follower.rounds.append(follower.take(workload.command, kinds, code, limit))
    return followers


def judge_peer(peer: _Follower, clew: _Follower) -> str:
    """ "right", "-" where that cannot be told, or what is wrong."""
    if peer.failure:
        return peer.failure
    verdicts = [_compare(peer.small, clew.small), _compare(peer.rounds, clew.rounds)]
    wrong = [verdict for verdict in verdicts if verdict not in ("right", "-")]
    return wrong[0] if wrong else "right" if "right" in verdicts else "-"


def judge_clew(clew: _Follower, name: str, kinds: str) -> str:
    """The same of clew, by what the program's text says."""
    known = _KNOWN_CALLS.get(name)
    if clew.failure:
        return clew.failure
    if known is None or "call" not in kinds:
        return "-"
    wrong = [taken.n_own for taken in clew.small if not 0 <= taken.n_own - known <= _HANDFUL]
    return f"{wrong[0]:,} of {known:,}" if wrong else "right"


def _compare(found: Sequence[Taken], of_clew: Sequence[Taken]) -> str:
    """Whether a peer took as many as clew, but for a handful; or a hundredth where clew's own runs differ."""
    trusted = [taken.n_own for taken in of_clew if not taken.was_cut and not taken.failure]
    if not trusted or max(trusted) < 10 * _HANDFUL:
        return "-"
    tolerance = _HANDFUL if max(trusted) == min(trusted) else max(trusted) // 100
    whole = [taken.n_own for taken in found if not taken.was_cut]
    for n_own in whole:
        if not min(trusted) - tolerance <= n_own <= max(trusted) + tolerance:
            return f"{100 * n_own / trusted[0]:.4g} %"
    return "right" if whole else "-"


def describe(follower: _Follower, verdict: str) -> str:
    """A cell of the table: the median rate, or why there is none."""
    marks = {"right": " ✓", "-": ""}
    mark = marks.get(verdict, f" ✗ {verdict}")
    rates = [taken.rate for taken in follower.rounds if not taken.failure]
    if not rates:
        return mark.strip() or "-"
    was_cut = any(taken.was_cut for taken in follower.rounds)
    return f"{statistics.median(rates):.2f}{' cut' if was_cut else ''}{mark}"


def show(workload: Workload, kinds: str, peers: Sequence[str], rounds: int, limit: float) -> list[str]:
    """Measure, print a line for clew and for each peer, and return a row of the table."""
    followers = measure(workload, kinds, peers, rounds, limit)
    clew = followers[0]
    cells = dict.fromkeys(("clew", *peers), "")
    for follower in followers:
        is_clew = follower is clew
        verdict = judge_clew(clew, workload.name, kinds) if is_clew else judge_peer(follower, clew)
        cells[follower.name] = describe(follower, verdict)
        last = follower.rounds[-1] if follower.rounds else Taken()
        told = f"{last.n_events:14,} events {last.seconds:6.2f} s, M/s: {cells[follower.name]}"
        print(f"{workload.name:12} {kinds:9} {follower.name:6} {told}", flush=True)
    return [workload.name, kinds, *cells.values()]


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=USUAL, metavar="NAME", help="names of workloads")
    parser.add_argument("--kinds", nargs="*", default=KINDS, metavar="KINDS", help="of events, as `call,ret`")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default=",".join(PEER_KINDS), help=f"of {','.join(PEER_KINDS)}; or none")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds after which a run is cut off")
    chosen = parser.parse_args(arguments)
    peers = [] if chosen.peers == "none" else chosen.peers.split(",")
    try:
        versions = find_peers(peers)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    rows = [["program", "events", "clew", *(f"{name} {version}" for name, version in versions.items())]]
    for workload in load_workloads(["short"], list(chosen.only)):
        rows += [show(workload, kinds, peers, chosen.rounds, chosen.limit) for kinds in chosen.kinds]
    rows.insert(1, ["---"] * len(rows[0]))
    print("\nM events/s:\n", *(f"| {' | '.join(row)} |" for row in rows), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
