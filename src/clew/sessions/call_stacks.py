"""The stacks of calls: what of each is taken while no thread stops, and the frames that this comes to.

Runs in the controller, in any thread; what is loaded is heard of in the thread that owns the target. A call leaves the
frames of its callers as they were: they are taken when it has returned, as registers and the bytes of the stack, as
many as there is room for, and unwound here when somebody asks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from clew.dataclass import dataclass
from clew.process.linux import PROT_EXEC
from clew.process.processors.chosen import native_processor
from clew.sessions.backtrace import Frame, unwind
from clew.sessions.stack_sample import N_PIECES

if TYPE_CHECKING:
    from clew.process.maps import Mapping
    from clew.recording.following.followed import FollowedProcess
    from clew.recording.sinks.sink import Identity
    from clew.sessions.api_calls import ApiCall
    from clew.sessions.memory import Images

__all__ = ["CallFrame", "CallStacks"]

_WORD_BYTES: Final = 8
_MAX_IMAGES: Final = 4096
"""Of a process that are kept."""


@dataclass(frozen=True)
class CallFrame:
    """A frame, in the file `path`, empty where none is there; `file_offset` is how far behind its start the code is."""

    frame: Frame
    path: str
    file_offset: int

    def __str__(self) -> str:
        """As strace -k has it."""
        if not self.path:
            return f" > [{self.frame.pc:#x}]"
        return f" > {self.path}({self.frame.function}+{self.frame.offset:#x}) [{self.file_offset:#x}]"

    def as_object(self) -> dict[str, object]:
        """For JSON."""
        frame = self.frame
        return {"pc": f"{frame.pc:#x}", "image": self.path, "function": frame.function, "offset": frame.offset}


class CallStacks:
    """Of one session, from now on."""

    def __init__(
        self,
        watch_code: Callable[[Callable[[FollowedProcess, list[Mapping]], None]], None],
        processes_begun: Callable[[], list[tuple[Identity, int]]],
        images: Images,
    ) -> None:
        """With what hears of code that is mapped, and of processes. Raises ControlError."""
        self._processes_begun, self._images = processes_begun, images
        self._lock = threading.Lock()
        self._loaded: dict[int, list[tuple[int, Mapping]]] = {}
        """By process: since when what is mapped, the latest last; nanoseconds since 1970."""
        watch_code(self._meet)

    n_fields: Final = N_PIECES + 3
    """What is captured of each call besides, at most."""

    def expressions(self, *, is_function: bool, has_returned: bool) -> tuple[str, ...]:
        """What is to be captured of each call besides."""
        processor = native_processor()
        stack_pointer = processor.definition.stack_pointer
        base = f"(u64){stack_pointer}" if has_returned or not is_function else f"((u64){stack_pointer}+{_WORD_BYTES})"
        page_bytes = processor.definition.page_bytes
        inside = page_bytes - 1
        first = f"bytes({base}, {page_bytes}-({base}&{inside}), {page_bytes})"
        others = [f"bytes(({base}|{inside})+{1 + n * page_bytes}, {page_bytes})" for n in range(N_PIECES - 1)]
        came_from = (f"*(u64*)({base}-{_WORD_BYTES})",) if is_function else ()
        return (base, f"(u64){processor.architecture.frame_pointer}", first, *others, *came_from)

    def frames(self, call: ApiCall) -> list[CallFrame]:
        """The frames of a call, from its own on: a function's first instruction, or behind a system call's."""
        sample = call.stack
        if sample is None:
            return []
        processor = native_processor()
        architecture, definition = processor.architecture, processor.definition
        mappings = self._at(call.pid, call.time_ns + (call.duration_ns or 0))
        loaded = self._images.in_mappings(mappings)
        found: list[Frame] = []
        pc = call.pc + architecture.system_call_bytes
        if call.library is not None:
            found.append(Frame(call.pc, *self._images.name(loaded, call.pc)))
            pc = sample.return_pc or 0
        if sample.stack_pointer is not None and pc:
            registers = {definition.program_counter: pc, definition.stack_pointer: sample.stack_pointer}
            if sample.frame_pointer is not None:
                registers[architecture.frame_pointer] = sample.frame_pointer
            found += unwind(
                self._images, loaded, registers, _reader(sample.stack_pointer, sample.data), architecture, definition
            )
        return [_placed(frame, mappings) for frame in found]

    def _meet(self, followed: FollowedProcess, mappings: list[Mapping]) -> None:
        """Code was mapped in a process, which waits."""
        now_ns = time.time_ns()
        with self._lock:
            known = self._loaded.setdefault(followed.pid, [])
            known += [(now_ns, one) for one in mappings if one.protection & PROT_EXEC]
            del known[:-_MAX_IMAGES]

    def _at(self, pid: int, time_ns: int) -> list[Mapping]:
        """What code a process had at a time, as far as that is known; where nothing was, the first that came later."""
        with self._lock:
            found = self._with_parents(pid)
        chosen: list[Mapping] = []
        early = [one for since_ns, one in reversed(found) if since_ns <= time_ns]
        late = [one for since_ns, one in found if since_ns > time_ns]
        for one in [*early, *late]:
            if not any(other.start < one.end and one.start < other.end for other in chosen):
                chosen.append(one)
        return sorted(chosen, key=lambda one: one.start)

    def _with_parents(self, pid: int) -> list[tuple[int, Mapping]]:
        """What was mapped in a process, behind what its parents had, of which it began with a copy."""
        parents = {int(who.pid): int(who.parent_pid) for who, _ in reversed(self._processes_begun())}
        line = [pid]
        while line[-1] in parents and parents[line[-1]] not in line:
            line.append(parents[line[-1]])
        return [one for each in reversed(line) for one in self._loaded.get(each, [])]


def _reader(start: int, data: bytes) -> Callable[[int, int], bytes]:
    """Reads memory of which some was taken."""

    def read(address: int, size_bytes: int) -> bytes:
        at = address - start
        return data[at : at + size_bytes] if at >= 0 else b""

    return read


def _placed(frame: Frame, mappings: list[Mapping]) -> CallFrame:
    here = next((one for one in mappings if one.start <= frame.pc < one.end), None)
    if here is None:
        return CallFrame(frame, "", 0)
    return CallFrame(frame, here.path, frame.pc - here.start + here.file_offset)
