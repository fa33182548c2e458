"""`--backend` and `--require`: by which means threads come to probes.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.sessions.probes.probing_session import ProbingSession
    from clew.sessions.probes.specs import ProbeSpec, RecordWish

__all__ = ["open_session", "takes_backend"]

_OPTIONS: Final = (
    click.option("--require", "required", metavar="jump", help="Refuse what would trap."),
    click.option(
        "--backend",
        default="auto",
        metavar="BACKEND",
        help="How threads come to probes: auto (the default), jump, trap, engine, uprobe.",
    ),
)


def takes_backend(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `backend` and `required`."""
    for option in _OPTIONS:
        command = option(command)
    return command


def open_session(
    specs: Sequence[ProbeSpec],
    backend: str,
    required: str | None,
    *,
    newest_bytes: int = 0,
    record: RecordWish | None = None,
) -> ProbingSession:
    """A session with these probes, a flight recorder with `newest_bytes`; `record` says where what is followed is
    recorded. Raises UsageError, CaptureError."""
    from clew.sessions.probes.backends import Backend, parse_backend

    choice = parse_backend(backend, required)
    does_more = newest_bytes or any(one.consequence is not None for one in specs)
    if does_more and choice.backend in (Backend.ENGINE, Backend.UPROBE):
        raise UsageError(f"--snapshot, --on and changes are nothing that --backend {choice.backend.value} can do")
    if choice.backend == Backend.ENGINE:
        from clew.sessions.engine_probes import EngineSession

        return EngineSession(specs)
    if choice.backend == Backend.UPROBE:
        from clew.sessions.probes.uprobe_session import UprobeSession

        return UprobeSession(specs)
    from clew.sessions.probes.probe_session import ProbeSession

    return ProbeSession(specs, choice, newest_bytes=newest_bytes, record=record)
