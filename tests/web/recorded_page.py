"""Pages beside programs that run: the viewer's page, open on a recording with a live view.

Runs on the machine that tests. Knows where a recording is shown; does not know which program it is of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from playwright.sync_api import Browser, Page

from tests.e2e.live_recording import LiveRecording
from tests.web.serving import Server
from tests.web.viewer import Viewer

__all__ = ["Recorded", "RecordedPage", "record", "watch"]


@dataclass(frozen=True)
class _RecordingServer:
    """Where a recording is shown, as `Viewer` asks of a server."""

    url: str

    @property
    def origin(self) -> str:
        return self.url.partition("/#")[0]


@dataclass(frozen=True)
class RecordedPage:
    """A page for a recording."""

    recording: LiveRecording
    viewer: Viewer

    @property
    def page(self) -> Page:
        return self.viewer.page


Recorded = TypeVar("Recorded", bound=RecordedPage)


@contextmanager
def record(program: Path, folder: Path, *options: str) -> Iterator[LiveRecording]:
    """Records a program, with options of `clew record`; what is left of it in the end is killed."""
    recording = LiveRecording(["--", program], folder / "live.clew", *options)
    try:
        yield recording
    finally:
        recording.kill()


@contextmanager
def watch(browser: Browser, kind: type[Recorded]) -> Iterator[Callable[..., Recorded]]:
    """Gives what makes a page for a recording, in a context with options of the browser's; it has gone nowhere yet.

    At the end none may have complained.
    """
    made: list[Recorded] = []

    def make(recording: LiveRecording, **context: Any) -> Recorded:
        # What changes all the time is drawn all the time: a small picture leaves more of the processor to the program.
        options = {"viewport": {"width": 1200, "height": 760}} | context
        made.append(kind(recording, Viewer(browser, cast("Server", _RecordingServer(recording.url)), **options)))
        return made[-1]

    try:
        yield make
    finally:
        for one in made:
            one.viewer.context.close()
    complaints = [complaint for one in made for complaint in one.viewer.complaints]
    assert not complaints, complaints
