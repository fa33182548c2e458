"""Runs command lines of clew in forks of a process that has imported all of it, so that none waits for imports.

A program by itself: `fork_server.py FD`, where FD is a socket of packets. Each request is the words, the working
directory, whether addresses are randomised and the environment, if it is another one than this was started with; with
them come the three standard streams and a socket. On that the process says its number as soon as it is in a session of
its own, and when it has ended its status follows. Any number of them run at the same time. What is read from the
environment at the start of a process, or while modules are imported, is what this was started with. Does not know who
asks, or what is tested.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import sys
import traceback
from contextlib import suppress
from typing import Any

MAX_REQUEST_BYTES = 1 << 16
BEGUN, ENDED = "begun", "ended"
"""What answers begin with; a number follows."""
ADDR_NO_RANDOMIZE = 0x0040000


def import_all() -> None:
    """Import what any subcommand of clew imports, in the order that one of them does."""
    from clew.recording.assembly.memory import reuse_memory

    reuse_memory()
    import clew

    for module in pkgutil.walk_packages(clew.__path__, "clew."):
        importlib.import_module(module.name)
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401


def become_clew(request: dict[str, Any], fds: list[int], answers: int) -> None:
    """Make this process what `python -m clew` would be, and run it; does not return."""
    os.setsid()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.chdir(request["folder"])
    if request["environ"] is not None:
        # In the order given: it is handed on as it is.
        os.environ.clear()
        os.environ.update(request["environ"])
    os.write(answers, f"{BEGUN} {os.getpid()}".encode())
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if request["fixed_layout"]:
        ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, f"__{name}__")
        how = {"encoding": old.encoding, "errors": old.errors, "buffering": 1 if name == "stderr" else -1}
        stream = open(number, "w" if number else "r", closefd=False, **how)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    from clew import __main__

    sys.argv = [__main__.__file__, *request["words"]]
    __main__.run()


class Forks:
    """The processes that were forked and have not ended: who is told their ends, by what is readable then."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[int, int]] = {}

    def fork(self, request: dict[str, Any], fds: list[int], answers: int, ended: select.poll) -> None:
        """Fork, and give up what the process was given, but for `answers`; `ended` finds out when it has ended."""
        pid = os.fork()
        if pid == 0:
            try:
                become_clew(request, fds, answers)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        for fd in fds:
            os.close(fd)
        end = os.pidfd_open(pid)
        self._of[end] = pid, answers
        ended.register(end, select.POLLIN)

    def bury(self, end: int) -> None:
        """Tell the status of one that has ended."""
        pid, answers = self._of.pop(end)
        os.close(end)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        # Who asked may be gone, at the end of its time for example.
        with suppress(ConnectionError):
            os.write(answers, f"{ENDED} {status}".encode())
        os.close(answers)


def main() -> None:
    """Answer requests until nobody can ask any more."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    # The folder of this file.
    del sys.path[0]
    import_all()
    gc.collect()
    gc.freeze()
    forks, poll = Forks(), select.poll()
    poll.register(requests, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd != requests.fileno():
                poll.unregister(fd)
                forks.bury(fd)
                continue
            content, fds, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 4)
            if not content:
                return
            answers = fds.pop()
            forks.fork(json.loads(content), fds, answers, poll)


if __name__ == "__main__":
    main()
