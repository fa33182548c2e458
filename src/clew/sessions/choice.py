"""Which threads of a session are followed.

Runs in the controller, in any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clew.address import Pid, Tid
from clew.dataclass import dataclass, replace
from clew.sessions.threads import read_name

__all__ = ["EVERYBODY", "Choice", "FollowedThread", "Some", "Threads", "choose"]


@dataclass(frozen=True)
class FollowedThread:
    """A thread that may be followed: the process (pid), its number (tid), and what the kernel calls it."""

    pid: int
    tid: int
    name: str


Some = int | Iterable[int] | Callable[[FollowedThread], bool]
Threads = Some | None
IsChosen = Callable[[int, int, str], bool]
"""By process, number, and the name that it told when it ended; empty as long as it runs."""


@dataclass(frozen=True)
class Choice:
    """Those that are `chosen`, None: all, but for who is left out.

    `is_by_name`: one that is called otherwise may be one of them. `follows_new`: a new one is, until that was asked.
    """

    chosen: IsChosen | None
    is_by_name: bool
    follows_new: bool
    left_out: tuple[IsChosen, ...] = ()
    left_out_numbers: frozenset[int] = frozenset()

    def includes(self, pid: int, tid: int, name: str) -> bool:
        """Whether a thread is followed."""
        if tid in self.left_out_numbers or not (self.chosen is None or self.chosen(pid, tid, name)):
            return False
        return not any(is_left_out(pid, tid, name) for is_left_out in self.left_out)

    def without(self, threads: Some) -> Choice:
        """The same but for these."""
        if callable(threads):
            return replace(self, left_out=(*self.left_out, _ask(threads)), is_by_name=True)
        return replace(self, left_out_numbers=self.left_out_numbers | _numbers(threads))


EVERYBODY = Choice(None, is_by_name=False, follows_new=True)


def choose(threads: Threads) -> Choice:
    """Whom of all threads `threads` means."""
    if threads is None:
        return EVERYBODY
    if callable(threads):
        return Choice(_ask(threads), is_by_name=True, follows_new=True)
    numbers = _numbers(threads)
    return Choice(lambda _pid, tid, _name: tid in numbers, is_by_name=False, follows_new=False)


def _numbers(threads: int | Iterable[int]) -> frozenset[int]:
    return frozenset({threads} if isinstance(threads, int) else threads)


def _ask(ask: Callable[[FollowedThread], bool]) -> IsChosen:
    """Asks once for each name that a thread has."""
    answers: dict[tuple[int, int], tuple[str, bool]] = {}

    def is_chosen(pid: int, tid: int, told_name: str) -> bool:
        known = answers.get((pid, tid))
        name = told_name or read_name(Pid(pid), Tid(tid)) or (known[0] if known else "")
        if known is None or known[0] != name:
            known = answers[pid, tid] = name, bool(ask(FollowedThread(pid, tid, name)))
        return known[1]

    return is_chosen
