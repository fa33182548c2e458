"""The sessions that have their probes in processes of this one: who comes, what they ask, what they are told.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from clew.address import MAX_PID, Pid
from clew.errors import ClewError
from clew.probing.leaving import find_children
from clew.protocol._constants import SCHEMA_HASH
from clew.sessions.probes.sharing.channel import Channel, Message
from clew.sessions.probes.sharing.guest import Guest
from clew.sessions.probes.sharing.meeting import Listener
from clew.sessions.probes.sharing.told_specs import choice_from_json
from clew.version import __version__

if TYPE_CHECKING:
    from clew.sessions.probes.probed_target import ProbedTarget
    from clew.sessions.probes.sharing.host import Host
    from clew.sessions.probes.target import Target
    from clew.sessions.probes.waiting import Waiting

__all__ = ["VERSION_TOLD", "Guests"]

VERSION_TOLD: Final[list[Any]] = [__version__, SCHEMA_HASH.hex()]
"""Both have to speak alike: what is captured is told as it is."""
_LOOK_SECONDS: Final = 1.0
_HELLO_SECONDS: Final = 10.0
_FLUSH_SECONDS: Final = 10.0


class Guests:
    """Of the session `host`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._listener: Listener | None = None
        self._new: dict[Channel, float] = {}
        """Who has not said yet what it wants."""
        self._guests: list[Guest] = []
        self._moving: dict[Pid, tuple[float, list[Guest]]] = {}
        """Who is to be in processes that are attached to again, and since when they are not."""
        self._look_at: dict[ProbedTarget, float] = {}

    def __bool__(self) -> bool:
        return bool(self._guests)

    def listen(self) -> None:
        """Be found by others, from now on."""
        if self._listener is None:
            self._listener = Listener()

    def in_target(self, target: ProbedTarget) -> list[Guest]:
        """Those in a process."""
        return [guest for guest in self._guests if guest.is_in(target)]

    def advance(self) -> None:
        """Hear who has come, do what is asked, tell what is to be told."""
        if self._listener is None:
            return
        for connection, pid in self._listener.accept():
            channel = Channel(connection)
            if pid != os.getpid() and self._host.has(pid):
                channel.close()
            else:
                self._new[channel] = time.monotonic() + _HELLO_SECONDS
        for channel, until in list(self._new.items()):
            for message in channel.receive():
                del self._new[channel]
                self._welcome(channel, message)
                break
            if channel in self._new and (channel.is_closed or time.monotonic() > until):
                del self._new[channel]
                channel.close()
        for guest in list(self._guests):
            for message in guest.channel.receive():
                guest.hear(message)
            self._tell(guest)
            if guest.channel.is_closed:
                self._guests.remove(guest)
                guest.leave()
        for target in {id(one): one for guest in self._guests for one in guest.targets}.values():
            if self._is_over(target):
                self._host.drain([target])
                for guest in self.in_target(target):
                    guest.forward()
                    guest.forget(target)

    def _tell(self, guest: Guest) -> None:
        guest.forward()
        guest.tell_losses()
        guest.tell_states()
        guest.channel.advance()

    def _welcome(self, channel: Channel, message: Message) -> None:
        """Whoever has come wants to be in a process."""
        pid = message.told.get("pid")
        if message.do != "join" or type(pid) is not int or not 0 < pid <= MAX_PID:
            channel.close()
            return
        target = next((one for one in self._host.owned if one.pid == pid), None)
        if target is None or self._is_over(target):
            is_child = any(one.shares_with(Pid(pid)) for one in self._host.owned)
            self._refuse(channel, "is a forks' child of a process with probes, and has those" if is_child else "")
            return
        if message.told.get("version") != VERSION_TOLD:
            self._refuse(channel, "has probes of another version of clew")
            return
        try:
            guest = Guest(self._host, channel, choice_from_json(message.told.get("choice")))
        except (ClewError, KeyError) as error:
            self._refuse(channel, str(error))
            return
        guest.join(target, "joined")
        self._guests.append(guest)

    def _refuse(self, channel: Channel, reason: str) -> None:
        channel.send({"do": "refused", "reason": reason})
        channel.close()

    def hold(self, waiting: Waiting) -> bool:
        """Tell who is concerned of a thread that waits; False: it is none of theirs."""
        return any(guest.hold(waiting) for guest in self._guests)

    def follow(self, before: ProbedTarget, now: ProbedTarget) -> None:
        """What a process has executed is a process of its guests, too; it does not run yet."""
        for guest in self.in_target(before):
            guest.join(now)

    def move(self, target: ProbedTarget, pids: Iterable[Pid]) -> None:
        """A process was left, to be attached to again with what it has forked."""
        self._moving.update({pid: (time.monotonic(), self.in_target(target)) for pid in pids})
        for guest in self.in_target(target):
            guest.forward()
            guest.forget(target, is_told=False)

    def arrive(self, target: ProbedTarget) -> None:
        """A process was attached to: guests are there again that were."""
        since, guests = self._moving.pop(target.pid, (0.0, []))
        for guest in guests:
            if guest in self._guests:
                guest.join(target)
                text = f"process {target.pid}: nothing was told for {time.monotonic() - since:.2f} s"
                guest.channel.send({"do": "remark", "text": f"{text}, while forks' children got their own probes"})

    def forget(self, target: ProbedTarget) -> None:
        """A process is let go of."""
        self._look_at.pop(target, None)
        for guest in self.in_target(target):
            guest.forward()
            guest.forget(target)

    def end_events(self, target: ProbedTarget, text: str) -> None:
        """A process can have no events any more, for that reason."""
        for guest in self.in_target(target):
            guest.end_events(target)
            guest.channel.send({"do": "remark", "text": text})

    def find_staying(self, targets: Iterable[Target]) -> list[ProbedTarget]:
        """Those of these processes that go on and have guests, and all others in which these are."""
        found = [one for one in self._host.owned if one in targets and self._stays(one)]
        guests = [guest for guest in self._guests if any(guest.is_in(one) for one in found)]
        return [one for one in self._host.owned if one in found or any(guest.is_in(one) for guest in guests)]

    def _stays(self, target: ProbedTarget) -> bool:
        return bool(self.in_target(target)) and not self._is_over(target, is_sure=True)

    def _is_over(self, target: ProbedTarget, *, is_sure: bool = False) -> bool:
        """Whether a process has ended, and no forks' child has its probes. That is looked at now and then."""
        if not target.has_ended():
            return False
        now = time.monotonic()
        if not is_sure and now < self._look_at.get(target, 0):
            return False
        self._look_at[target] = now + _LOOK_SECONDS
        return not find_children([target.process])[target.pid]

    def take_over(self, targets: Sequence[ProbedTarget]) -> list[int]:
        """This process has the guests in `targets` from now on, and is a child of the one that had them; the sockets
        that it needs."""
        self._guests = [guest for guest in self._guests if any(guest.is_in(one) for one in targets)]
        found = [guest.channel.fileno() for guest in self._guests] + [one.fileno() for one in self._new]
        if self._listener is not None:
            self._listener.take_over()
            found.append(self._listener.fileno())
        return [fd for fd in found if fd >= 0]

    def let_go(self, targets: Sequence[ProbedTarget], *, is_going_on: bool) -> None:
        """Another process has the guests in `targets` from now on; or, where none does, they are to see to it that they
        have the processes themselves."""
        for guest in list(self._guests):
            if any(guest.is_in(one) for one in targets):
                self._guests.remove(guest)
                guest.channel.close()
        if is_going_on:
            self._stop_listening(is_gone=False)

    def close(self) -> None:
        """Have no guests any more: who is one still finds out by itself."""
        for guest in self._guests:
            guest.channel.flush(_FLUSH_SECONDS)
            guest.channel.close()
        self._guests.clear()
        self._stop_listening(is_gone=True)

    def _stop_listening(self, *, is_gone: bool) -> None:
        for channel in self._new:
            channel.close()
        self._new.clear()
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.close(is_gone=is_gone)
            self._listener = None
