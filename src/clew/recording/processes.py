"""All processes of a recording: children are adopted, new programs entered, ends noticed.

Runs in the controller, in one thread. What is asked comes from the target and is checked: a process number counts only
if that process maps the shared memory it speaks through.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from clew.address import Pid, Tid
from clew.errors import AttachError, ClewError, TargetGoneError
from clew.process import ptrace
from clew.process.attach import Attachment
from clew.process.detach import detach
from clew.process.doorbell import MAX_BELLS, Doorbell
from clew.process.execution import Ended, Execution, find_executed
from clew.process.identity import find_ended_children, maps_region, read_group, read_parent
from clew.process.inject import inject
from clew.process.injection_plan import InjectionPlan, layout_for_limits
from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping, read_maps
from clew.process.runtime_image import RuntimeImage
from clew.process.shared_memory import HeaderSettings, SharedLayout, SharedMemory
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import RequestKind
from clew.recording.births import Births
from clew.recording.filters import FilterSet
from clew.recording.filters_live import LiveFilters
from clew.recording.followed import FollowedProcess, Fork, read_status_of_ended
from clew.recording.journal import JournalWriter, ProcessJournal
from clew.recording.snapshot import Snapshots

if TYPE_CHECKING:
    from clew.recording.drain import Request

__all__ = ["Processes"]

EXECUTION_POLL_SECONDS: Final = 0.0002
UNHEARD_POLL_SECONDS: Final = 0.002
MAX_WARNINGS: Final = 20


class Processes:
    """Those that are followed now. The first one is added by `add`; the others come by themselves."""

    def __init__(
        self, journal: JournalWriter, image: RuntimeImage, settings: HeaderSettings, filters: FilterSet
    ) -> None:
        self._journal = journal
        self._image = image
        self._settings = settings
        self._filters = LiveFilters(filters)
        self._n_met = 0
        self._live: list[FollowedProcess] = []
        self._is_leaving = False
        self._being_left: FollowedProcess | None = None
        self._executions: list[tuple[Execution, FollowedProcess]] = []
        self._doorbell = Doorbell()
        self._births = Births(self._make, self._doorbell.forget, self._warn)
        self._poll = select.poll()
        self._poll.register(self._doorbell.fd, select.POLLIN)
        self._by_pidfd: dict[int, FollowedProcess] = {}
        self._awaited: dict[int, Pid] = {}
        self._statuses: dict[Pid, int] = {}
        self.exit_status: dict[Pid, int | None] = {}
        """Wait status of the processes that ended; None where the kernel did not tell."""
        self.cpu_seconds = 0.0
        """User and system time of the processes that were waited for here."""
        self.statistics: dict[str, int] = {}
        """The numbers on the runtimes' status pages, added up."""
        self.warnings: list[str] = []

    def __len__(self) -> int:
        """How many are followed, or may be about to."""
        return len(self._live) + self.n_unsettled + len(self._awaited)

    @property
    def live(self) -> list[FollowedProcess]:
        """Those that are followed now, in the order in which they came."""
        return list(self._live)

    @property
    def n_unsettled(self) -> int:
        """How many children are about to be born, and how many threads about to execute a program."""
        self._births.forget_stillborn(has_parents=bool(self._live))
        return len(self._births) + len(self._executions)

    def is_live(self, pid: Pid) -> bool:
        """Whether process `pid` is followed now."""
        return any(process.pid == pid for process in self._live)

    def add(self, process: StoppedProcess, layout: SharedLayout, heap_bytes: int, *, is_paused: bool = False) -> int:
        """Put the runtime into a stopped process and follow it; its pidfd. Raises ClewError, OSError if it is gone."""
        parent_pid = read_parent(process.pid)
        return self._inject(process, layout, heap_bytes, parent_pid, os.pidfd_open(process.pid), is_paused=is_paused)

    def add_attached(self, attachment: Attachment, mappings: list[Mapping], pidfd: int, start_ns: int) -> None:
        """Follow a process that has the runtime already. Raises OSError if it is gone."""
        followed = self._make(attachment.shared, attachment.plan)
        followed.identify(attachment.pid, read_parent(attachment.pid), pidfd)
        self._start(followed, start_ns, [one for one in mappings if one.protection & PROT_EXEC], None)

    def drain_all(self) -> None:
        """Take what is there, without waiting."""
        self.poll(0)

    def poll(self, delay_seconds: float) -> int:
        """Wait up to `delay_seconds`, or until one ends; then take what is there. How many bytes of records came."""
        if self._executions:
            delay_seconds = min(delay_seconds, EXECUTION_POLL_SECONDS)
        elif self._settings.follows and not (
            self._doorbell.is_working and len(self._live) + len(self._births) <= MAX_BELLS
        ):
            delay_seconds = min(delay_seconds, UNHEARD_POLL_SECONDS)
        ready = [fd for fd, _ in self._poll.poll(delay_seconds * 1000)]
        ended = [self._by_pidfd[fd] for fd in ready if fd in self._by_pidfd]
        if self._doorbell.fd in ready:
            self._doorbell.answer()
        for fd in ready:
            if fd in self._awaited:
                self._note_awaited(fd)
        moved_bytes = 0
        for followed in [*self._live, *self._births.processes]:
            # What one asks may end another: a region that is not used after all.
            if followed in self._live or followed.shared in self._births:
                moved_bytes += self._drain(followed)
        for execution, followed in list(self._executions):
            self._follow_execution(execution, followed)
        for followed in ended:
            if followed in self._live and followed is not self._being_left:
                self._note_end(followed)
        return moved_bytes

    def begin_leaving(self) -> None:
        """From now on what executes a program leaves by that; what is born is followed, so that it can be left."""
        self._is_leaving = True
        self.end_pause()

    def detach(self, followed: FollowedProcess, patience_seconds: float, is_given_up: Callable[[], bool]) -> float:
        """Take the runtime out of one of them; for how many seconds it stood still or was on its way out.

        Raises TargetError, and it goes on as before, if that can't be done within `patience_seconds`, or `is_given_up`
        says so.
        """
        deadline = time.monotonic() + patience_seconds
        while any(execution.pid == followed.pid for execution, _ in self._executions):
            # The thread is held for that already.
            if time.monotonic() > deadline or is_given_up():
                raise AttachError(followed.pid, f"process {followed.pid}: is about to execute another program")
            self.poll(EXECUTION_POLL_SECONDS)
        if followed not in self._live:
            return 0.0
        self._being_left = followed
        try:
            departure = detach(
                followed.pid,
                followed.shared,
                followed.plan,
                patience_seconds=patience_seconds,
                on_wait=self.drain_all,
                is_given_up=is_given_up,
                find_running=lambda: [] if followed.drain is None else followed.drain.find_running(),
            )
        finally:
            self._being_left = None
        if departure.wait_status is not None:
            self._statuses[followed.pid] = departure.wait_status
        if departure.has_ended:
            self._note_end(followed)
        else:
            self._finish(followed, None, None)
        return departure.seconds

    def bury_orphans(self) -> None:
        """Wait for what ended as a child of this process and is not followed: descendants whose parents are gone."""
        for pid in find_ended_children():
            is_executing = any(execution.pid == pid for execution, _ in self._executions)
            if not self.is_live(pid) and not is_executing and pid not in self._awaited.values():
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def refresh_names(self) -> None:
        """Note what the kernel calls the threads: those that are killed can't say it themselves."""
        for followed in self._live:
            if followed.drain is not None:
                followed.drain.refresh_names()

    def write_snapshot(self, snapshots: Snapshots) -> None:
        """Keep the counters of all that run now."""
        snapshots.write(self._live)

    def leave(self) -> None:
        """Finish what is there; the processes go on."""
        for execution, _ in self._executions:
            execution.give_up()
        self._executions.clear()
        for followed in list(self._live):
            self._finish(followed, None, None, goes_on=True)
        self._doorbell.close()
        if self._filters.left_out:
            self._warn("more ranges to include or exclude than the runtime's table holds; some were left out")

    def end_pause(self) -> None:
        """Let a first process that waits before its first instruction go on."""
        for followed in self._live:
            followed.shared.end_pause()

    def _make(self, shared: SharedMemory, plan: InjectionPlan) -> FollowedProcess:
        journal = ProcessJournal(self._journal, self._n_met)
        followed = FollowedProcess(journal, shared, plan, int(self._settings.mode))
        self._n_met += 1
        self._doorbell.watch(shared)
        return followed

    def _inject(
        self,
        process: StoppedProcess,
        layout: SharedLayout,
        heap_bytes: int,
        parent_pid: Pid,
        pidfd: int,
        *,
        is_paused: bool = False,
    ) -> int:
        start_ns = time.time_ns()
        mappings = [mapping for mapping in read_maps(process.pid) if mapping.protection & PROT_EXEC]
        shared, plan = inject(process, self._image, layout, heap_bytes, self._settings, is_paused=is_paused)
        try:
            followed = self._make(shared, plan)
            followed.identify(process.pid, parent_pid, pidfd)
            self._filters.tell_all(shared, mappings)
        except BaseException:
            shared.close()
            raise
        self._start(followed, start_ns, mappings, None)
        return pidfd

    def _start(
        self, followed: FollowedProcess, start_ns: int, mappings: list[Mapping] | None, fork: Fork | None
    ) -> None:
        followed.write_start(start_ns, mappings, fork)
        self._live.append(followed)
        self._by_pidfd[followed.pidfd] = followed
        self._poll.register(followed.pidfd, select.POLLIN)

    def _drain(self, followed: FollowedProcess) -> int:
        if followed.drain is None:
            # Late: the target runs already while this is imported.
            from clew.recording.drain import Drain

            followed.drain = Drain(
                followed.shared,
                followed.journal,
                followed.pid,
                process_name=followed.name,
                answer=self._answer_of(followed),
            )
        return followed.drain.poll()

    def _note_awaited(self, pidfd: int) -> None:
        """A child that runs unfollowed has ended."""
        pid = self._awaited.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        with contextlib.suppress(ChildProcessError):
            self.exit_status[pid] = self._collect(pid)

    def _collect(self, pid: Pid) -> int | None:
        """Wait for a child that has ended: its wait status. Raises ChildProcessError if it is another's."""
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if not found:
            return None
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        return status

    def _note_end(self, followed: FollowedProcess) -> None:
        status: int | None = self._statuses.pop(followed.pid, None)
        if status is None:
            try:
                status = self._collect(followed.pid)
            except ChildProcessError:
                status = read_status_of_ended(followed.pid, followed.pidfd)
        self.exit_status[followed.pid] = status
        if status is None:
            followed.warnings.append(f"how process {followed.pid} ended is not known: somebody else waited for it")
            self._finish(followed, None, None)
        elif os.WIFSIGNALED(status):
            self._finish(followed, None, os.WTERMSIG(status))
        else:
            self._finish(followed, os.WEXITSTATUS(status), None)

    def _finish(
        self, followed: FollowedProcess, exit_code: int | None, signal: int | None, *, goes_on: bool = False
    ) -> None:
        self._drain(followed)
        if followed.drain is not None:
            page = followed.drain.status()
            for name in page.dtype.names or ():
                if page.dtype[name].shape == ():
                    self.statistics[name] = self.statistics.get(name, 0) + int(page[name])
        self._doorbell.forget(followed.shared)
        followed.finish(exit_code, signal, goes_on=goes_on or self._has_survivors(followed))
        self._live.remove(followed)
        if followed.pidfd >= 0:
            self._release_pidfd(followed)

    def _has_survivors(self, followed: FollowedProcess) -> bool:
        """Whether another process shares the memory, and goes on: a task that was cloned so, or a vfork's child."""
        tids = [] if followed.drain is None else followed.drain.find_running()
        return any(tid != followed.pid and maps_region(Tid(tid), followed.shared) for tid in tids)

    def _release_pidfd(self, followed: FollowedProcess) -> None:
        self._poll.unregister(followed.pidfd)
        del self._by_pidfd[followed.pidfd]
        os.close(followed.pidfd)
        followed.pidfd = -1

    def _answer_of(self, followed: FollowedProcess) -> Callable[[Request], int | None]:
        return lambda request: self._answer(followed, request)

    def _answer(self, followed: FollowedProcess, request: Request) -> int | None:
        """What a request is answered; None: later."""
        match request.kind:
            case RequestKind.IMAGE_FILTERS:
                start, end = request.arguments[:2]
                with contextlib.suppress(OSError):
                    mapped = [one for one in read_maps(followed.pid) if one.start < end and start < one.end]
                    self._filters.tell(followed.shared, mapped)
            case RequestKind.FORK:
                if not request.arguments[0]:
                    return self._births.expect(followed)
                self._births.cancel(followed, request.arguments[0])
            case RequestKind.ADOPT:
                return self._adopt(followed, Pid(request.arguments[0]), request.arguments[1])
            case RequestKind.EXECVE:
                return self._answer_execve(followed, Tid(request.tid), *request.arguments[:3])
            case RequestKind.EXECVE_FAILED:
                for execution, whose in list(self._executions):
                    if execution.tid == request.tid and whose is followed:
                        self._executions.remove((execution, whose))
                        execution.give_up()
        return 0

    def _adopt(self, followed: FollowedProcess, claimed: Pid, fork_tsc: int) -> int:
        fork = self._births.adopt(followed, claimed, fork_tsc)
        if fork is None:
            return 0
        if followed.drain is not None:
            followed.drain.tell_process(followed.pid, followed.name)
        self._start(followed, time.time_ns(), None, fork)
        return 1

    def _answer_execve(self, followed: FollowedProcess, tid: Tid, path: int, directory: int, flags: int) -> int | None:
        if self._is_leaving or not maps_region(Pid(tid), followed.shared):
            return 0
        try:
            pid = read_group(tid)
        except OSError:
            return 0
        if any(execution.pid == pid for execution, _ in self._executions):
            # One after the other: who is seized while another executes waits for that one, and we would for both.
            return None
        try:
            find_executed(tid, path, directory, flags)
        except ClewError as error:
            if "no such" not in error.message:
                self._warn(f"process {followed.pid} may go on unfollowed: {error.message}")
            return 0
        except (OSError, OverflowError):
            return 0
        try:
            self._executions.append((Execution(tid, pid), followed))
        except OSError as error:
            self._warn(f"process {followed.pid} goes on unfollowed after execve: ptrace is not allowed ({error})")
            return 0
        return 1

    def _follow_execution(self, execution: Execution, followed: FollowedProcess) -> None:
        outcome = execution.poll()
        if outcome is False:
            return
        self._executions.remove((execution, followed))
        if isinstance(outcome, Ended):
            if outcome.is_process and outcome.status is not None and self.is_live(execution.pid):
                self._statuses[execution.pid] = outcome.status
            return
        if not self._is_leaving:
            self._enter(execution.pid, followed)
            return
        if followed.pid == execution.pid:
            self._finish(followed, None, None)
        with contextlib.suppress(ProcessLookupError):
            ptrace.detach(execution.pid)

    def _enter(self, pid: Pid, before: FollowedProcess) -> None:
        """Put the runtime into the program that `pid` executes, stopped inside execve, and let it go."""
        is_same = before.pid == pid
        parent_pid = before.parent_pid if is_same else before.pid
        if is_same:
            self._finish(before, None, None)
        process = None
        pidfd = -1
        try:
            pidfd = os.pidfd_open(pid)
            process = StoppedProcess(pid)
            # Inside execve still: its result would overwrite rax. The end of the call is where the registers are final.
            process.run_to_syscall_stop()
            process.registers = ptrace.get_registers(pid)
            native = process.registers.copy()
            try:
                layout, heap_bytes = layout_for_limits(SharedLayout(), pid)
                self._inject(process, layout, heap_bytes, parent_pid, pidfd)
                pidfd = -1
            except BaseException:
                process.registers = native
                raise
        except TargetGoneError as error:
            self.exit_status[pid] = error.wait_status
        except (ClewError, OSError) as error:
            self._warn(f"process {pid} goes on unfollowed: {error}")
            if pidfd >= 0 and read_parent(pid) == os.getpid():
                # Whoever started clew waits for it, and for its exit status.
                self._awaited[pidfd] = pid
                self._poll.register(pidfd, select.POLLIN)
                pidfd = -1
        finally:
            if pidfd >= 0:
                os.close(pidfd)
            with contextlib.suppress(OSError):
                if process is None:
                    ptrace.detach(pid)
                else:
                    process.detach()

    def _warn(self, message: str) -> None:
        if len(self.warnings) < MAX_WARNINGS and message not in self.warnings:
            self.warnings.append(message)
