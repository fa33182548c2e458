"""What a running recording can be told: to hold its processes, step them, leave or end them, record something else.

Runs in the controller, in its one thread. Each command is made of steps, between which the rings are emptied.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from clew.address import Pid, RemoteAddress, Tid
from clew.errors import ControlError
from clew.process.identity import iter_threads
from clew.protocol._constants import PATH_UNLIMITED, Mode
from clew.recording.following.followed import FollowedProcess
from clew.recording.following.holding import Holding
from clew.recording.following.processes import Processes
from clew.recording.options.filters import EVERYTHING, Filter, parse_filter

__all__ = ["COMMANDS", "Control"]

SETTLE_SECONDS: Final = 3.0
"""How long threads may take to come to where they stop: one that has no processor, or runs in the kernel."""
DETACH_SECONDS: Final = 10.0
MAX_ROUNDS: Final = 8
"""Where ever more processes come, some have to be left out."""

Answer = dict[str, Any]
Steps = Iterator[Answer | None]


class Control:
    """Of the recording of `processes`. `end_pause` lets a first process go that waits at its start."""

    def __init__(self, processes: Processes, describe: Callable[[], Answer], end_pause: Callable[[], None]):
        self.processes = processes
        self._describe = describe
        self._end_pause = end_pause

    def do(self, question: dict[str, Any]) -> Steps:
        """Do what is asked: `command`, one of COMMANDS, its arguments, and `pid`, 0 for the first process.

        Raises ControlError, and other ClewErrors.
        """
        name = question.get("command")
        make = COMMANDS.get(name) if isinstance(name, str) else None
        if make is None:
            raise ControlError(f"no such command: {name!r}; there is {', '.join(COMMANDS)}")
        yield from make(self, question)

    def status(self, _question: dict[str, Any]) -> Steps:
        """How everything stands."""
        yield self._describe() | {"processes": [self._tell(followed) for followed in self.processes.live]}

    def pause(self, question: dict[str, Any]) -> Steps:
        """Have all threads of a process stop."""
        yield from self._hold(self.find(question))
        yield from self.status(question)

    def go_on(self, question: dict[str, Any]) -> Steps:
        """Let a process go on that is stopped, or waits at its start."""
        self._end_pause()
        holding = self.processes.holdings.of(self.find(question))
        holding.go_on()
        yield None
        while holding.has_replies:
            yield None
        yield from self.status(question)

    def step(self, question: dict[str, Any]) -> Steps:
        """Have a thread that is stopped execute one instruction."""
        yield from self._step(question, Holding.step)

    def step_over(self, question: dict[str, Any]) -> Steps:
        """As `step`, but what it calls runs to its end."""
        yield from self._step(question, Holding.step_over)

    def set_breakpoint(self, question: dict[str, Any]) -> Steps:
        """Have threads stop that come to an address."""
        yield from self._change_breakpoints(question, Holding.add_breakpoint)

    def delete_breakpoint(self, question: dict[str, Any]) -> Steps:
        """Take a breakpoint back."""
        yield from self._change_breakpoints(question, Holding.delete_breakpoint)

    def detach(self, question: dict[str, Any]) -> Steps:
        """Leave a process, which goes on natively."""
        followed = self.find(question)
        self._end_pause()
        self.processes.holdings.of(followed).release()
        yield None
        deadline = time.monotonic() + DETACH_SECONDS
        seconds = self.processes.detach(followed, DETACH_SECONDS, lambda: time.monotonic() > deadline)
        yield {"pid": followed.pid, "detached_seconds": seconds}

    def kill(self, question: dict[str, Any]) -> Steps:
        """End a process."""
        followed = self.find(question)
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(followed.pidfd, signal.SIGKILL)
        yield {"pid": followed.pid}

    def include(self, question: dict[str, Any]) -> Steps:
        """Record what a filter holds from now on, too."""
        yield from self._change_filters([(_what(question), True)])

    def exclude(self, question: dict[str, Any]) -> Steps:
        """Record what a filter holds no longer."""
        yield from self._change_filters([(_what(question), False)])

    def only(self, question: dict[str, Any]) -> Steps:
        """Record nothing from now on but what a filter holds."""
        yield from self._change_filters([(EVERYTHING, False), (_what(question), True)])

    def set_budget(self, question: dict[str, Any]) -> Steps:
        """Record so much of the order from now on: bytes a second, -1 all of it."""
        if self.processes.mode != Mode.FULL:
            name = self.processes.mode.name.lower()
            raise ControlError(f"mode {name} records no order: tell it `mode auto` or `mode full` first")
        self.processes.set_budget(_budget_of(question))
        yield from self.status(question)

    def set_mode(self, question: dict[str, Any]) -> Steps:
        """Record from now on how often all runs (`counts`), or the order as well (`full`), as much as `set_budget`."""
        modes = {"counts": Mode.COUNTS, "full": Mode.FULL}
        mode, before = modes.get(str(question.get("mode"))), self.processes.mode
        accesses = bool(question.get("accesses", False)) and mode == Mode.FULL
        if mode is None:
            raise ControlError(f"mode {question.get('mode')!r}: while a program runs there is counts, full and auto")
        if before not in modes.values():
            raise ControlError(f"mode {before.name.lower()} stays; start with --mode counts to have the order later")
        # All of it where nothing is said.
        budget = _budget_of({"bytes": -1} | question)

        def change() -> None:
            # Before anybody goes on: the first that is recorded is already of the new budget.
            self.processes.set_budget(budget)
            self.processes.set_mode(mode, tells_accesses=accesses)

        if (mode, accesses) != (before, self.processes.tells_accesses):
            yield from self.changing(lambda: self.processes.live, change)
        else:
            self.processes.set_budget(budget)
        yield from self.status(question)

    def find(self, question: dict[str, Any]) -> FollowedProcess:
        """The process that is meant by `pid`. Raises ControlError."""
        pid = question.get("pid", 0)
        live = [followed for followed in self.processes.live if not followed.has_ended]
        if not live:
            raise ControlError("none of the processes that were recorded runs any more")
        if pid in (0, os.getpid()):
            return live[0]
        for followed in live:
            if followed.pid == pid:
                return followed
        raise ControlError(f"process {pid}: not recorded here; there is {', '.join(str(one.pid) for one in live)}")

    def _hold(self, followed: FollowedProcess) -> Steps:
        """Have the threads stop, and wait until they do; one that waits in a system call is let wait."""
        holding = self.processes.holdings.of(followed)
        if not holding.is_held:
            holding.hold()
        # A first process that waits at its start stops in front of its first instruction.
        self._end_pause()
        yield from self._settle(holding)

    def _settle(self, holding: Holding) -> Steps:
        deadline = time.monotonic() + SETTLE_SECONDS
        yield None
        while not holding.is_settled and time.monotonic() < deadline and holding.followed in self.processes.live:
            yield None

    def _step(self, question: dict[str, Any], make: Callable[[Holding, Tid], None]) -> Steps:
        followed = self.find(question)
        self.refuse_in_region("step")
        if self._describe()["is_paused"]:
            raise ControlError(
                f"process {followed.pid}: waits in front of its first instruction: pause it, and step then"
            )
        holding = self.processes.holdings.of(followed)
        tid = question.get("tid") or holding.chosen
        if not isinstance(tid, int):
            what = "all its threads wait in system calls" if holding.is_held else "it runs: pause it first"
            raise ControlError(f"process {followed.pid}: {what}")
        make(holding, Tid(tid))
        yield from self._settle(holding)
        yield from self.status(question)

    def _change_breakpoints(self, question: dict[str, Any], change: Callable[[Holding, RemoteAddress], None]) -> Steps:
        followed = self.find(question)
        self.refuse_in_region("break")
        address = question.get("address")
        if not isinstance(address, int) or not 0 < address < 1 << 47:
            raise ControlError(f"{address!r}: no address of code")
        yield from self.changing(
            lambda: [one for one in self.processes.live if one is followed],
            lambda: change(self.processes.holdings.of(followed), RemoteAddress(address)),
        )
        yield from self.status(question)

    def _change_filters(self, changes: list[tuple[Filter, bool]]) -> Steps:
        if self.processes.mode == Mode.REGION:
            raise ControlError("mode region: what is recorded is chosen at the start")
        n_places = 0

        def change() -> None:
            nonlocal n_places
            for item, is_included in changes:
                n_places = self.processes.add_filter(item, is_included)

        yield from self.changing(lambda: self.processes.live, change)
        yield {"places": n_places}

    def changing(self, find: Callable[[], list[FollowedProcess]], change: Callable[[], None]) -> Steps:
        """Make a change while all threads of those that `find` finds are stopped; those that were not held before go on
        afterwards. Raises ControlError."""
        held: list[Holding] = []
        try:
            # Some come while others are stopped.
            for _ in range(MAX_ROUNDS):
                new = [self.processes.holdings.of(followed) for followed in find()]
                new = [holding for holding in new if not holding.is_held]
                if not new:
                    break
                for holding in new:
                    # Others end while one is stopped.
                    if holding.followed in self.processes.live:
                        held.append(holding)
                        holding.hold()
                for holding in new:
                    yield from self._settle(holding)
            if not find():
                raise ControlError("the process has ended meanwhile")
            change()
        finally:
            for holding in held:
                # Unless it ended, or a thread came to a breakpoint, meanwhile.
                if holding.followed in self.processes.live and not holding.has_news:
                    holding.go_on()

    def refuse_in_region(self, what: str) -> None:
        """Raises ControlError in mode `region`, which has no such thing."""
        if self.processes.mode == Mode.REGION:
            raise ControlError(f"mode region has tags of whole blocks: no {what} there")

    def _tell(self, followed: FollowedProcess) -> Answer:
        holding = self.processes.holdings.of(followed)
        return {
            "pid": followed.pid,
            "parent_pid": followed.who.parent_pid,
            "executable": followed.who.executable,
            "architecture": holding.processor.architecture.name,
            "is_held": holding.is_held,
            "breakpoints": list(holding.breakpoints),
            "threads": [
                {
                    "tid": thread.tid,
                    "reason": thread.reason.name.lower(),
                    "registers": thread.by_name,
                }
                for thread in holding.stopped.values()
            ],
            "elsewhere": _find_tasks(Pid(followed.memory_pid), holding),
        }


def _what(question: dict[str, Any]) -> Filter:
    """The filter that is meant. Raises FilterError."""
    return parse_filter(str(question.get("what", "")))


def _budget_of(question: dict[str, Any]) -> int:
    """StatusPage.budget that is meant. Raises ControlError."""
    budget = question.get("bytes")
    if not isinstance(budget, int) or not -1 <= budget < PATH_UNLIMITED:
        raise ControlError(f"budget {budget!r}: not a number of bytes a second")
    return PATH_UNLIMITED if budget < 0 else budget


def _find_tasks(pid: Pid, holding: Holding) -> list[Answer]:
    """The threads that are not stopped: whether each runs, and the system call that it is in, if any."""
    found = []
    with contextlib.suppress(OSError):
        for task in iter_threads(pid):
            tid = holding.followed.number_of(task)
            if tid in holding.stopped:
                continue
            found.append({"tid": tid, "system_call": holding.calls.find(task)})
    return found


COMMANDS: Final[dict[str, Callable[[Control, dict[str, Any]], Steps]]] = {
    "status": Control.status,
    "pause": Control.pause,
    "continue": Control.go_on,
    "step": Control.step,
    "next": Control.step_over,
    "step-over": Control.step_over,
    "break": Control.set_breakpoint,
    "delete": Control.delete_breakpoint,
    "include": Control.include,
    "exclude": Control.exclude,
    "only": Control.only,
    "budget": Control.set_budget,
    "mode": Control.set_mode,
    "detach": Control.detach,
    "kill": Control.kill,
}
"""The commands by their names."""
