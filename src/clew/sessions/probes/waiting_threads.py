"""What is done where a thread waits: what a trigger is for, or following it into the program that it executes.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.process.identity import read_group
from clew.sessions.probes.asked import N_NUMBERS
from clew.sessions.probes.executions import begin_following, follow_execution
from clew.sessions.probes.hearing import CLOCKLESS_NUMBER
from clew.sessions.probes.probed_target import ProbedTarget
from clew.sessions.probes.specs import Trigger
from clew.sessions.probes.triggers import pull

if TYPE_CHECKING:
    from clew.sessions.probes.probe_session import ProbeSession
    from clew.sessions.probes.session_targets import SessionTargets
    from clew.sessions.probes.target import Target
    from clew.sessions.probes.waiting import Waiting

__all__ = ["act", "follow"]


def act(session: ProbeSession, waiting: Waiting) -> None:
    """Do what is to be done where a thread has come to, and let it go on."""
    try:
        if waiting.number == CLOCKLESS_NUMBER:
            _end_events(session, waiting.target)
            return
        spec = session.find_spec((waiting.number - 1) // N_NUMBERS)
        if spec is not None and isinstance(spec.consequence, Trigger):
            pull(session, spec.consequence, waiting)
    finally:
        # One that is followed now went on by itself.
        if waiting.target in session.targets:
            waiting.target.reply(waiting.slot)


def _end_events(session: ProbeSession, target: Target) -> None:
    target.takes_events = False
    text = f"process {target.pid}: forbids itself time stamps: there can be no events any more"
    session.remark(text)
    target.change(partial(target.remove, session.event_indices))
    if isinstance(target, ProbedTarget):
        session.guests.end_events(target, text)


def follow(session: SessionTargets, execution: Waiting) -> None:
    """Have the program that a thread is about to execute probed from its first instruction on."""
    target, tid = execution.target, execution.tid
    try:
        pid = read_group(tid)
    except OSError:
        target.reply(execution.slot)
        return
    is_followed = begin_following(tid)
    target.reply(execution.slot)
    process = follow_execution(pid, tid) if is_followed else None
    if process is None or not isinstance(target, ProbedTarget):
        return
    children: list[Pid] = []
    is_same = pid == target.pid
    if is_same:
        # Its other threads went on until it became another program.
        children = target.abandon(process)
        session.drain_last(target)
        session.forget(target)
    with session.remarked(f"process {pid}: executes its program without probes"):
        try:
            session.enter(process, target.origins, target)
        finally:
            process.detach()
    if is_same:
        guests = session.guests.in_target(target)
        session.guests.forget(target)
        target.release()
        for child in children:
            with session.remarked(f"process {child}: has no probes any more"):
                made = session.attach(child, target.origins)
                if isinstance(made, ProbedTarget):
                    for guest in guests:
                        guest.join(made)
