"""`clew start`: the events of a session are written from now on.

Runs in whoever controls.
"""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.session_options import confirm, session_argument, tell

__all__ = ["command"]


@click.command(name="start")
@session_argument
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Write there.")
@click.option(
    "--format", "form", type=click.Choice(("ctf", "text", "json", "perfetto")), help="As what; ctf, a folder, is usual."
)
def command(name: str, output: Path | None, form: str | None) -> None:
    """Put the probes of a session into its processes, and write their events; print where.

    One that was stopped goes on with what it wrote, unless something else is asked for.
    """
    from clew.cli.session_output import name_output
    from clew.sessions.probes.background.client import ask_session

    kind = form or "ctf"
    place = (output if output is not None else name_output(kind, name)).absolute()
    question = {"command": "start", "output": str(place), "format": kind}
    answer = ask_session(name, question | {"is_asked": output is not None or form is not None})
    tell(answer)
    if not answer["events"]:
        confirm("the session has no events; `clew enable-event` makes some")
    elif not answer["processes"]:
        confirm(
            "the session has no processes; `clew probe run -- COMMAND` starts one, `clew probe attach PID` adds one"
        )
    click.echo(answer["output"])
