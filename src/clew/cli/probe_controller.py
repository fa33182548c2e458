"""`clew probe-controller`: the controller of a session of probes; `clew enable-event` starts it.

Runs in the controller. Not for people: it is told a descriptor for what became of it.
"""

from __future__ import annotations

import contextlib
import os

import click

from clew.cli.session_output import SessionOutput
from clew.errors import ClewError

__all__ = ["command"]


@click.command(name="probe-controller", hidden=True)
@click.option("--ready", type=int, required=True, help="The descriptor that is told what became of it.")
@click.argument("name")
def command(name: str, ready: int) -> None:
    """Be the controller of the session NAME until that is destroyed."""
    from clew.sessions.probes.background.controller import run_controller
    from clew.sessions.probes.background.state_folder import place_of

    try:
        run_controller(place_of(name), SessionOutput, ready)
    except (ClewError, OSError) as error:
        with contextlib.suppress(OSError):
            os.write(ready, str(error).encode(errors="replace"))
        raise
