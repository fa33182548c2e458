"""The transformers of a session: who is shown which blocks, and what they said is brought to the thread that waits.

Runs in the controller: asked for in any thread, shown in the one that runs callbacks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Final

from clew.errors import ControlError, TransformError, UsageError
from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping, read_maps
from clew.recording.options.filters import EVERYTHING, CodeMapping, Filter, FilterSet, parse_filters
from clew.sessions.backtrace import Frame
from clew.sessions.transforms.asking import Asking
from clew.sessions.transforms.blocks import Callout, CodeBlock
from clew.sessions.transforms.refused import Refused

if TYPE_CHECKING:
    from clew.process.shared_memory import TransformRow
    from clew.recording.control.commands import Control
    from clew.recording.following.followed import FollowedProcess
    from clew.recording.following.holding import Holding
    from clew.recording.following.processes import Processes
    from clew.recording.following.visits import BlockQuestion
    from clew.sessions.call_probes import CallProbes
    from clew.sessions.places import Places
    from clew.sessions.target import SessionTarget

__all__ = ["Transform", "Transformer", "Transformers"]

Transform = Callable[[CodeBlock], object]

_ALL_CODE: Final = (0, (1 << 64) - 1)


class Transformer:
    """What `Session.transform` gives. `function` is shown each block of `where` once, before it is translated."""

    def __init__(self, transformers: Transformers, number: int, where: tuple[Filter, ...], function: Transform) -> None:
        self._transformers, self._number, self._filters = transformers, number, where
        self.where = [item.text for item in where]
        self.function = function
        self.n_blocks = 0
        """How many blocks it was shown."""
        self._errors: list[str] = []
        self._probes: list[int] = []

    @property
    def errors(self) -> list[str]:
        """Why blocks were left as they are, though it wanted them changed: each names the block, and the instruction if
        there is one to blame."""
        self._transformers.look_for_refused()
        return self._errors

    def remove(self) -> None:
        """Show it nothing any more; what it changed is translated anew, as it is."""
        self._transformers.remove(self)

    def __repr__(self) -> str:
        return f"<transformer of {', '.join(self.where)}>"


class Transformers:
    """Those of one session, whose callbacks `probes` calls."""

    def __init__(self, target: SessionTarget, probes: CallProbes) -> None:
        self._target, self._probes = target, probes
        self._lock = threading.RLock()
        self._by_number: dict[int, Transformer] = {}
        self._made: list[Transformer] = []
        self._numbers = count(1)
        self._processes: Processes | None = None
        self._places: Places | None = None
        self._filters = FilterSet((), ())
        self._said: dict[tuple[int, int, bytes], bytes] = {}
        """By process, address and bytes of a block: it is shown once, however often it is translated."""
        self._refused = Refused()
        probes.answer_blocks(self._answer)

    def add(self, where: str | Iterable[str] | None) -> Callable[[Transform], Transformer]:
        """What makes a transformer of a function. Raises FilterError."""
        texts = [where] if isinstance(where, str) else list(where or ())
        filters = (EVERYTHING,) if where is None else parse_filters(texts)

        def make(function: Transform) -> Transformer:
            one = Transformer(self, next(self._numbers), filters, function)
            self._made.append(one)
            self._target.run(lambda control: self._change(control, lambda: self._by_number.update({one._number: one})))
            return one

        return make

    def remove(self, one: Transformer) -> None:
        """Show a transformer nothing any more."""
        self._target.run(lambda control: self._change(control, lambda: self._by_number.pop(one._number, None)))
        for number in one._probes:
            self._probes.remove(number)

    def forget(self, followed: FollowedProcess, ranges: Iterable[tuple[int, int]]) -> None:
        """Ask once more about the blocks of a process that lie in some ranges, all threads of which are stopped."""
        with self._lock:
            for key in [key for key in self._said if key[0] == followed.pid]:
                _, address, code = key
                if any(start < address + len(code) and address < end for start, end in ranges):
                    del self._said[key]

    def _change(self, control: Control, change: Callable[[], object]) -> Iterator[bool | None]:
        control.refuse_in_region("transformers")
        places = self._probes.open_places(control)
        places.hear_code()

        def arm() -> None:
            with self._lock:
                change()
                self._said.clear()
                if self._processes is None:
                    self._processes, self._places = control.processes, places
                    control.processes.tell_code_to(self._arm)
                for followed in control.processes.live:
                    self._arm(followed, _mappings_of(followed), is_changed=True)

        yield from self._target.while_stopped(control, arm)
        yield True

    def _arm(self, followed: FollowedProcess, mappings: list[Mapping], *, is_changed: bool = False) -> None:
        """Have blocks asked about in what a process has mapped, beside what it had: a child has its parent's ranges."""
        assert self._processes is not None
        with self._lock:
            before = followed.shared.transforms
            rows = [row for row in before if row[2] in self._by_number]
            pieces = [CodeMapping.of(one) for one in mappings if one.protection & PROT_EXEC]
            for number, one in self._by_number.items():
                rows += [row for row in self._find(number, one._filters, pieces) if row not in rows]
            if rows == before and not is_changed:
                return
            holding = self._processes.holdings.of(followed)
            holding.visits.on_block = self._on_block
            assert self._places is not None
            holding.visits.note_overdue = self._places.note_overdue
            holding.be_heard(self._probes.hear)
            try:
                followed.shared.set_transforms(rows)
            except UsageError as error:
                followed.warnings.append(f"transform: {error.message}")

    def _find(self, number: int, filters: tuple[Filter, ...], pieces: list[CodeMapping]) -> list[TransformRow]:
        if EVERYTHING in filters:
            return [(*_ALL_CODE, number)]
        rows = [row for item in filters for piece in pieces for row in self._filters.rows_of(item, True, piece)]
        return [(start, end, number) for start, end, _ in rows]

    def _on_block(self, holding: Holding, question: BlockQuestion) -> bool:
        self._probes.meet_asking(Asking(holding, question))
        return True

    def _answer(self, asking: Asking) -> None:
        """Show a block to who wants to see it, and let the thread go on that waits for that."""
        followed, address, code = asking.holding.followed, asking.question.pc, asking.read_code()
        key = (followed.pid, address, code)
        with self._lock:
            self._refused.look(followed, asking.question.tid)
            said = self._said.get(key)
            numbers = {number for start, end, number in followed.shared.transforms if start <= address < end}
            here = [one for number, one in self._by_number.items() if number in numbers]
        if said is None:
            block = CodeBlock(followed.pid, asking.question.tid, address, code, lambda at: self._name(followed, at))
            said = self._said[key] = self._show(followed, here, block)
        with self._lock:
            self._refused.give(followed, asking.question.tid, address, said, [one._errors for one in here])
        asking.answer(said)

    def _show(self, followed: FollowedProcess, transformers: list[Transformer], block: CodeBlock) -> bytes:
        """What is to be changed in a block, that one transformer after the other has seen."""
        changes = b""
        for one in transformers:
            one.n_blocks += 1
            n_callouts = len(block.callouts)
            try:
                one.function(block)
                changes = block.pack(followed)
                for callout in block.callouts[n_callouts:]:
                    self._call_out(followed, one, callout)
            except (TransformError, ControlError) as error:
                one._errors.append(error.message)
                return b""
        return changes

    def _call_out(self, followed: FollowedProcess, one: Transformer, callout: Callout) -> None:
        if callout.log is not None:
            self._probes.record_here(followed, callout.address, callout.log, callout.mark)
        if callout.callback is not None:
            number = self._probes.add_here(
                followed, callout.address, callout.capture, callout.condition, callout.callback, callout.mark
            )
            one._probes.append(number)

    def _name(self, followed: FollowedProcess, address: int) -> str:
        images = self._target.images
        return str(Frame(address, *images.name(images.in_mappings(_mappings_of(followed)), address)))

    def look_for_refused(self) -> None:
        """See whether the runtime refused what was said of blocks."""
        with self._lock:
            self._refused.look_at_all()

    def warn(self, n_refused: int) -> list[str]:
        """What is to be said of blocks that were left as they are, once all has ended; the runtimes refused so many."""
        with self._lock:
            n_unknown = self._refused.finish(n_refused)
        said = [
            f"{one}: {len(one._errors)} blocks were left as they are: {one._errors[0]}"
            for one in self._made
            if one._errors
        ]
        if n_unknown:
            said.append(f"{n_unknown} blocks were left as they are: the runtime could not take their changes")
        return said


def _mappings_of(followed: FollowedProcess) -> list[Mapping]:
    try:
        return read_maps(followed.memory_pid)
    except OSError:
        # It has just ended.
        return []
