"""The log of a process: what was run, its images and threads, what is missing.

Runs in the controller. A line is an entry, whatever the program calls itself.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from clew.export.este.routines import escape_line

if TYPE_CHECKING:
    from clew.export.este.config import EsteScope
    from clew.export.este.images import EsteImage
    from clew.export.este.order import EsteThread
    from clew.store.trace import Trace

__all__ = ["EsteLog"]


class EsteLog:
    """Lines `[INFO] …`, `[WARNING] …`, `[ERROR] …`, which go to `file`. `n_warnings` were there, errors included."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.n_warnings = 0

    def tell(self, message: str) -> None:
        """What there is to know."""
        self._write("INFO", message)

    def warn(self, message: str) -> None:
        """What is missing, or not as it may seem."""
        self.n_warnings += 1
        self._write("WARNING", message)

    def tell_of_run(self, trace: Trace, process: dict[str, Any], scope: EsteScope, title: str) -> None:
        """What was recorded, and what of it the files are to tell of."""
        if title:
            self.tell(f"configuration: {title}")
        self.tell(f"recorded by clew {trace.manifest.clew_version}, trace {trace.directory.name}, mode {trace.mode}")
        self.tell(f"process {process['pid']}, parent {process['parent_pid']}, executable {process['executable']}")
        self.tell(f"command: {json.dumps(process['command'], ensure_ascii=False)}")
        self.tell(f"started {_show_time(process['start_ns'])}, ended {_show_time(process['end_ns'])}")
        if scope.whitelist is None:
            self.tell("whitelist: the main executable")
        else:
            self.tell(f"whitelist: {json.dumps(list(scope.whitelist), ensure_ascii=False)}")
        self.tell(f"code outside of all images: {'told of' if scope.has_dynamic else 'left out'}")
        for warning in trace.manifest.warnings:
            self.warn(warning)
        for name, count in trace.manifest.losses.items():
            if count:
                self.warn(f"the recording lost something: {name.replace('_', ' ')}: {count}")

    def tell_of_images(self, images: list[EsteImage]) -> None:
        """Which images there are, and which tell nothing."""
        for image in images:
            marks = "".join(
                mark for mark, is_so in ((" [MAIN]", image.is_main), (" [WHITELISTED]", image.is_whitelisted)) if is_so
            )
            self.tell(f"image {image.idx}: {image.path}{marks} {image.base:#x}-{image.end:#x}")
            if image.file.loss:
                self.warn(f"{image.path} {image.file.loss}: where it is executable, and what did not run, is not known")
        if not any(image.is_whitelisted for image in images):
            self.tell("no image is on the whitelist")

    def tell_of_thread(self, thread: EsteThread, n_blocks: int) -> None:
        """A thread, and how often it executed blocks that are told of."""
        row = thread.row
        name = f" {row['name']}" if row["name"] else ""
        self.tell(
            f"thread {thread.pin_tid} (os {thread.os_tid}{name}): started {_show_time(row['start_ns'])}, "
            f"ended {_show_time(row['end_ns'])} ({row['end']}): {n_blocks} executions of blocks"
        )
        if thread.path is None:
            self.warn(f"thread {thread.pin_tid} (os {thread.os_tid}) has no path: nothing is told of it")
        if row["lost_records"]:
            self.warn(f"thread {thread.pin_tid} (os {thread.os_tid}) lost {row['lost_records']} records")

    def warn_of_loss(self, thread: EsteThread, what: str) -> None:
        """What is not known of a thread's order; no link leads over it."""
        self.warn(f"thread {thread.pin_tid} (os {thread.os_tid}): {what} were not recorded")

    def tell_of_end(self, process: dict[str, Any]) -> None:
        """How the process ended."""
        if process["signal"] is not None:
            self.n_warnings += 1
            self._write("ERROR", f"process ended by signal {process['signal']}")
        elif process["exit_code"] is not None:
            self.tell(f"process ended with code {process['exit_code']}")
        else:
            self.tell("process went on, or went on as another program")

    def _write(self, level: str, message: str) -> None:
        self._file.write(f"[{level}] {escape_line(message)}\n")


def _show_time(ns: int) -> str:
    """A time as ISO 8601 has it, with microseconds."""
    seconds, rest = divmod(ns, 1_000_000_000)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1000:06}Z"
    except (ValueError, OverflowError, OSError):
        return f"{ns} ns"
