"""`clew api -- COMMAND`: the system calls of a program and its children as text, while they are made.

Runs in the controller.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from clew.api.vocabulary import FILTERS
from clew.cli.api_following import follow_to_the_end
from clew.cli.api_headers import header_options, read_headers
from clew.cli.api_output import open_output
from clew.cli.api_redaction import read_redaction, redaction_options
from clew.cli.api_remarks import say_of_functions, say_of_injections, say_unseen, say_what_is_raw
from clew.cli.light_numpy import prepare_numpy_core

if TYPE_CHECKING:
    from clew.api.descriptions import Descriptions
    from clew.sessions.api_counts import ApiCounts, CallSums
    from clew.sessions.call_tables import CallTables
    from clew.sessions.call_world import LiveWorld
    from clew.sessions.session import Session

__all__ = ["command"]


_MOST_WAITING_BYTES: Final = 8 << 20
"""So much that was captured waits to be told: some ten thousand calls."""


def _read_filters(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    kinds = {kind.lower(): kind for kind in FILTERS}
    found = []
    for word in (word.strip() for text in given for word in text.split(",")):
        if word.lower() not in kinds:
            raise click.BadParameter(f"{word!r}: kinds are {', '.join(FILTERS)}")
        found.append(kinds[word.lower()])
    return tuple(dict.fromkeys(found))


@click.command(name="trace", context_settings={"allow_interspersed_args": False})
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KIND[,KIND]...",
    callback=_read_filters,
    help=f"Only calls of this kind; may be given again. Kinds are {', '.join(FILTERS)}.",
)
@click.option(
    "--function",
    "patterns",
    multiple=True,
    metavar="IMAGE:NAME",
    help="Calls of functions, too, or only: libssl*:SSL_*, malloc; may be given again.",
)
@header_options
@click.option(
    "--at",
    "places",
    multiple=True,
    metavar="NAME=IMAGE+0xOFFSET",
    help="Calls of a function without a symbol: SSL_write=app+0x1234; may be given again.",
)
@click.option(
    "--vdso", "has_vdso", is_flag=True, help="Calls that the vDSO answers, too, without the kernel: clock_gettime."
)
@click.option(
    "--api-file",
    "files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A description of one's own.",
)
@click.option("-y", "--names", "has_names", is_flag=True, help="Say what descriptors stand for: 3</etc/passwd>.")
@click.option("-P", "--path", "paths", multiple=True, metavar="PATH", help="Only calls about a file: *, ?, [].")
@click.option("--fd", "numbers", multiple=True, type=int, metavar="N", help="Only calls that name a descriptor.")
@click.option("--failed", is_flag=True, help="Only calls that failed.")
@click.option(
    "-s",
    "--string",
    "limit",
    type=click.IntRange(0),
    default=32,
    metavar="N",
    help="So many bytes of what is read and written; default 32.",
)
@redaction_options
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file, not to stderr.")
@click.option(
    "--trace",
    "trace",
    type=click.Path(path_type=Path),
    metavar="OUT.clew",
    help="Write a trace, too, with the calls and what they are about.",
)
@click.option(
    "--mode",
    type=click.Choice(["coverage", "counts", "full"]),
    help="With --trace: what else is recorded; default counts.",
)
@click.option("-k", "--stack", "has_stacks", is_flag=True, help="Behind each call who made it, and who called that.")
@click.option("-c", "--count", "counts", is_flag=True, help="Add up calls, errors and time by name, at the end.")
@click.option(
    "--inject",
    "injections",
    multiple=True,
    metavar="SPEC",
    help="Have calls fail, or wait: openat:path=/etc/*:error=ENOENT:when=3+; may be given again.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a call.")
@click.option("--tree", "as_tree", is_flag=True, help="At the end: each thread's calls, within those that made them.")
@click.option(
    "-p", "--pid", type=click.IntRange(1), metavar="PID", help="Of a process that runs already, until Ctrl-C."
)
@click.option("--duration", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="With --pid: so long.")
@click.argument("command_line", metavar="[-- COMMAND]", nargs=-1, type=click.UNPROCESSED)
def command(
    command_line: tuple[str, ...],
    pid: int | None,
    duration: float | None,
    filters: tuple[str, ...],
    patterns: tuple[str, ...],
    has_vdso: bool,
    headers: tuple[str, ...],
    header_folders: tuple[Path, ...],
    places: tuple[str, ...],
    files: tuple[Path, ...],
    has_names: bool,
    paths: tuple[str, ...],
    numbers: tuple[int, ...],
    failed: bool,
    limit: int,
    hidden_patterns: tuple[str, ...],
    hidden_names: tuple[str, ...],
    no_data: bool,
    secrets: bool,
    output: Path | None,
    trace: Path | None,
    mode: str | None,
    has_stacks: bool,
    counts: bool,
    injections: tuple[str, ...],
    as_json: bool,
    as_tree: bool,
) -> int:
    """Show the system calls of COMMAND and its children, or of a process, with arguments, results and times."""
    if bool(command_line) == (pid is not None):
        raise click.UsageError("a command behind --, or a process by --pid")
    if duration is not None and pid is None:
        raise click.UsageError("--duration is for --pid")
    if mode is not None and trace is None:
        raise click.UsageError("--mode is for --trace")
    if as_tree and (as_json or counts):
        raise click.UsageError("--tree is another form than --json and --count")
    if as_json and counts:
        raise click.UsageError("--json has an object for each call, --count none of them")
    prepare_numpy_core()
    import clew
    from clew.api.reading import load_built_in
    from clew.cli.api_choice import CallChoice
    from clew.cli.api_teller import Teller, Telling
    from clew.recording.session.interrupts import InterruptGuard, LeaveGuard
    from clew.sessions.api_calls import ApiLog
    from clew.sessions.api_functions import VDSO, FunctionChoice, parse_pattern, parse_place

    descriptions = load_built_in(files)
    _check_injections(injections, descriptions)
    redaction = read_redaction(hidden_patterns, hidden_names, no_data=no_data, secrets=secrets)
    if redaction is not None:
        descriptions.redact(redaction)
    told = None if redaction is None else redaction.command
    declared = read_headers(headers, header_folders, descriptions, has_functions=bool(patterns))
    choice = None
    asked = [*map(parse_pattern, patterns), *([VDSO] if has_vdso else [])]
    if asked or places:
        choice = FunctionChoice(asked, descriptions, [*map(parse_place, places)], declared, filters)
    with ExitStack() as stack:
        out = sys.stderr if output is None else stack.enter_context(open_output(output))
        mode = "coverage" if trace is None else mode or "counts"
        guard = stack.enter_context((InterruptGuard() if pid is None else LeaveGuard()).held())
        if pid is None:
            environment, words = _given_environment(), list(command_line)
            opened = clew.spawn(words, mode=mode, output=trace, environment=environment, told_command=told, guard=guard)
        else:
            opened = clew.attach_session(pid, mode=mode, output=trace, told_command=told, guard=guard)
        session = stack.enter_context(opened)
        injected = [session.inject(text, descriptions=descriptions) for text in injections]
        tables = None if trace is None else _open_tables(session, descriptions)
        end = None if duration is None else time.monotonic() + duration
        # Functions alone, unless kinds of system calls are asked for besides.
        of_calls = None if choice is not None and not filters else filters
        needs_world = has_names or bool(paths) or bool(numbers)
        counted = log = stacks = None
        if counts and trace is None and choice is None and not needs_world:
            from clew.sessions.api_counts import ApiCounts

            # Added up in the program itself, without a word of single ones.
            counted = ApiCounts(session, descriptions, filters)
        else:
            stacks = session.call_stacks() if has_stacks else None
            log = ApiLog(
                session,
                descriptions,
                of_calls,
                functions=choice,
                keeps=trace is not None,
                stacks=stacks,
                injections=injected,
                sees_world=needs_world or trace is not None,
                most_bytes=_MOST_WAITING_BYTES,
            )
        teller = sums = None
        if log is not None:
            world = _open_world(session, descriptions) if needs_world else None
            chosen = CallChoice(log.is_told, world, failed, paths, numbers)
            if counts:
                from clew.sessions.api_counts import CallSums

                sums = CallSums(chosen.choose)
            else:
                telling = Telling(limit, as_json, as_tree, has_names)
                teller = Teller(out, descriptions, telling, chosen, stacks)
        if pid is None:
            session.resume()
        take = sums.add if sums is not None else None if teller is None else teller.tell
        status = follow_to_the_end(session, guard, log, take, end, is_left=pid is not None)
        if teller is not None:
            teller.finish()
        if tables is not None and log is not None:
            tables.write(session.trace, log.batches, log.is_told)
        raw = {} if log is None else log.raw
        if counts:
            raw |= _print_counts(out, counted or sums, failed=failed)
        say_of_injections(injected)
        say_unseen(session.statistics)
    say_what_is_raw(raw)
    if choice is not None:
        say_of_functions(choice, is_attached=pid is not None)
    if pid is not None:
        return 0
    return status


def _given_environment() -> dict[bytes, bytes]:
    """The environment that this process was started with: its own view has more."""
    from clew.process.launch import original_environment

    given: dict[bytes, bytes] = {}
    for entry in original_environment():
        name, sign, value = entry.partition(b"=")
        if name and sign:
            # As getenv finds it, the first of a name.
            given.setdefault(name, value)
    return given


# What only some calls of this need is imported there: a start of short programs should not take long.


def _check_injections(texts: tuple[str, ...], descriptions: Descriptions) -> None:
    """Raises UsageError, before anything is started."""
    if texts:
        from clew.api.injection import parse_injection
        from clew.api.injection_plan import choose_system_calls

        for text in texts:
            choose_system_calls(parse_injection(text), descriptions)


def _open_tables(session: Session, descriptions: Descriptions) -> CallTables:
    from clew.sessions.call_tables import CallTables

    return CallTables(descriptions, session.pid)


def _open_world(session: Session, descriptions: Descriptions) -> LiveWorld:
    from clew.sessions.call_world import LiveWorld

    return LiveWorld(session, descriptions)


def _print_counts(out: TextIO, counted: ApiCounts | CallSums | None, *, failed: bool) -> dict[str, int]:
    """How many of the calls were of functions of which nobody knows the parameters, by their names."""
    from clew.cli.calls_text import print_counts

    counts = [] if counted is None else counted.read()
    print_counts(out, counts, failed=failed)
    return {one.name: one.calls for one in counts if one.is_raw}
