"""Starts a program and stops it before its first instruction.

Runs in the controller. The program gets what clew itself got: standard streams, working directory, process group,
terminal, limits, signal mask; and the signal dispositions that Python changed are put back. It sees nothing of clew.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from clew.address import Pid
from clew.errors import KilledAtStartError, LaunchError, NotExecutableError, StuckError, TargetGoneError
from clew.process import ptrace
from clew.process.linux import execve, string_array
from clew.process.program import Program
from clew.process.stopped_process import StoppedProcess
from clew.process.waiting import MAX_PAUSE_SECONDS, wait_stop

__all__ = ["launch_stopped", "native_mask", "original_environment", "restore_signals"]

EXIT_STATUS_NOT_STARTED: Final = 127
EXECUTION_SECONDS: Final = 3600.0
"""A program's file may lie on a slow file system, and who waits can tell clew to leave."""

GIVING_UP_SECONDS: Final = 1.0
"""What comes from a terminal comes to the program, too, which has to be there for it."""

END_SECONDS: Final = 1.0


def original_environment() -> list[bytes]:
    """The environment that this process was started with, `NAME=value`, in order.

    Python's own view differs: it may set LC_CTYPE at its start, and it keeps neither order nor odd entries.
    """
    try:
        return [entry for entry in Path("/proc/self/environ").read_bytes().split(b"\0") if entry]
    except OSError:
        return [name + b"=" + value for name, value in os.environb.items()]


def launch_stopped(
    program: Program,
    arguments: Sequence[bytes],
    environment: Sequence[bytes],
    *,
    ignored_signals: Collection[signal.Signals] = (),
    default_signals: Collection[int] = (),
    streams: Mapping[int, int] | None = None,
    directory: str | None = None,
    before_fork: Callable[[], None] = lambda: None,
    is_given_up: Callable[[], bool] = lambda: False,
) -> StoppedProcess:
    """Execute `program` in a new child, stopped before its first instruction (which is ld.so's, if it has one).

    `arguments` begins with argv[0]. `ignored_signals` are ignored in the child, whatever they are here, and
    `default_signals` are not. `streams` are descriptors that the child has by other numbers; it begins in `directory`.
    `before_fork` is called at the last moment at which nothing has happened yet: signals from then on reach the child.
    Once `is_given_up` says so the child has a second to become the program. Raises NotExecutableError if the kernel
    refuses to execute it, KilledAtStartError if a signal ended it meanwhile (of a malformed file the kernel finds out
    too late), LaunchError if it can't be traced, StuckError if it does not become the program.
    """
    path = os.fsencode(program.path)
    argument_array, environment_array = string_array(arguments), string_array(environment)
    # The child waits until it is seized; a pipe, not a signal, since signals could be blocked or ignored.
    go_read, go_write = os.pipe()
    failure_read, failure_write = os.pipe()
    # Up to execve the child has Python's handlers, which would swallow what is meant for the program: a terminal's
    # interrupt, say. It is blocked until the tracer is there to keep it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        before_fork()
        pid = Pid(os.fork())
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        raise
    if pid == 0:
        try:
            os.close(go_write)
            restore_signals(ignored_signals, default_signals)
            _set_streams(streams or {})
            if directory is not None:
                os.chdir(directory)
            if os.read(go_read, 1):
                # What comes now is for the program: it is blocked until that is there, and the tracer sets its mask.
                failure = execve(path, argument_array, environment_array)
                os.write(failure_write, (failure.errno or 0).to_bytes(4, "little"))
        finally:
            os._exit(EXIT_STATUS_NOT_STARTED)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.close(go_read)
    os.close(failure_write)
    try:
        options = ptrace.OPTION_TRACEEXEC | ptrace.OPTION_EXITKILL | ptrace.OPTION_TRACESYSGOOD
        try:
            ptrace.seize(pid, options)
        except OSError as error:
            os.close(go_write)
            go_write = -1
            _end(pid)
            raise LaunchError(pid, _explain_refused_ptrace(error)) from error
        os.write(go_write, b"g")
        try:
            early_signals = _wait_for_exec(pid, program, failure_read, is_given_up)
        except BaseException:
            _end(pid)
            raise
    finally:
        for fd in (go_write, failure_read):
            if fd >= 0:
                os.close(fd)
    try:
        process = StoppedProcess(pid, native_mask(pid, mask))
        process.check_width()
    except BaseException:
        _end(pid)
        raise
    process.held_signals += early_signals
    with process:
        # Inside execve still: its result is to come. The end of the call is where the registers are final.
        process.run_to_syscall_stop()
        process.registers = process.processor.get_registers(pid)
    return process


def restore_signals(ignored_signals: Collection[signal.Signals], default_signals: Collection[int]) -> None:
    """Undo what Python and clew did. Handlers would be reset by execve only."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, *default_signals):
        signal.signal(number, signal.SIG_DFL)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    for number in ignored_signals:
        signal.signal(number, signal.SIG_IGN)


def native_mask(pid: Pid, mask: Collection[int]) -> int:
    """The signals to block in the child, as bits: `mask`; those of the C library itself stay as they are."""
    blockable = sum(1 << number - 1 for number in signal.valid_signals())
    return ptrace.get_signal_mask(pid) & ~blockable | sum(1 << number - 1 for number in mask) & blockable


def _wait_for_exec(pid: Pid, program: Program, failure_read: int, is_given_up: Callable[[], bool]) -> list[int]:
    """Wait until the child has executed `program`; the signals that came before and can't be blocked."""
    early_signals: list[int] = []
    given_up_at = 0.0

    def is_over() -> bool:
        nonlocal given_up_at
        if not given_up_at and is_given_up():
            given_up_at = time.monotonic()
        return given_up_at > 0 and time.monotonic() - given_up_at > GIVING_UP_SECONDS

    while True:
        try:
            status = wait_stop(pid, limit_seconds=EXECUTION_SECONDS, is_given_up=is_over)
        except StuckError as error:
            raise StuckError(pid, f"{program.path}: was not executed: {error.message}") from error
        if not os.WIFSTOPPED(status):
            raise _explain_end(pid, program, status, int.from_bytes(os.read(failure_read, 4), "little"))
        if status >> 8 == signal.SIGTRAP | ptrace.EVENT_EXEC << 8:
            return early_signals
        number = os.WSTOPSIG(status) if status >> 16 == 0 else 0
        if number and not ptrace.is_forced(pid, number):
            early_signals.append(number)
            number = 0
        # What the kernel forces on the child ends it: of its memory and the program's neither is whole (bprm_execve in
        # fs/exec.c).
        ptrace.cont(pid, number)


def _explain_end(
    pid: Pid, program: Program, status: int, refusal: int
) -> LaunchError | NotExecutableError | TargetGoneError:
    """Why the child ended; `refusal` is what execve failed with, 0: it did not return."""
    if refusal:
        return NotExecutableError(program.path, _explain_refused_exec(refusal))
    if not os.WIFSIGNALED(status):
        return LaunchError(pid, f"{program.path}: ended before it was executed")
    number = os.WTERMSIG(status)
    name = signal.Signals(number).name if number in signal.valid_signals() else f"signal {number}"
    return KilledAtStartError(
        pid, f"{program.path}: ended by {name} while the kernel executed it, as natively; nothing ran of it", number
    )


def _set_streams(streams: Mapping[int, int]) -> None:
    """Have descriptors of this process by other numbers, too."""
    # Copies that no number stands in the way of: one stream may be where another is to be.
    copies = {number: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(streams) + 3) for number, fd in streams.items()}
    for number, fd in copies.items():
        os.dup2(fd, number)


def _end(pid: Pid) -> None:
    """Kill the child and collect it. What does not even die is not waited for: it ends once the kernel lets it."""
    deadline = time.monotonic() + END_SECONDS
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(MAX_PAUSE_SECONDS)


def _explain_refused_exec(number: int) -> str:
    match number:
        case errno.ENOEXEC:
            return "the kernel can't execute it: neither an ELF program nor a script that begins with #!"
        case errno.ENOENT:
            return "the program, or the loader or interpreter that it names, does not exist"
        case errno.EACCES:
            return "not executable (permission of the file, of a directory, or a file system mounted noexec)"
        case errno.E2BIG:
            return "arguments and environment are too long"
        case errno.ETXTBSY:
            return "is open for writing by another process"
    return f"can't be executed: {os.strerror(number)}"


def _explain_refused_ptrace(error: OSError) -> str:
    try:
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
    except OSError:
        scope = ""
    if scope in ("2", "3"):
        way_out = (
            "set kernel.yama.ptrace_scope to 1 or run clew as root" if scope == "2" else "it needs a reboot to lower"
        )
        return f"ptrace is not allowed: kernel.yama.ptrace_scope is {scope}; {way_out}"
    return (
        f"ptrace is not allowed here ({error.strerror}): a container or a seccomp filter may forbid it, "
        "or clew itself is being traced; for Docker, add --cap-add=SYS_PTRACE"
    )
