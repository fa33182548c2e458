"""Runs command lines of clew in forks of a process that has imported all of it, so that none waits for imports.

A program by itself: `fork_server.py FD`, where FD is a socket of packets. Each request is the words, the working
directory and whether addresses are randomised, with the three standard streams and a socket; on that it is answered
with the number of the process, and when that has ended with its status. Forks have the environment that this was
started with, as any process would see it. Does not know who asks, or what is tested.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import socket
import sys
import traceback
from contextlib import suppress
from typing import Any

MAX_REQUEST_BYTES = 1 << 16
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


def become_clew(request: dict[str, Any], fds: list[int]) -> None:
    """Make this process what `python -m clew` would be, and run it; does not return."""
    os.setsid()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(request["folder"])
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


def main() -> None:
    """Answer requests until nobody can ask any more."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    # The folder of this file.
    del sys.path[0]
    import_all()
    gc.collect()
    gc.freeze()
    while True:
        content, fds, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 4)
        if not content:
            return
        answers = socket.socket(fileno=fds.pop())
        pid = os.fork()
        if pid == 0:
            try:
                requests.detach()
                answers.detach()
                become_clew(json.loads(content), fds)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        for fd in fds:
            os.close(fd)
        # Who asked may be gone, at the end of its time for example.
        with answers, suppress(BrokenPipeError):
            answers.send(str(pid).encode())
            status = os.waitpid(pid, 0)[1]
            answers.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    main()
