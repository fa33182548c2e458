"""Starts a program as this process' own child, in a session of probes from its first instruction on.

Runs in whoever controls: terminals, signals and the end of the program are this process'.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Final

from clew.errors import ClewError, ControlError, NotExecutableError
from clew.process.launch import EXIT_STATUS_NOT_STARTED, original_environment, restore_signals
from clew.process.linux import execve, libc, string_array
from clew.process.program import find_program
from clew.sessions.probes.background.client import ask_session

__all__ = ["run_in_session"]

_PR_SET_PTRACER: Final = 0x59616D61
_REFUSED: Final = b"!"
_FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP)


def run_in_session(name: str, command: Sequence[str]) -> int:
    """Run `command` in the session of that name; its exit status, 128 + N where signal N ended it. Raises ClewError if
    it can't be run."""
    program = find_program(command[0])
    arguments = string_array([os.fsencode(word) for word in command])
    environment = string_array(original_environment())
    controller = int(ask_session(name, {"command": "status"})["controller_pid"])
    failure_read, failure_write = os.pipe()
    # The child has Python's handlers until it is the program: what comes until then is for that.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        try:
            restore_signals((), ())
            # Where only parents may trace (Yama), and elsewhere of no account.
            libc.prctl(_PR_SET_PTRACER, controller, 0, 0, 0)
            question = {"command": "arrive", "pid": os.getpid(), "mask": [int(one) for one in mask]}
            try:
                is_followed = ask_session(name, question)["is_followed"]
            except ClewError as error:
                os.write(failure_write, _REFUSED + error.message.encode(errors="replace"))
            else:
                if not is_followed:
                    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                failure = execve(os.fsencode(program.path), arguments, environment)
                os.write(failure_write, (failure.strerror or "").encode())
        finally:
            os._exit(EXIT_STATUS_NOT_STARTED)
    os.close(failure_write)
    with _signals_of_child(pid):
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        with os.fdopen(failure_read, "rb") as told:
            failure_text = told.read()
        _, status = os.waitpid(pid, 0)
    if failure_text.startswith(_REFUSED):
        raise ControlError(failure_text.removeprefix(_REFUSED).decode(errors="replace"))
    if failure_text:
        raise NotExecutableError(program.path, f"can't be executed: {failure_text.decode(errors='replace')}")
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


@contextlib.contextmanager
def _signals_of_child(pid: int) -> Iterator[None]:
    """What a terminal sends reaches the child as well; what is sent to this process is sent on."""

    def forward(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    before |= {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
