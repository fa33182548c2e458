"""What calls do to things, by their descriptions: each call that is told changes who holds what, and touches entities.

Runs in the controller. Nothing here knows a function: effects say what is to be done (`docs/api-descriptions.md`), and
raw types say which table a reference is in. A call's arguments are what they were when it began; what it makes is there
when it returns.
"""

from __future__ import annotations

from typing import Final

from clew.api.descriptions import Descriptions
from clew.api.entities.effects import EFFECTS
from clew.api.entities.holders import Holder
from clew.api.entities.scene import Scene, Told, Touch
from clew.api.entities.slots import Slot
from clew.api.entities.things import Entity, Things

__all__ = ["World"]

_DELETED: Final = " (deleted)"


class World:
    """Processes, what they hold, and all things. Calls are told in the order in which they return."""

    def __init__(self, descriptions: Descriptions) -> None:
        self.things = Things()
        self._descriptions = descriptions
        self._holders: dict[int, Holder] = {}
        self._threads: dict[int, int] = {}
        """Entities by the numbers of threads, and of processes that nobody told of."""
        self.peers: dict[int, int] = {}
        """The entity at the other end of a socket, by that of the one."""
        self.passed: dict[int, list[tuple[int, ...]]] = {}
        """By the entity of a socket the entities that were sent to it and not received yet, message by message."""
        self._made: dict[int, tuple[int, int]] = {}
        """By thread what its last call gave a reference to, and when that call began."""

    # ------------------------------------------------------------------------------------------------ processes

    def add_process(
        self, pid: int, name: str, time_ns: int, parent_pid: int | None = None, shares: frozenset[str] = frozenset()
    ) -> Holder:
        """A process is there: a child of another one that is known, with what that holds (`shares`: not as a copy), or
        one of its own."""
        parent = None if parent_pid is None else self._holders.get(parent_pid)
        entity = self.things.make(
            "process", name, time_ns, pid=pid, parent=None if parent is None else parent.entity_id
        )
        if parent is None:
            holder = Holder(pid, entity.entity_id)
        else:
            holder = parent.copy(
                pid,
                entity.entity_id,
                time_ns,
                shares_files="Files" in shares,
                shares_place="Directory" in shares,
                shares_memory="Memory" in shares,
            )
        self._holders[pid] = holder
        return holder

    def holder(self, pid: int, time_ns: int) -> Holder:
        """The process of that number; one that nobody told of is there from now on."""
        return self._holders.get(pid) or self.add_process(pid, f"process {pid}", time_ns)

    def holder_of(self, entity_id: int) -> Holder | None:
        """What the process holds that is an entity."""
        pid = self.things[entity_id].pid
        found = None if pid is None else self._holders.get(pid)
        return found if found is not None and found.entity_id == entity_id else None

    def add_thread(self, pid: int, tid: int, time_ns: int) -> Entity:
        """A thread of a process, which is there since `time_ns`, or was met since then."""
        holder = self.holder(pid, time_ns)
        known = self.things[self._threads[tid]] if tid in self._threads else None
        if known is not None and known.pid == pid and known.kind == "thread" and known.first_ns >= time_ns:
            self.things.meet(known.entity_id, time_ns)
            return known
        entity = self.things.make("thread", f"thread {tid}", time_ns, pid=pid, tid=tid, parent=holder.entity_id)
        entity.process_id = self.things[holder.entity_id].process_id
        self._threads[tid] = entity.entity_id
        return entity

    def caller(self, call: Told) -> int:
        """The entity of the thread that made a call; of a process' first one that is the process."""
        holder = self.holder(call.pid, call.begin_ns)
        if call.tid == call.pid:
            return holder.entity_id
        known = self._threads.get(call.tid)
        if known is not None and self.things[known].pid == call.pid:
            return known
        return self.add_thread(call.pid, call.tid, call.begin_ns).entity_id

    def task(self, number: int, time_ns: int) -> int:
        """The entity of a process or thread; one that nobody told of is there from now on."""
        holder = self._holders.get(number)
        if holder is not None:
            return holder.entity_id
        if number not in self._threads:
            entity = self.things.make("process", f"process {number}", time_ns)
            entity.details["pid"] = number
            self._threads[number] = entity.entity_id
        return self._threads[number]

    def note_made(self, call: Told, entity_id: int) -> None:
        """A call gave a reference to an entity."""
        self._made[call.tid] = (call.begin_ns, entity_id)

    def made_within(self, call: Told) -> int | None:
        """What the last call within a call gave a reference to; None: none did."""
        begin_ns, entity_id = self._made.get(call.tid, (-1, -1))
        return entity_id if begin_ns >= call.begin_ns else None

    def execute(self, pid: int, name: str, time_ns: int) -> Holder:
        """A process executes another program, and is an entity of its own from now on."""
        holder = self.holder(pid, time_ns)
        holder.execute(time_ns)
        holder.entity_id = self.things.make("process", name, time_ns, pid=pid, parent=holder.entity_id).entity_id
        return holder

    def inherit(self, pid: int, descriptor: int, kind: str, name: str, time_ns: int, *, closes_on_exec: bool) -> Entity:
        """A process has a descriptor already when it is met, which was before all of its calls."""
        # So /proc tells of what had a path, which may be another's by now (proc(5)).
        plain = name.removesuffix(_DELETED)
        if plain == name and name.startswith("/"):
            entity = self.things.at_path(name, time_ns, kind)
        else:
            entity = self.things.make(kind, plain, time_ns)
            if plain.startswith("/"):
                entity.details["path"] = plain
        self.holder(pid, time_ns).files.set(("fd", descriptor), 0, Slot(entity.entity_id, closes_on_exec))
        return entity

    def set_directory(self, pid: int, path: str, time_ns: int) -> None:
        """Where a process is when it is met."""
        self.holder(pid, time_ns).place.directory = path

    # ------------------------------------------------------------------------------------------------ calls

    def see(self, call: Told) -> list[Touch]:
        """What a call had to do with which entities; what it did is done."""
        if not call.function.effects:
            return []
        scene = Scene(self, self._descriptions, call)
        touches: dict[tuple[int, str, int | None], Touch] = {}
        for effect in scene.function.effects:
            if scene.holds(effect):
                for touch in EFFECTS[effect.kind](scene, effect):
                    touches.setdefault((touch.entity_id, touch.role, touch.argument), touch)
        for touch in touches.values():
            self.things.meet(touch.entity_id, call.begin_ns)
            self.things.meet(touch.entity_id, call.end_ns)
        return list(touches.values())
