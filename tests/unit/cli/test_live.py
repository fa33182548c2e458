"""The wait beside a live view: a signal ends it whenever and to whichever thread it comes."""

from __future__ import annotations

import subprocess
import sys

_WAITS = """
import os, signal, threading, time
from clew.cli.live import _end_as_by_interrupt, _wait_for

def is_waiting():
    with open(f"/proc/self/task/{os.getpid()}/syscall") as file:
        return file.read().split()[0] in ("23", "270")  # select, pselect6

def interrupt():
    while not is_waiting():
        time.sleep(0.001)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

_end_as_by_interrupt(signal.SIGTERM)
threading.Thread(target=interrupt, daemon=True).start()
try:
    _wait_for(os.pipe()[0])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_signal_that_another_thread_takes_ends_the_wait() -> None:
    done = subprocess.run([sys.executable, "-c", _WAITS], capture_output=True, text=True, timeout=20)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
