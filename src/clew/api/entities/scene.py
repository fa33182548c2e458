"""One call as effects see it: its arguments as references, paths, addresses and numbers, and whose call it is.

Runs in the controller.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from clew.api.description import Condition, Effect, Function, Parameter
from clew.api.descriptions import Descriptions
from clew.api.entities.slots import Slot, Slots
from clew.api.members import members_of
from clew.api.pieces import Pointed, Value, register_of
from clew.api.values import is_error, signed
from clew.api.vocabulary import POINTERS, RESULT
from clew.dataclass import dataclass

if TYPE_CHECKING:
    from clew.api.entities.holders import Holder
    from clew.api.entities.world import World

__all__ = ["CURRENT_DIRECTORY", "Reference", "Scene", "Told", "Touch"]

CURRENT_DIRECTORY: Final = -100
"""AT_FDCWD: the descriptor that stands for the process' directory."""

_TASKS: Final = frozenset({"pid", "tid"})


@dataclass(frozen=True)
class Told:
    """A call that has returned, or ended otherwise: `values` by argument; `result` as the register had it, or None."""

    pid: int
    tid: int
    begin_ns: int
    end_ns: int
    function: Function
    values: Sequence[Value]
    result: int | None


@dataclass(frozen=True)
class Touch:
    """A call had to do with an entity. `argument`: which one named it; None: the result."""

    entity_id: int
    role: str
    argument: int | None
    n_bytes: int | None = None


@dataclass(frozen=True)
class Reference:
    """A value that stands for something in a table of a process: in `slots` under `key`; `number` is the value.

    `is_none`: it stands for nothing, as a pointer that is NULL does. A handle that is a number may be 0.
    """

    slots: Slots
    key: tuple[str, int]
    number: int
    is_none: bool = False


class Scene:
    """A call, `function` as it looks with its values, and the process that made it."""

    def __init__(self, world: World, descriptions: Descriptions, call: Told) -> None:
        self.world, self.things, self.call = world, world.things, call
        self._descriptions = descriptions
        self._registers = [register_of(value) for value in call.values]
        self.function = descriptions.with_values(call.function, self._registers)
        self.failed = is_error(call.function, call.result)
        self.goes_on = self.failed and call.result == -errno.EINPROGRESS
        """It did not wait for what it has begun, as a connection."""
        parameters = call.function.parameters or ()
        self._parameters = {one.index: one for one in parameters}
        self._parameters |= {one.index: one for one in self.function.parameters or ()}

    @cached_property
    def holder(self) -> Holder:
        """The process that made the call. Who only looks at the call must not have it begin."""
        return self.world.holder(self.call.pid, self.call.begin_ns)

    # ------------------------------------------------------------------------------------------------ values

    def parameter(self, index: int) -> Parameter | None:
        """The description of an argument, or of the result."""
        return self._parameters.get(index)

    def value(self, index: int) -> Value:
        """An argument, or the result; None: nobody knows."""
        if index == RESULT:
            return self.call.result
        return self.call.values[index] if index < len(self.call.values) else None

    def number(self, index: int) -> int | None:
        """It as a number with its sign, where it is one, or the address."""
        value = self.call.result if index == RESULT else self._register(index)
        return None if value is None else signed(value, 64)

    def _register(self, index: int) -> int | None:
        return self._registers[index] if index < len(self._registers) else None

    def data(self, index: int) -> bytes | None:
        """What an argument leads to."""
        value = self.value(index)
        if isinstance(value, Pointed):
            return value.data
        return value if isinstance(value, bytes) else None

    def n_bytes(self, index: int | None) -> int | None:
        """How many bytes the call says that it moved, where an argument or the result does."""
        number = None if index is None else self.number(index)
        return number if number is not None and number >= 0 else None

    def holds(self, effect: Effect) -> bool:
        """Whether the call has the flags with which it has the effect, and none without which it has it."""
        return self.meets(effect.conditional, default=True) and not self.meets(effect.unless, default=False)

    def meets(self, condition: Condition | None, *, default: bool) -> bool:
        """Whether an argument has all bits of one of a condition's flags; `default` where there is no condition."""
        if condition is None:
            return default
        value, table_name = self._asked(condition)
        if value is None:
            return default
        table = self._descriptions.flag_table(table_name)
        bits = [flag.value for name in condition.flags if table and (flag := table.find(name))]
        if table is not None and table.kind == "enum":
            return value & 0xFFFFFFFF in [bit & 0xFFFFFFFF for bit in bits]
        return any(bit and value & bit == bit for bit in bits)

    def is_on(self, switch: bool | Condition | None) -> bool:
        """What an effect says by yes or no, or by a condition."""
        return switch if isinstance(switch, bool) else self.meets(switch, default=False)

    def _asked(self, condition: Condition) -> tuple[int | None, str | None]:
        """The number that a condition asks about, if it is known, and the name of its table."""
        parameter = self._parameters.get(condition.index)
        if parameter is None or condition.member is None:
            return self._register(condition.index), None if parameter is None else parameter.flags
        for found in members_of(parameter, self.value(condition.index), self._descriptions):
            if found.path == condition.member and isinstance(found.value, int):
                return found.value, found.one.flags
        return None, None

    # ------------------------------------------------------------------------------------------------ references

    def references(self, index: int) -> Iterator[Reference]:
        """What an argument, or the result, stands for references: one, or several in an array that it leads to."""
        parameter = self.parameter(index)
        if parameter is None:
            return
        if parameter.raw_type == "struct":
            # An array of descriptors, or a handle that is written to where the argument leads.
            for found in members_of(parameter, self.value(index), self._descriptions):
                if isinstance(found.value, int):
                    yield self._reference(found.one.raw_type, parameter, found.value)
            return
        number = self.number(index)
        if number is not None:
            yield self._reference(parameter.raw_type, parameter, number)

    def _reference(self, raw_type: str, parameter: Parameter, number: int) -> Reference:
        if raw_type == "fd":
            return self.descriptor(signed(number, 32))
        # By what it is of: two libraries may have handles of one value in turn.
        number &= 0xFFFFFFFFFFFFFFFF
        is_none = raw_type in POINTERS and not number
        return Reference(self.holder.handles, (parameter.entity_type or "", number), number, is_none)

    def descriptor(self, number: int) -> Reference:
        """The process' descriptor of that number."""
        return Reference(self.holder.files, ("fd", number), number, number < 0)

    def is_named(self, reference: Reference) -> bool:
        """Whether one of the arguments is that descriptor, which stood for something already."""
        numbers = [one.index for one in self._parameters.values() if one.raw_type == "fd" and one.index != RESULT]
        return any(self.descriptor(signed(self.number(index) or 0, 32)) == reference for index in numbers) and (
            reference.slots.get(reference.key, self.call.begin_ns) is not None
        )

    def shared(self, effect: Effect) -> frozenset[str]:
        """What the process that the call made shares with the caller."""
        return frozenset(name for name, switch in effect.shares if self.is_on(switch))

    def descriptors_in(self, index: int) -> Iterator[int]:
        """The descriptors that are told within what an argument leads to, as in control messages."""
        parameter = self.parameter(index)
        for found in () if parameter is None else members_of(parameter, self.value(index), self._descriptions):
            if found.one.raw_type == "fd" and isinstance(found.value, int) and found.value >= 0:
                yield found.value

    def slot(self, reference: Reference, *, is_result: bool = False) -> Slot | None:
        """What a reference stood for when the call began, a result when it had returned. What nobody has told of is a
        thing of its own from now on."""
        time_ns = self.call.end_ns if is_result else self.call.begin_ns
        slot = reference.slots.get(reference.key, time_ns) or reference.slots.last(reference.key, time_ns)
        if slot is not None or reference.number < 0 or self.failed:
            return slot
        kind, number = reference.key
        name = f"descriptor {number}" if kind == "fd" else f"{kind} {number:#x}".lstrip()
        entity = self.things.make("other", name, time_ns)
        slot = Slot(entity.entity_id)
        reference.slots.set(reference.key, time_ns, slot)
        return slot

    def entities(self, index: int) -> Iterator[int]:
        """The entities for which an argument, or the result, stands."""
        parameter = self.parameter(index)
        if parameter is None:
            return
        if parameter.raw_type in _TASKS:
            yield from self._tasks(parameter, index)
        elif parameter.entity_type == "Memory":
            yield from self.holder.memory.find(self.address(index))
        elif parameter.type == "Entity":
            entity = self.named(index)
            if entity is not None:
                yield entity
        else:
            for reference in self.references(index):
                slot = self.slot(reference, is_result=index == RESULT)
                if slot is not None:
                    yield slot.entity_id

    def _tasks(self, parameter: Parameter, index: int) -> Iterator[int]:
        number = self.number(index)
        number = -1 if number is None else signed(number, 32)
        if number == 0 and index != RESULT:
            # It means the caller.
            is_thread = parameter.raw_type == "tid"
            yield self.world.caller(self.call) if is_thread else self.holder.entity_id
        elif number > 0:
            yield self.world.task(number, self.call.begin_ns)

    def address(self, index: int) -> int:
        """An address as a number without sign."""
        return (self.number(index) or 0) & 0xFFFFFFFFFFFFFFFF

    # ------------------------------------------------------------------------------------------------ names

    def path(self, index: int, at: int | None) -> str | None:
        """The path that an argument names, from the root; None: nobody knows, or it names what `at` stands for."""
        data = self.data(index)
        if data is None:
            return None
        path = os.fsdecode(data.split(b"\0")[0])
        return self.holder.place.resolve(path, self._base(at)) if path else None

    def _base(self, at: int | None) -> str | None:
        number = None if at is None else self.number(at)
        if number is None or signed(number, 32) == CURRENT_DIRECTORY:
            return None
        slot = self.slot(self.descriptor(signed(number, 32)))
        details = {} if slot is None else self.things[slot.entity_id].details
        path = details.get("path")
        return path if isinstance(path, str) else None

    def named(self, index: int, at: int | None = None) -> int | None:
        """The entity that an argument names, by its path; an empty one names what `at` stands for."""
        path = self.path(index, at)
        if path is not None:
            return self.things.at_path(path, self.call.begin_ns).entity_id
        if at is None or self.data(index) is None:
            return None
        return next(self.entities(at), None)
