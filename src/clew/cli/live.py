"""The viewer beside a recording: `--view` of `clew record` and `clew attach`.

Runs in the controller. The viewer is a process of its own, so that the recorder interprets nothing while the target
runs; it is started when the target runs already. It is in a session of its own: what a terminal sends to who is in
front of it, such as Ctrl-C, ends the target, and the recorder writes the trace, which the viewer then shows.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from types import FrameType

from clew.cli.console import say
from clew.process.launch import restore_signals
from clew.recording.live.feed import LiveFeed
from clew.recording.options.record_options import RecordResult
from clew.server.listening import make_token, make_url, open_socket
from clew.store.names import JOURNAL_NAME

__all__ = ["LiveViewer"]


class LiveViewer:
    """A viewer that is to be started, and `feed`, by which the recorder tells it.

    Nothing is left of it at the end of the context. Raises UsageError where it can't listen.
    """

    def __init__(self, host: str, port: int, *, opens_browser: bool) -> None:
        self._listening = open_socket(host, port)
        self._host, self._token = host, make_token()
        self._opens_browser = opens_browser
        own, self._other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.feed = LiveFeed(own)
        self.url = make_url(host, self._listening.getsockname()[1], self._token, is_live=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1

    def __enter__(self) -> LiveViewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.feed.close()
        self._other.close()
        self._listening.close()
        if self._pidfd >= 0:
            # It ends by itself when nobody feeds it any more; one that is stuck is not waited for.
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)
            select.select([self._pidfd], [], [], 5)
            os.close(self._pidfd)
            self._pidfd = -1

    def start(self, directory: Path, muted: Collection[int]) -> None:
        """Start it, for the recording into `directory`, which has begun, and say where to look.

        Signals that are `muted` are ignored here, and not by the viewer or the browser that it starts.
        """
        muted = list(muted)
        # Opened here: a short recording is over, and its journal gone, before the viewer is there.
        journal = os.open(directory / JOURNAL_NAME, os.O_RDONLY | os.O_CLOEXEC)
        words = [
            *("--recorder", str(self._other.fileno())),
            *("--journal", str(journal)),
            *("--listening", str(self._listening.fileno())),
            *("--host", self._host),
            *(["--browser"] if self._opens_browser else []),
            str(directory.absolute()),
        ]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "clew", "live-viewer", *words],
                env={**os.environ, "CLEW_TOKEN": self._token},
                pass_fds=(self._other.fileno(), journal, self._listening.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=lambda: restore_signals((), muted),
            )
            # Whoever waits for orphans may wait for it: the number alone would not be enough to end it.
            self._pidfd = os.pidfd_open(self._process.pid)
        except OSError as error:
            say(f"the live view did not start: {error.strerror or error}; the recording goes on without it")
        else:
            say(f"live at {self.url}")
        os.close(journal)
        self._other.close()
        self._listening.close()

    def finish(self, result: RecordResult, *, is_quiet: bool) -> None:
        """Have the viewer show the trace, and wait until somebody ends that, or the viewer has ended."""
        if result.failure is None:
            self.feed.tell_end("published")
        else:
            self.feed.tell_end("failed", result.failure.message)
        for line in self.feed.warnings:
            say(line)
        if self._pidfd < 0:
            return
        with contextlib.suppress(KeyboardInterrupt):
            _end_as_by_interrupt(signal.SIGTERM, signal.SIGHUP)
            if not is_quiet:
                # A shell starts its background jobs with SIGINT ignored, and it stays so.
                is_deaf = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
                say(f"{self.url} shows it until {f'SIGTERM to clew (kill {os.getpid()})' if is_deaf else 'Ctrl-C'}")
            _wait_for(self._pidfd)
            say("the live view has ended")


def _wait_for(descriptor: int) -> None:
    """Wait until it can be read; handlers of signals that come are called at once.

    Of a signal that comes between the interpreter's last look and the system call that waits, or to another thread, the
    handler is called only when that call ends: each signal is written to where it waits, too.
    """
    woken, waker = socket.socketpair()
    with woken, waker:
        waker.setblocking(False)
        before = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        try:
            while descriptor not in select.select([descriptor, woken.fileno()], [], [])[0]:
                woken.recv(1)
        finally:
            signal.set_wakeup_fd(before)


def _end_as_by_interrupt(*numbers: signal.Signals) -> None:
    """Have these end the wait, too: the viewer is in a session of its own, and would be left."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
