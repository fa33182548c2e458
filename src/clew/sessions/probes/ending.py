"""How a session leaves processes: as they were, or, where others have their probes there, to a process of its own.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

from clew.errors import ClewError
from clew.sessions.probes.probed_target import ProbedTarget
from clew.sessions.probes.pulse import Pulse
from clew.sessions.probes.sharing.handing_over import go_on_elsewhere

if TYPE_CHECKING:
    from clew.sessions.probes.session_targets import SessionTargets
    from clew.sessions.probes.target import Target

__all__ = ["close_session", "hand_over"]

_POLL_SECONDS: Final = 0.02


def close_session(session: SessionTargets) -> None:
    """Take all probes out but those of guests; these go on with the processes in which they are."""
    for handed in hand_over(session, session.targets):
        session.forget(handed)
        handed.release()
    session.pulse.close()
    for target in list(session.targets):
        session.drain([target])
        if isinstance(target, ProbedTarget):
            session.guests.forget(target)
        session.left += target.close()
    session.guests.close()


def hand_over(session: SessionTargets, targets: Sequence[Target]) -> list[ProbedTarget]:
    """Have processes with guests go on with these elsewhere, without this session's probes; those that do, among them
    others in which the same guests are."""
    staying = session.guests.find_staying(targets)
    if not staying:
        return []
    session.remove_from(staying)
    session.drain(staying)

    def begin() -> Collection[int]:
        session.keep_only(staying)
        session.pulse = Pulse()
        for target in staying:
            target.process.shared.set_controller()
            session.pulse.add(target.process.shared)
        return session.guests.take_over(staying)

    def go_on(is_told: Callable[[], bool]) -> None:
        try:
            while session.guests and not is_told():
                session.wait(_POLL_SECONDS)
                session.advance()
        finally:
            for target in session.owned:
                with contextlib.suppress(ClewError, OSError):
                    target.close()
            session.guests.close()

    is_going_on = go_on_elsewhere(begin, go_on)
    session.guests.let_go(staying, is_going_on=is_going_on)
    return staying if is_going_on else []
