"""Effects: what each kind of them does, and which entities it touches.

Runs in the controller. An effect gives what it touched; it changes things only if the call did not fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from clew.api.description import Effect
from clew.api.entities.addresses import address_name
from clew.api.entities.scene import Reference, Scene, Touch
from clew.api.entities.slots import Slot
from clew.api.values import signed
from clew.api.vocabulary import RESULT

__all__ = ["EFFECTS"]

_MOST_RECEIVED: Final = 256
"""So many messages with descriptors wait at a socket at most, and so many descriptors are in one (SCM_MAX_FD: 253)."""


def _argument(index: int) -> int | None:
    return None if index == RESULT else index


def _at(effect: Effect, place: int) -> int | None:
    """The parameter that says from where the path in one of the effect's parameters goes."""
    return effect.at[place] if effect.at else None


def _path(scene: Scene, effect: Effect, place: int) -> str | None:
    return scene.path(effect.parameters[place], _at(effect, place))


def _touches(scene: Scene, effect: Effect, index: int, role: str) -> Iterator[Touch]:
    n_bytes = scene.n_bytes(effect.size_index)
    at = _at(effect, effect.parameters.index(index))
    parameter = scene.parameter(index)
    if parameter is not None and parameter.type == "Entity" and parameter.raw_type == "path":
        entity_id = scene.named(index, at)
        if entity_id is not None:
            yield Touch(entity_id, role, _argument(index), n_bytes)
        return
    for entity_id in scene.entities(index):
        yield Touch(entity_id, role, _argument(index), n_bytes)


def use(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """Each of the parameters is used."""
    for index in effect.parameters:
        yield from _touches(scene, effect, index, effect.role or "subject")


def link(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The first parameter stands for what the second one names or stands for; or for a new thing if there is none."""
    index, *what = effect.parameters
    role = effect.role or ("opened" if what else "created")
    if what and scene.failed:
        yield from _touches(scene, effect, what[0], role)
    if scene.failed:
        return
    source = what[0] if what else None
    parameter = None if source is None else scene.parameter(source)
    if parameter is not None and parameter.type == "Reference" and source is not None:
        yield from _link_to_reference(scene, effect, index, source, role)
        return
    entity_id = None
    if source is not None:
        entity_id = scene.named(source, _at(effect, 1))
    references = list(scene.references(index))
    ends: list[int] = []
    for reference in references:
        is_fd = reference.key[0] == "fd"
        if reference.is_none:
            continue
        if source is None and is_fd and scene.is_named(reference):
            # The call changes what it was given, as signalfd does.
            yield from _touches(scene, effect, index, "changed")
            return
        if entity_id is None and effect.is_within:
            entity_id = scene.world.made_within(scene.call)
        if entity_id is None or (effect.is_each and ends):
            entity_id = _make(scene, effect, reference)
        ends.append(entity_id)
        _set(scene, effect, reference, entity_id)
        yield Touch(entity_id, role, _argument(index if source is None else source), None)
    if effect.is_each and len(ends) == 2:
        scene.world.peers |= {ends[0]: ends[1], ends[1]: ends[0]}


def _make(scene: Scene, effect: Effect, reference: Reference) -> int:
    kind = effect.entity_kind or "other"
    parent = None if effect.parent is None else next(scene.entities(effect.parent), None)
    entity = scene.things.make(kind, kind, scene.call.begin_ns, parent=parent)
    entity.details["descriptor" if reference.key[0] == "fd" else "handle"] = reference.number
    return entity.entity_id


def _set(scene: Scene, effect: Effect, reference: Reference, entity_id: int) -> None:
    reference.slots.set(reference.key, scene.call.end_ns, Slot(entity_id, scene.is_on(effect.close_on_exec)))
    scene.world.note_made(scene.call, entity_id)


def _link_to_reference(scene: Scene, effect: Effect, index: int, source: int, role: str) -> Iterator[Touch]:
    for entity_id in scene.entities(source):
        for reference in scene.references(index):
            is_same = next(scene.references(source)) == reference
            if not is_same:
                _set(scene, effect, reference, entity_id)
        yield Touch(entity_id, role, _argument(source), None)


def destroy(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The parameter stands for nothing any more; of two, all descriptors between them."""
    call = scene.call
    role = effect.role or "closed"
    if len(effect.parameters) == 2:
        first, last = (scene.address(index) & 0xFFFFFFFF for index in effect.parameters)
        held = [(key, slot) for key, slot in scene.holder.files.items(call.begin_ns) if isinstance(key, tuple)]
        for key, gone in held:
            if not scene.failed and first <= key[1] <= last:
                scene.holder.files.set(key, call.begin_ns, None, call.end_ns)
                yield Touch(gone.entity_id, role, effect.parameters[0], None)
        return
    index = effect.parameters[0]
    for reference in scene.references(index):
        slot = scene.slot(reference)
        if slot is not None:
            yield Touch(slot.entity_id, role, _argument(index), None)
            # Whatever close says, the descriptor is gone (close(2)), but where there was none.
            if reference.slots.get(reference.key, call.begin_ns) is not None:
                reference.slots.set(reference.key, call.begin_ns, None, call.end_ns)


def modify(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """Whether the descriptor stays when another program is executed is changed; of two, of all between them."""
    files, begin_ns = scene.holder.files, scene.call.begin_ns
    if len(effect.parameters) == 2:
        first, last = (scene.address(index) & 0xFFFFFFFF for index in effect.parameters)
        keys = [key for key, _ in files.items(begin_ns) if isinstance(key, tuple) and first <= key[1] <= last]
    else:
        keys = [reference.key for reference in scene.references(effect.parameters[0])]
    for key in keys:
        held = files.get(key, begin_ns)
        if held is not None:
            if not scene.failed:
                _set(scene, effect, Reference(files, key, key[1]), held.entity_id)
            yield Touch(held.entity_id, effect.role or "changed", effect.parameters[0], None)


def remove(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """What the parameter names has that name no more."""
    yield from _touches(scene, effect, effect.parameters[0], effect.role or "removed")
    path = _path(scene, effect, 0)
    if path is not None and not scene.failed:
        scene.things.remove_path(path)


def rename(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """What the first parameter names has the second name now."""
    old, new = _path(scene, effect, 0), _path(scene, effect, 1)
    yield from _touches(scene, effect, effect.parameters[0], effect.role or "renamed")
    if old is None or new is None:
        return
    replaced = scene.things.find_path(new)
    if replaced is not None and not scene.failed and old != new:
        yield Touch(replaced.entity_id, "removed", _argument(effect.parameters[1]), None)
    if not scene.failed and old != new:
        scene.things.move_path(old, new)


def exchange(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """What the two parameters name have each the other's name now."""
    for index in effect.parameters[:2]:
        yield from _touches(scene, effect, index, effect.role or "renamed")
    one, other = _path(scene, effect, 0), _path(scene, effect, 1)
    if not scene.failed and one is not None and other is not None:
        scene.things.swap_paths(one, other)


def link_name(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The second parameter names what the first one does, too."""
    first = effect.parameters[0]
    entity_id = scene.named(first, _at(effect, 0))
    path = _path(scene, effect, 1)
    if entity_id is not None:
        yield Touch(entity_id, effect.role or "changed", _argument(first), None)
        if path is not None and not scene.failed:
            scene.things.give_path(path, entity_id)


def give_address(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """What the first parameter stands for has the address that the second one leads to: its own, or the other end's."""
    index, address = effect.parameters[:2]
    data = scene.data(address)
    name = None if data is None else address_name(data)
    role = effect.role or "subject"
    for entity_id in scene.entities(index):
        yield Touch(entity_id, role, _argument(index), None)
        if name is not None and (not scene.failed or scene.goes_on):
            entity = scene.things[entity_id]
            is_own = role in ("bound", "subject")
            # Of its own addresses the last counts: the system chooses what the program leaves open.
            if not is_own or entity.name in (entity.kind, entity.details.get("local")):
                entity.name = name
            entity.details["local" if is_own else "peer"] = name


def set_directory(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The process is where the parameter leads from now on."""
    index = effect.parameters[0]
    yield from _touches(scene, effect, index, effect.role or "subject")
    if scene.failed:
        return
    entity_id = next(scene.entities(index), None)
    path = None if entity_id is None else scene.things[entity_id].details.get("path")
    scene.holder.place.directory = path if isinstance(path, str) else None


def start_process(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The result is a new process or thread."""
    number = scene.number(effect.parameters[0])
    if scene.failed or number is None or number <= 0:
        return
    number, begin_ns = signed(number, 32), scene.call.begin_ns
    if "Thread" in scene.shared(effect):
        entity_id = scene.world.add_thread(scene.call.pid, number, begin_ns).entity_id
    else:
        entity_id = scene.world.task(number, begin_ns)
    yield Touch(entity_id, effect.role or "started", _argument(effect.parameters[0]), None)


def end_process(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The caller ends."""
    yield Touch(scene.holder.entity_id, effect.role or "ended", 0, None)


def end_thread(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The thread that calls ends."""
    yield Touch(scene.world.caller(scene.call), effect.role or "ended", 0, None)


def map_memory(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """Memory begins at the first parameter and is as large as the second says; of a file, if there is a third."""
    start, size = effect.parameters[:2]
    n_bytes = scene.n_bytes(size)
    parent = None
    if len(effect.parameters) > 2 and signed(scene.number(effect.parameters[2]) or 0, 32) >= 0:
        parent = next(scene.entities(effect.parameters[2]), None)
    if parent is not None:
        yield Touch(parent, "mapped", effect.parameters[2], n_bytes)
    if scene.failed or not n_bytes:
        return
    address = scene.address(start)
    name = f"{address:#x}" if parent is None else scene.things[parent].name
    entity = scene.things.make("memory", name, scene.call.begin_ns, pid=scene.call.pid, parent=parent)
    entity.details |= {"address": f"{address:#x}", "size_bytes": n_bytes}
    scene.holder.memory.map(address, n_bytes, entity.entity_id)
    yield Touch(entity.entity_id, effect.role or "mapped", _argument(start), n_bytes)


def touch_memory(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The memory that begins at the first parameter and is as large as the second says is used."""
    start, size = effect.parameters[:2]
    for entity_id in scene.holder.memory.find(scene.address(start), scene.n_bytes(size) or 1):
        yield Touch(entity_id, effect.role or "changed", _argument(start), scene.n_bytes(size))


def unmap_memory(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """There is no memory there any more."""
    start, size = effect.parameters[:2]
    n_bytes = scene.n_bytes(size) or 0
    for entity_id in scene.holder.memory.find(scene.address(start), n_bytes or 1):
        yield Touch(entity_id, effect.role or "removed", _argument(start), n_bytes)
    if not scene.failed:
        scene.holder.memory.unmap(scene.address(start), n_bytes)


def pass_references(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The second parameter has descriptors that are sent over the first."""
    socket, message = effect.parameters[:2]
    sent: list[int] = []
    for number in scene.descriptors_in(message):
        slot = scene.slot(scene.descriptor(number))
        if slot is not None:
            sent.append(slot.entity_id)
            yield Touch(slot.entity_id, effect.role or "passed", message, None)
    end = next(scene.entities(socket), None)
    if sent and end is not None and not scene.failed:
        waiting = scene.world.passed.setdefault(scene.world.peers.get(end, end), [])
        waiting.append(tuple(sent))
        del waiting[:-_MOST_RECEIVED]


def receive_references(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The second parameter has descriptors that came over the first."""
    socket, message = effect.parameters[:2]
    numbers = list(scene.descriptors_in(message))
    has_come = bool(numbers) or scene.meets(effect.lost, default=False)
    if not has_come or scene.failed:
        return
    end = next(scene.entities(socket), None)
    waiting = scene.world.passed.get(-1 if end is None else end, [])
    sent = waiting.pop(0) if waiting else ()
    for place, number in enumerate(numbers[:_MOST_RECEIVED]):
        reference = scene.descriptor(number)
        entity_id = sent[place] if place < len(sent) else _make(scene, effect, reference)
        _set(scene, effect, reference, entity_id)
        yield Touch(entity_id, effect.role or "inherited", message, None)


def take_reference(scene: Scene, effect: Effect) -> Iterator[Touch]:
    """The first parameter stands for what the third one does in the process for which the second one stands."""
    index, process, theirs = effect.parameters[:3]
    pidfd = next(scene.entities(process), None)
    if pidfd is not None:
        yield Touch(pidfd, "subject", process, None)
    number = scene.number(theirs)
    owner = None if pidfd is None else scene.things[pidfd].parent
    holder = None if owner is None else scene.world.holder_of(owner)
    if scene.failed or number is None:
        return
    found = None if holder is None else holder.files.get(("fd", number), scene.call.begin_ns)
    for reference in scene.references(index):
        entity_id = _make(scene, effect, reference) if found is None else found.entity_id
        _set(scene, effect, reference, entity_id)
        yield Touch(entity_id, effect.role or "passed", theirs, None)


EFFECTS: Final[dict[str, Callable[[Scene, Effect], Iterator[Touch]]]] = {
    "LinkReference": link,
    "UseReference": use,
    "DestroyReference": destroy,
    "ModifyReference": modify,
    "TakeReference": take_reference,
    "UseEntity": use,
    "RemoveEntity": remove,
    "RenameEntity": rename,
    "ExchangeEntities": exchange,
    "LinkEntity": link_name,
    "GiveAddress": give_address,
    "SetDirectory": set_directory,
    "StartTask": start_process,
    "EndProcess": end_process,
    "EndThread": end_thread,
    "MapMemory": map_memory,
    "UseMemory": touch_memory,
    "UnmapMemory": unmap_memory,
    "PassReferences": pass_references,
    "ReceiveReferences": receive_references,
}
