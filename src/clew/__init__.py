"""clew follows every thread of a native Linux program and records what really ran.

    import clew

    trace = clew.record(["gzip", "-9k", "big.tar"])     # a clew.Trace
    trace.blocks, trace.edges, trace.images             # Arrow tables

Importing it is cheap: what is heavy is imported when it is used.
"""

from __future__ import annotations

from clew.version import __version__

# Not from `typing`: an interrupt while that is imported could not be told in one line yet.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from clew.analysis.comparison.trace_diff import TraceDiff
    from clew.errors import ClewError
    from clew.protocol.codec import AccessKind, FlowKind
    from clew.recording.options.arguments import Text
    from clew.recording.options.record_options import RecordOptions
    from clew.recording.session.interrupts import InterruptGuard
    from clew.sessions.choice import FollowedThread
    from clew.sessions.events.event_stream import EventStream
    from clew.sessions.events.parsing import parse
    from clew.sessions.inside.own_events import OwnEvents
    from clew.sessions.probes.event_tables import ProbeEvent
    from clew.sessions.probes.native_session import NativeSession
    from clew.sessions.probes.probe import Probe
    from clew.sessions.probes.probe_sum import ProbeSum
    from clew.sessions.session import Session
    from clew.sessions.streams import Stream
    from clew.sessions.transforms.blocks import CodeBlock, CodeInstruction
    from clew.sessions.transforms.native import NativeCode
    from clew.sessions.transforms.transformers import Transformer
    from clew.trace import Trace

__all__ = [
    "AccessKind",
    "ClewError",
    "CodeBlock",
    "CodeInstruction",
    "EventStream",
    "FlowKind",
    "FollowedThread",
    "NativeCode",
    "NativeSession",
    "OwnEvents",
    "Probe",
    "ProbeEvent",
    "ProbeSum",
    "Session",
    "Trace",
    "TraceDiff",
    "Transformer",
    "__version__",
    "attach",
    "attach_session",
    "diff",
    "follow_me",
    "parse",
    "probe_session",
    "record",
    "spawn",
]


def record(
    command: Sequence[Text],
    *,
    mode: str = "counts",
    busy_limit: int | None = None,
    budget: float | None = None,
    output: Text | None = None,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    environment: Mapping[str, Text] | Mapping[bytes, Text] | None = None,
    follow: bool = True,
    quiet: bool = False,
) -> Trace:
    """Run `command`, a program and its arguments, record it until it ends, and open its trace.

    Words of the command, and what is in `environment`, may be bytes and paths as well, as `subprocess` has them.
    `mode` is `counts`, `coverage`, `full`, `auto`, which records up to `budget` MB of the order in a second, 4 unless
    given, or `region`, in which threads are busy from the level `busy_limit` on, 10 unless given. `output` is the
    directory to make; by default PROGRAM.clew in the working directory, with a number if that is taken. `include` and
    `exclude` take one or several of: image globs (`libc.so*`), symbols (`libc.so.6!malloc`), address ranges
    (`0x1000-0x2000`). `environment` replaces the command's environment. With `follow` child processes are recorded,
    too, and the programs that processes go on with. How the command ended is in the trace, not raised. What went wrong
    short of failure becomes a warning, unless `quiet`.
    Raises ClewError.
    """
    import warnings

    from clew.recording.options.arguments import parse_command, parse_environment, parse_output
    from clew.recording.options.output import default_output
    from clew.recording.options.record_options import parse_options
    from clew.recording.session.interrupts import InterruptGuard
    from clew.recording.session.launched import Launch
    from clew.recording.session.session import start_session
    from clew.trace import Trace

    words = parse_command(command)
    options = parse_options(
        default_output(words[0]) if output is None else parse_output(output),
        mode=mode,
        busy_limit=busy_limit,
        budget=budget,
        include=include,
        exclude=exclude,
        follow=follow,
    )
    launch = Launch(words, environment=None if environment is None else parse_environment(environment))
    with InterruptGuard().held() as guard:
        session = start_session(launch, options, guard)
        session.wait()
        result = session.finish()
    if not quiet:
        for message in result.warnings:
            warnings.warn(message, stacklevel=2)
    if result.failure is not None:
        raise result.failure
    return Trace(result.output)


def attach(
    pid: int,
    *,
    duration: float | None = None,
    mode: str = "counts",
    busy_limit: int | None = None,
    budget: float | None = None,
    output: Text | None = None,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    follow: bool = True,
    quiet: bool = False,
) -> Trace:
    """Record the running process `pid` for `duration` seconds, leave it as it was, and open the trace.

    Without `duration` until an interrupt (SIGINT or SIGTERM to this process), or until the process has ended and, with
    `follow`, the children that it made meanwhile, which are recorded and left like it. The rest is as for `record`; by
    default the directory is named after the program. Raises ClewError.
    """
    import warnings

    from clew.address import Pid
    from clew.recording.options.arguments import parse_output
    from clew.recording.options.output import default_output
    from clew.recording.options.record_options import parse_options
    from clew.recording.session.attached import Attach, name_of
    from clew.recording.session.interrupts import LeaveGuard
    from clew.recording.session.session import start_session
    from clew.trace import Trace

    options = parse_options(
        default_output(name_of(Pid(pid)).replace("/", "_")) if output is None else parse_output(output),
        mode=mode,
        busy_limit=busy_limit,
        budget=budget,
        include=include,
        exclude=exclude,
        follow=follow,
    )
    target = Attach(Pid(pid), duration)
    with LeaveGuard().held() as guard:
        session = start_session(target, options, guard)
        session.wait()
        result = session.finish()
    if not quiet:
        for message in result.warnings:
            warnings.warn(message, stacklevel=2)
    if result.failure is not None:
        raise result.failure
    return Trace(result.output)


def spawn(
    command: Sequence[Text],
    *,
    mode: str = "counts",
    budget: float | None = None,
    output: Text | None = None,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    environment: Mapping[str, Text] | Mapping[bytes, Text] | None = None,
    follow: bool = True,
    stdin: Stream = None,
    stdout: Stream = None,
    stderr: Stream = None,
    cwd: Text | None = None,
    told_command: Callable[[Sequence[str]], list[str]] | None = None,
    guard: InterruptGuard | None = None,
) -> Session:
    """Start `command`, a program and its arguments, stopped in front of its first instruction, and follow it.

    The `Session` has it in its hands: `resume` lets it go, `on_call` has functions told of. What is recorded is thrown
    away with the session unless there is an `output`. Standard streams are given as `subprocess` takes them: of a pipe
    the session has the other end. `told_command` makes of each process' command line, and of a thread's
    name as one of one word, what is written of it. A `guard` that is held takes signals to this process as `record`
    does. The rest is as for `record`. Raises ClewError.
    """
    import math

    from clew.recording.options.arguments import parse_command, parse_directory, parse_environment
    from clew.recording.session.launched import Launch
    from clew.sessions.session import Session
    from clew.sessions.streams import Streams

    words = parse_command(command)
    variables = None if environment is None else parse_environment(environment)
    options = _session_options(output, mode, budget, include, exclude, told_command, follow=follow)
    directory = None if cwd is None else parse_directory(cwd)
    streams = Streams(stdin, stdout, stderr)

    def launch() -> Launch:
        by_number = streams.by_number
        return Launch(
            words,
            environment=variables,
            streams=by_number,
            directory=directory,
            pause_seconds=math.inf,
            adopts_orphans=guard is not None,
        )

    return Session(launch, options, is_spawned=True, streams=streams, guard=guard)


def attach_session(
    pid: int,
    *,
    mode: str = "counts",
    budget: float | None = None,
    output: Text | None = None,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    follow: bool = True,
    told_command: Callable[[Sequence[str]], list[str]] | None = None,
    guard: InterruptGuard | None = None,
) -> Session:
    """Follow the running process `pid`, which runs on, in a `Session`; the rest is as for `spawn`. Raises ClewError."""
    from clew.address import Pid
    from clew.recording.session.attached import Attach
    from clew.sessions.session import Session

    options = _session_options(output, mode, budget, include, exclude, told_command, follow=follow)
    return Session(lambda: Attach(Pid(pid), None), options, is_spawned=False, guard=guard)


def probe_session(
    target: int | Sequence[Text],
    *,
    environment: Mapping[str, Text] | Mapping[bytes, Text] | None = None,
    stdin: Stream = None,
    stdout: Stream = None,
    stderr: Stream = None,
    cwd: Text | None = None,
    backend: str = "auto",
    require: str | None = None,
) -> NativeSession:
    """Have probes in a program that is not followed: it runs its own code, at its own speed.

    `target` is the number of a process that runs, which runs on; or a command, a program and its arguments, which is
    started, and stopped in front of its first instruction until `resume`. Standard streams, `environment` and `cwd` are
    as for `spawn`, and of a command only. `backend` is `auto`, `jump`, which has a warning where a place traps, or
    `trap`; what can't have a jump is refused if `jump` is what they `require`. Children, and programs that are
    executed, have the probes, too. Raises ClewError.
    """
    from clew.address import Pid
    from clew.errors import UsageError
    from clew.recording.options.arguments import parse_command, parse_directory, parse_environment
    from clew.sessions.engine_follower import EngineFollower
    from clew.sessions.probes.backends import parse_native_backend
    from clew.sessions.probes.native_launch import attach_to, start
    from clew.sessions.probes.native_session import NativeSession
    from clew.sessions.streams import Streams

    choice = parse_native_backend(backend, require)
    if isinstance(target, int):
        if any(one is not None for one in (environment, stdin, stdout, stderr, cwd)):
            raise UsageError(f"process {target} runs already: what it is started with can't be chosen")
        return NativeSession(attach_to(Pid(target)), choice, EngineFollower())
    words = parse_command(target)
    variables = None if environment is None else parse_environment(environment)
    directory = None if cwd is None else parse_directory(cwd)
    streams = Streams(stdin, stdout, stderr)
    try:
        begin = start(words, variables, streams, directory)
    except BaseException:
        streams.close()
        raise
    return NativeSession(begin, choice, EngineFollower(), streams)


def follow_me(
    *,
    events: str | Iterable[str] = ("call", "ret"),
    interpreter: bool = False,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    time: bool = False,
    limit: int = 20_000_000,
) -> OwnEvents:
    """Have the native code followed that the calling thread executes in the `with` block of what this gives.

    `events`, `include`, `exclude` and `time` are as for sessions. Code of the interpreter is left out unless
    `interpreter`: that of the file, executable or library, that Python itself is in. Calls and returns between it and
    other code are told; so is what it calls elsewhere, as in the C library. At most `limit` events of 48 bytes are
    kept, further ones are counted. A process of its own attaches to this one for it: all threads run a little slower
    meanwhile, and children made in the block are not followed. Raises UsageError, FilterError.
    """
    from clew.errors import UsageError
    from clew.recording.options.arguments import parse_patterns
    from clew.recording.options.filters import parse_filters
    from clew.sessions.events.event_stream import parse_kinds
    from clew.sessions.inside.own_events import OwnEvents, OwnRequest

    names = (events,) if isinstance(events, str) else tuple(events)
    included, excluded = tuple(parse_patterns(include)), tuple(parse_patterns(exclude))
    parse_kinds(names)
    parse_filters(included + excluded)
    if limit < 1:
        raise UsageError(f"limit {limit}: there must be room for one event")
    return OwnEvents(OwnRequest(names, included, excluded, interpreter, time, limit))


def _session_options(
    output: Text | None,
    mode: str,
    budget: float | None,
    include: str | Iterable[str],
    exclude: str | Iterable[str],
    told_command: Callable[[Sequence[str]], list[str]] | None,
    *,
    follow: bool,
) -> RecordOptions:
    from pathlib import Path

    from clew.dataclass import replace
    from clew.recording.options.arguments import parse_output
    from clew.recording.options.record_options import parse_options

    # Without a name: the session has a folder of its own.
    path = Path() if output is None else parse_output(output)
    options = parse_options(path, mode=mode, budget=budget, include=include, exclude=exclude, follow=follow)
    return replace(options, told_command=told_command)


def diff(a: Trace | Text, b: Trace | Text, *, merge: bool = False) -> TraceDiff:
    """Compare the traces `a` and `b`, opened or given by their paths.

    Of the result, `is_equal` says whether nothing differs; `rows`, `rows_only_in` and `to_dict` say what does, by
    function, block or edge, as `clew diff --json` has it (docs/diff.md): addresses are hexadecimal strings, counts are
    executions and instructions. `blocks` and `edges` have all of it as arrays. `order` says where threads part and meet
    again, if both are of mode full. With `merge` processes are not told apart. Raises ClewError where
    a trace can't be read.
    """
    import os

    from clew.analysis.comparison.trace_diff import TraceDiff
    from clew.trace import Trace

    of_a, of_b = (trace if isinstance(trace, Trace) else Trace(os.fsdecode(trace)) for trace in (a, b))
    return TraceDiff(of_a, of_b, merge=merge)


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "aio":
        return import_module("clew.aio")
    module = _LATE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


_LATE = {
    "ClewError": "clew.errors",
    "CodeBlock": "clew.sessions.transforms.blocks",
    "CodeInstruction": "clew.sessions.transforms.blocks",
    "EventStream": "clew.sessions.events.event_stream",
    "AccessKind": "clew.protocol.codec",
    "FlowKind": "clew.protocol.codec",
    "FollowedThread": "clew.sessions.choice",
    "NativeCode": "clew.sessions.transforms.native",
    "NativeSession": "clew.sessions.probes.native_session",
    "OwnEvents": "clew.sessions.inside.own_events",
    "Probe": "clew.sessions.probes.probe",
    "ProbeEvent": "clew.sessions.probes.event_tables",
    "ProbeSum": "clew.sessions.probes.probe_sum",
    "Session": "clew.sessions.session",
    "Trace": "clew.trace",
    "TraceDiff": "clew.analysis.comparison.trace_diff",
    "Transformer": "clew.sessions.transforms.transformers",
    "parse": "clew.sessions.events.parsing",
}
"""Where what is imported when it is first asked for is."""
