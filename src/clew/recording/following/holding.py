"""Threads of one followed process that are stopped: held, stepped, or come to a breakpoint.

Runs in the controller, in the recording's thread; what concerns who stops at captures also in the thread that waits
for those (clew.sessions.visit_lane). The threads wait in the runtime and ask how to go on (RequestKind.HOLD); no
tracer is attached. What they tell of themselves is the target's word, and is shown, never believed: addresses are only
ever given back to it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from clew.address import RemoteAddress, Tid
from clew.dataclass import replace
from clew.errors import ControlError
from clew.process.identity import iter_threads
from clew.protocol._constants import MAX_BREAKPOINTS, CaptureAction, HoldReason, HoldReply, RequestKind
from clew.recording.following.held_calls import HeldCalls
from clew.recording.following.own_calls import Over, OwnCall, find_return_of_call
from clew.recording.following.stopped_thread import StoppedThread
from clew.recording.following.visited_process import VisitedProcess
from clew.recording.following.visits import BlockQuestion

if TYPE_CHECKING:
    from clew.recording.drain.request import Request
    from clew.recording.following.followed import FollowedProcess

__all__ = ["Holding"]


_WORD_MASK: Final = (1 << 64) - 1

_VISITS: Final = frozenset((HoldReason.CAPTURE, HoldReason.BLOCK))
"""Why a thread stops that waits alone."""


class Holding(VisitedProcess):
    """Of the process `followed`. `bring_in` makes its threads come to the dispatcher; it raises TargetError."""

    def __init__(self, followed: FollowedProcess, bring_in: Callable[[], object]) -> None:
        super().__init__(followed)
        self.bring_in = bring_in
        self.is_held = False
        """Threads that come to the dispatcher are to stop."""
        self.stopped: dict[Tid, StoppedThread] = {}
        self.breakpoints: list[RemoteAddress] = []
        """Those that were asked for, in the order in which they were."""
        self._over: Over | OwnCall | None = None
        self._replies: dict[Tid, HoldReply] = {}
        self._wants_all = False
        self._moved: Tid | None = None
        self._slots: dict[Tid, int] = {}
        """By thread that is, or was, stopped."""
        self._changed: set[Tid] = set()
        """Stopped threads whose registers are others than those that they showed."""

    def answer(self, request: Request) -> int | None:
        """What a stopped thread is told; None: later."""
        tid = Tid(request.tid)
        reply = self._replies.pop(tid, None)
        if reply is not None:
            return reply
        drain = self.followed.drain
        if tid in self.stopped or self.visits.is_waiting(tid) or drain is None:
            return None
        reason = HoldReason.ASKED
        with contextlib.suppress(ValueError):
            reason = HoldReason(request.arguments[0])
        if reason in _VISITS:
            # Who hears of it may be on the way to it.
            return None if self.visits.is_heard else self._meet(request)
        thread = self._read_thread(request, reason)
        if reason == HoldReason.ASKED and not self.is_held:
            # It is as it was told, unless the program wrote over it.
            self.followed.shared.set_status_ticket("hold_ticket", 0)
            return HoldReply.GO_ON
        if reason == HoldReason.BREAKPOINT and thread.pc not in self.breakpoints:
            if self._over is None or not self._over.ends_with(thread):
                return HoldReply.GO_ON
            self._forget_over()
            thread = replace(thread, reason=HoldReason.STEPPED)
        self.stopped[tid] = thread
        self._slots[tid] = request.slot
        if thread.reason == HoldReason.BREAKPOINT:
            self._moved = tid
        if reason != HoldReason.ASKED and not self.is_held:
            # One is stopped, so all are to be. Not here, in the middle of emptying the rings.
            self._wants_all = True
        return None

    def meet_visitors(self) -> None:
        """Tell of the threads that have come to places: by who hears of them, in a thread of its own."""
        drain = self.followed.drain
        for request in () if drain is None else drain.find_requests(RequestKind.HOLD):
            assert drain is not None
            if request.arguments[0] not in _VISITS or self.visits.is_waiting(Tid(request.tid)):
                continue
            reply = self._meet(request)
            if reply is not None:
                drain.reply(request.slot, reply)

    def _meet(self, request: Request) -> HoldReply | None:
        if request.arguments[0] == HoldReason.BLOCK:
            return self.visits.ask(self, request.slot, BlockQuestion(Tid(request.tid), *request.arguments[1:4]))
        thread, slot = self._read_thread(request, HoldReason.CAPTURE), request.slot
        is_place = thread.pc in self.visits.on_visit
        return self.visits.meet(self.followed, thread, slot) if is_place else HoldReply.GO_ON

    def be_heard(self, hear: Callable[[Holding], bool]) -> None:
        """From now on who comes to a place is waited for by somebody else, if that can be."""
        self.visits.hear = hear
        if not self.visits.is_heard and hear(self):
            self.visits.is_heard = True
            self.followed.shared.set_status_ticket("hears_visits", 1)

    def be_unheard(self) -> None:
        """The recording's own thread waits for them again, and meets those who wait now when it looks next."""
        self.followed.shared.set_status_ticket("hears_visits", 0)
        self.visits.is_heard = False

    def advance(self) -> None:
        """Do what came up while the rings were emptied. Raises TargetError."""
        for tid in self.visits.find_overdue():
            self.let_go(tid)
        if self._wants_all:
            self._wants_all = False
            self.hold()

    def hold(self) -> None:
        """Have all threads stop as soon as they come to the dispatcher, and bring them there.

        Raises TargetError.
        """
        self.is_held = True
        self.calls.note(self._tasks())
        self.followed.shared.set_status_ticket("hold_ticket", 1)
        try:
            self.bring_in()
        except BaseException:
            self.go_on()
            raise

    def go_on(self) -> None:
        """Let all threads go on."""
        self.is_held = False
        self._wants_all = False
        self.followed.shared.set_status_ticket("hold_ticket", 0)
        for tid in self.stopped:
            self._replies[tid] = HoldReply.GO_ON_CHANGED if tid in self._changed else HoldReply.GO_ON
        self.stopped.clear()
        self._changed.clear()

    def step(self, tid: Tid) -> None:
        """Have a stopped thread execute one instruction; the others stay where they are. Raises ControlError."""
        self.find_stopped(tid)
        self._moved = tid
        del self.stopped[tid]
        self._replies[tid] = HoldReply.STEP_CHANGED if tid in self._changed else HoldReply.STEP
        self._changed.discard(tid)

    def slot_of(self, tid: Tid) -> int | None:
        """The slot of a thread that is stopped; None: it is not."""
        return self._slots[tid] if tid in self.stopped else None

    def set_registers(self, tid: Tid, changes: Mapping[str, int]) -> None:
        """Have a stopped thread go on with other registers, by their names. Raises ControlError."""
        thread, drain = self.find_stopped(tid), self.followed.drain
        fixed = thread.definition.program_counter
        for name in changes:
            if name not in thread.by_name or name == fixed:
                raise ControlError(f"register {name!r} of thread {tid} can't be set")
        registers = tuple(changes.get(name, value) & _WORD_MASK for name, value in thread.by_name.items())
        if drain is not None:
            drain.write_held_registers(self._slots[tid], registers)
        self.stopped[tid] = replace(thread, registers=registers)
        self._changed.add(tid)

    def step_over(self, tid: Tid) -> None:
        """As `step`, but what the instruction calls runs to its end; the other threads run meanwhile.

        Raises ControlError.
        """
        thread = self.find_stopped(tid)
        return_pc = find_return_of_call(self.followed.memory_pid, thread.pc, self.processor.architecture)
        if return_pc is None:
            self.step(tid)
            return
        self._forget_over()
        self._moved = tid
        self._over = Over(tid, return_pc, thread.stack_pointer)
        self._tell_breakpoints()
        self.go_on()

    def call(self, tid: Tid, call: OwnCall) -> None:
        """Have a stopped thread call a function, and stop where that comes back to; all others run meanwhile.

        Where it can't it stops again where it is. Raises ControlError.
        """
        thread, drain = self.find_stopped(tid), self.followed.drain
        if drain is None:
            raise ControlError(f"process {self.followed.pid} is gone")
        self._forget_over()
        self._moved, self._over = tid, call
        drain.write_held_registers(self._slots[tid], call.registers_of(thread))
        drain.write_held_vectors(self._slots[tid], call.vectors)
        drain.answer_more(self._slots[tid], (call.return_pc, 0, 0, 0))
        self._tell_breakpoints()
        self.go_on()
        self._replies[tid] = HoldReply.CALL

    def take_visitor(self, tid: Tid) -> None:
        """Have a thread that waits at a place count as stopped, so that it can call a function. Raises ControlError."""
        slot, drain = self.visits.let_go(tid), self.followed.drain
        if slot is None or drain is None or self.is_held:
            raise ControlError(f"thread {tid} waits at no place, or its process is paused")
        self._slots[tid] = slot
        shown = drain.read_held(slot)
        self.stopped[tid] = StoppedThread(tid, HoldReason.CAPTURE, *shown, self.processor.definition)

    def give_back_visitor(self, tid: Tid) -> None:
        """Have it wait at its place again, if it came back to there, and all others go on."""
        if self.stopped.pop(tid, None) is not None:
            self.visits.wait(tid, self._slots[tid])
        self._forget_over()
        self.go_on()

    def let_visitor_by(self, tid: Tid) -> None:
        """Have a thread go on that came to another place while nobody can be told of it."""
        drain = self.followed.drain
        for request in () if drain is None else drain.find_requests(RequestKind.HOLD):
            if request.tid == tid and request.arguments[0] in _VISITS and drain is not None:
                drain.reply(request.slot, HoldReply.GO_ON)

    def return_to(self, tid: Tid, before: StoppedThread) -> None:
        """Have a thread that stopped behind such a call go on to where it was before, and stop there; all others run
        meanwhile. Raises ControlError."""
        self.find_stopped(tid)
        self._moved, self._over = tid, Over(tid, before.pc, before.stack_pointer)
        self._tell_breakpoints()
        self.go_on()

    def add_breakpoint(self, address: RemoteAddress) -> None:
        """Have threads stop in front of the instruction there; the process is held. Raises ControlError."""
        if address in self.breakpoints:
            return
        self._ask_for_room()
        self.breakpoints.append(address)
        self._tell_breakpoints()

    def delete_breakpoint(self, address: RemoteAddress) -> None:
        """Take a breakpoint back; the process is held. Raises ControlError."""
        if address not in self.breakpoints:
            raise ControlError(f"there is no breakpoint at {address:#x}")
        self.breakpoints.remove(address)
        self._tell_breakpoints()

    def release(self) -> None:
        """Let everything go on as if nothing had been: clew leaves the process."""
        for tid in list(self.visits.waiting):
            self.let_go(tid)
        # What threads are in, and what they do on their way out, is still told.
        changes = (CaptureAction.STOP, CaptureAction.INJECT, CaptureAction.DELAY)
        kept = [row for row in self.captures if row.action not in changes]
        if len(kept) < len(self.captures):
            self.keep_captures(kept)
        if self.followed.shared.transforms:
            self.followed.shared.set_transforms(())
        self.breakpoints.clear()
        self._over = None
        self._tell_breakpoints()
        self.go_on()

    @property
    def chosen(self) -> Tid | None:
        """The thread that is meant where none is named: what moved last, or stands for a reason of its own, or the
        first that the process has: one that has only just been made can't be of much use yet.
        """
        if self._moved in self.stopped:
            return self._moved
        return min(self.stopped, key=self._remoteness, default=None)

    def _remoteness(self, tid: Tid) -> tuple[bool, bool]:
        return self.stopped[tid].reason == HoldReason.ASKED, tid != Tid(self.followed.pid)

    @cached_property
    def calls(self) -> HeldCalls:
        """The system calls that threads wait in."""
        return HeldCalls(self.followed, self.processor.architecture.restart_call)

    @property
    def has_replies(self) -> bool:
        """Whether a thread was not told yet how to go on."""
        return bool(self._replies)

    @property
    def has_news(self) -> bool:
        """Whether a thread is stopped for a reason of its own: a breakpoint, or a step that it has made."""
        return any(thread.reason != HoldReason.ASKED for thread in self.stopped.values())

    @property
    def is_settled(self) -> bool:
        """Whether no thread is on its way: each is stopped, or sleeps in a system call."""
        if self._replies:
            return False
        return all(
            self._is_stopped(self.followed.number_of(task)) or self.calls.is_asleep(task) for task in self._tasks()
        )

    def _is_stopped(self, tid: Tid) -> bool:
        return tid in self.stopped or self.visits.is_waiting(tid)

    def _tasks(self) -> list[Tid]:
        """Its threads, by the kernel's numbers; none if it is gone."""
        with contextlib.suppress(OSError):
            return list(iter_threads(self.followed.memory_pid))
        return []

    def find_stopped(self, tid: Tid) -> StoppedThread:
        """A stopped thread. Raises ControlError."""
        thread = self.stopped.get(tid)
        if thread is not None:
            return thread
        task = next((task for task in self._tasks() if self.followed.number_of(task) == tid), None)
        if task is None:
            raise ControlError(f"process {self.followed.pid} has no thread {tid}")
        if not self.is_held:
            raise ControlError(f"thread {tid} runs: pause the process first")
        what = "it waits in a system call" if self.calls.is_asleep(task) else "it is on its way; try again"
        raise ControlError(f"thread {tid} is not stopped: {what}")

    def _forget_over(self) -> None:
        if self._over is not None:
            self._over = None
            self._tell_breakpoints()

    def _ask_for_room(self) -> None:
        # One is left for stepping over calls.
        if len(self.breakpoints) >= MAX_BREAKPOINTS - 1:
            raise ControlError(f"there are {MAX_BREAKPOINTS - 1} breakpoints already; delete one")

    def _tell_breakpoints(self) -> None:
        over: Sequence[RemoteAddress] = [] if self._over is None else [self._over.return_pc]
        self.followed.shared.set_breakpoints(list(dict.fromkeys([*self.breakpoints, *over])))
