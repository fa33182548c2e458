"""`clew control`: tell a running recording to hold, step, leave or end a process, or to record something else.

Runs beside the controller. What it shows goes to stdout.
"""

from __future__ import annotations

import json
from typing import Any

import click

from clew.address import MAX_PID
from clew.cli.options import parse_pid
from clew.errors import UsageError
from clew.recording.control.client import COMMAND_ARGUMENTS, TOLD_MODES, ControlClient
from clew.recording.options.arguments import parse_budget

__all__ = ["command"]

_WORDS = {"place": "a WHERE", "what": "a WHAT", "mode": "counts, full or auto", "budget": "a number of MB, or all"}
"""What people give for the arguments of commands; a thread is an option."""


@click.command(name="control")
@click.option(
    "--thread", "tid", type=click.IntRange(1, MAX_PID), metavar="TID", help="The thread that step and next move."
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
@click.argument("pid", metavar="PID")
@click.argument("name", metavar="COMMAND", type=click.Choice(list(COMMAND_ARGUMENTS)))
@click.argument("argument", required=False, metavar="[WHERE|WHAT|MODE|MB]")
def command(pid: str, name: str, argument: str | None, tid: int | None, as_json: bool) -> None:
    """Tell the recording of process PID what to do.

    \b
    status            what is stopped, and where
    pause, continue   have all threads stop, or go on
    step              one instruction of a thread
    next, step-over   one instruction with what it calls
    break WHERE       stop there: an address, a symbol (main, libc.so.6!malloc), or main+0x10
    delete WHERE      take that back
    include WHAT      record that from now on, too: as --include of `clew record`
    exclude WHAT      record that no longer
    only WHAT         record nothing but that from now on
    mode MODE         record how often all runs (counts), or the order, too (full; auto: as far as a budget goes)
    budget MB         modes auto and full: so much of the order a second from now on; `all`, or 0 to count only
    detach            leave the process: it goes on natively
    kill              end it

    A process that is stopped needs no debugger for it, and goes on should clew be killed.
    """
    from clew.cli.control_text import iter_lines

    process = parse_pid(pid)
    takes = COMMAND_ARGUMENTS[name]
    if (takes in _WORDS) != (argument is not None):
        raise UsageError(f"{name} takes {_WORDS.get(takes, 'no argument')}")
    how: dict[str, Any] = {}
    if argument is not None:
        parse = {"budget": _parse_budget, "mode": _parse_mode}.get(takes, str)
        how[takes] = parse(argument)
    answer = ControlClient.find(process).do(name, tid=tid or 0, **how)
    if as_json:
        click.echo(json.dumps(_with_hexadecimal(answer)))
        return
    for line in iter_lines(name, answer):
        click.echo(line)


def _parse_mode(text: str) -> str:
    if text not in TOLD_MODES:
        raise UsageError(f"mode {text!r}: neither counts, full nor auto")
    return text


def _parse_budget(text: str) -> int:
    """Bytes a second; -1 for all. Raises UsageError."""
    if text == "all":
        return -1
    try:
        budget = float(text)
    except ValueError as error:
        raise UsageError(f"budget {text!r}: not a number of MB, nor all") from error
    parsed = parse_budget(budget, "auto")
    return -1 if parsed is None else parsed


def _with_hexadecimal(value: object) -> object:
    """Addresses and registers as hexadecimal strings, as everywhere in clew's JSON."""
    if isinstance(value, dict):
        return {
            key: {name: f"{register:#x}" for name, register in entry.items()}
            if key == "registers"
            else f"{entry:#x}"
            if key == "address"
            else _with_hexadecimal(entry)
            for key, entry in value.items()
        }
    return [_with_hexadecimal(entry) for entry in value] if isinstance(value, list) else value
