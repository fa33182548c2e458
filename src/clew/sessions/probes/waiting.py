"""Threads that wait at places until clew has done what is to be done there.

Runs in the controller. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from clew.address import Pid, Tid

if TYPE_CHECKING:
    from clew.sessions.probes.target import Target

__all__ = ["Waiting"]


class Waiting(NamedTuple):
    """Thread `tid` of a target's slot `slot` waits at a place of capture `number`. `pid`: the process that its block is
    of; `real_pid`: the process, as far as that is known here."""

    target: Target
    slot: int
    number: int
    pid: Pid
    tid: Tid
    real_pid: Pid
