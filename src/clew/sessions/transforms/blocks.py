"""A block as a transformer sees it, once, before it is translated: its instructions, and what is to be done with them.

Runs in the controller, in the thread that runs callbacks; the thread that came to the block waits meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from clew.binary.architectures.details import InstructionDetails, MemoryAccess
from clew.dataclass import dataclass
from clew.errors import TransformError
from clew.process.processors.chosen import native_processor
from clew.protocol._constants import MAX_BLOCK_CHANGES_BYTES, PieceKind, PiecePlace
from clew.protocol.layout import pack_struct
from clew.sessions.transforms.assembler import assemble

if TYPE_CHECKING:
    from clew.recording.following.followed import FollowedProcess
    from clew.sessions.call_logs import CallLog
    from clew.sessions.calls import Call
    from clew.sessions.transforms.native import NativeCode

__all__ = ["Callout", "CodeBlock", "CodeInstruction"]

_MAX_PIECES = 255
_marks = count(1)


@dataclass(frozen=True)
class Callout:
    """Something that is told of each execution of an instruction: a callback, or a log, at `address`; with a `mark`
    behind the instruction that has it, and `address` is the one behind that."""

    address: int
    callback: Callable[[Call], object] | None
    log: CallLog | None
    capture: Sequence[str] = ()
    condition: str | None = None
    mark: int = 0


class _Mark(NamedTuple):
    place: PiecePlace
    number: int


class _Piece(NamedTuple):
    place: PiecePlace
    code: bytes


class _NativeCall(NamedTuple):
    place: PiecePlace
    native: NativeCode
    function: str


class CodeInstruction:
    """One instruction of a block that is about to be translated, at `address`.

    What is asked of it is done each time that it would be executed, by any thread.
    """

    def __init__(self, block: CodeBlock, details: InstructionDetails, *, is_last: bool) -> None:
        self._block, self._details = block, details
        self._pieces: list[_Piece | _NativeCall | _Mark] = []
        self._is_dropped = False
        self.address = details.address
        self.code = details.code
        """Its bytes, as the program has them."""
        self.is_last = is_last
        """It ends the block."""

    @property
    def size_bytes(self) -> int:
        """Bytes of it."""
        return len(self.code)

    @property
    def mnemonic(self) -> str:
        """Its name, with prefixes such as `rep` and `lock`."""
        return self._details.mnemonic

    @property
    def operands(self) -> str:
        """Its operands as text."""
        return self._details.operands

    @property
    def groups(self) -> tuple[str, ...]:
        """How it goes on, where that is not behind itself (`call`, `conditional_branch`), and what has it (`sse2`)."""
        return self._details.groups

    @property
    def reads(self) -> tuple[str, ...]:
        """Registers that it reads, the flags among them, also where it does not name them."""
        return self._details.reads

    @property
    def writes(self) -> tuple[str, ...]:
        """Registers that it writes."""
        return self._details.writes

    @property
    def memory(self) -> tuple[MemoryAccess, ...]:
        """Memory that it reads and writes, also where it does not name it, as on the stack."""
        return self._details.memory

    @property
    def details(self) -> InstructionDetails:
        """What the decoder knows of it."""
        return self._details

    @property
    def is_changed_otherwise(self) -> bool:
        """Whether anything but calls of compiled functions is asked of it."""
        return self._is_dropped or any(isinstance(one, _Piece) for one in self._pieces)

    def drop(self) -> None:
        """Have it not executed. Raises TransformError of what ends a block and may go on elsewhere."""
        self._refuse_at_end("be left out")
        self._is_dropped = True

    def replace(self, code: bytes | str) -> None:
        """Have other instructions executed in its place, given as machine code or as text. Raises TransformError."""
        self._refuse_at_end("be replaced")
        self.insert_before(code)
        self._is_dropped = True

    def insert_before(self, code: bytes | str) -> None:
        """Have other instructions executed in front of it, each time; they are taken to be at its address.

        They may do what they like with registers and memory, and go on behind themselves. Raises TransformError.
        """
        self._add(PiecePlace.BEFORE, code)

    def insert_after(self, code: bytes | str) -> None:
        """The same behind it; they are taken to be at the address there. Raises TransformError, also of what ends a
        block and may go on elsewhere."""
        self._refuse_at_end("have something behind it")
        self._add(PiecePlace.AFTER, code)

    def callout(
        self,
        callback: Callable[[Call], object],
        *,
        capture: Iterable[str] = (),
        condition: str | None = None,
        after: bool = False,
    ) -> None:
        """Call `callback` in front of it each time, or behind it, as `on_call` does: the thread waits meanwhile.

        In front it comes first, behind it last, whatever else stands there. Raises TransformError, CaptureError."""
        address, mark = self._place_of(after=after)
        self._block.callouts.append(Callout(address, callback, None, tuple(capture), condition, mark))

    def record(self, log: CallLog, *, after: bool = False) -> None:
        """Have each execution recorded in a log (`Session.log`), in front of it or behind it; no thread stops."""
        address, mark = self._place_of(after=after)
        self._block.callouts.append(Callout(address, None, log, mark=mark))

    def _place_of(self, *, after: bool) -> tuple[int, int]:
        """Where something is captured that is to be in front of it or behind it, and by which mark there."""
        if not after:
            return self.address, 0
        self._refuse_at_end("have something behind it")
        address = self.address + self.size_bytes
        # Of its own, for the instruction may be in other blocks as well.
        mark = next((one for one in self._pieces if isinstance(one, _Mark)), None)
        if mark is None:
            self._make_room()
            mark = _Mark(PiecePlace.AFTER, next(_marks))
            self._pieces.append(mark)
        return address, mark.number

    def call(self, native: NativeCode, function: str, *, after: bool = False) -> None:
        """Call a function of compiled C (`Session.compile`) in front of it, or behind it, each time: no thread stops
        for it.

        It may take a `struct clew_registers *`, the program's registers, which it can change but for the stack pointer;
        vector registers are not to be touched. Raises TransformError.
        """
        if after:
            self._refuse_at_end("have something behind it")
        if function not in native.functions:
            raise self._error(f"there is no function {function!r} in what was compiled")
        self._make_room()
        self._pieces.append(_NativeCall(PiecePlace.AFTER if after else PiecePlace.BEFORE, native, function))

    def _refuse_at_end(self, what: str) -> None:
        if self.is_last and self._block.ends_with_branch:
            raise self._error(f"it ends its block, so it can't {what}")

    def _add(self, place: PiecePlace, code: bytes | str) -> None:
        at = self.address if place == PiecePlace.BEFORE else self.address + self.size_bytes
        added = assemble(code, at) if isinstance(code, str) else bytes(code)
        self._check(added, at)
        self._make_room()
        self._pieces.append(_Piece(place, added))

    def _make_room(self) -> None:
        if len(self._pieces) >= _MAX_PIECES:
            raise self._error(f"more than {_MAX_PIECES} pieces of code are added to it")

    def _check(self, code: bytes, address: int) -> None:
        done = 0
        for one in native_processor().architecture.iter_details(code, address):
            done += len(one.code)
            if one.may_go_elsewhere:
                raise self._error(
                    f"{one.mnemonic} {one.operands}".rstrip() + " is to be added, which may go on elsewhere"
                )
            if one.uses_own_segment:
                raise self._error(
                    f"{one.mnemonic} {one.operands}".rstrip()
                    + " is to be added, which names what is not the program's here"
                )
        if done < len(code):
            raise self._error(f"{code[done:].hex(' ')} is to be added, which is no instruction")

    def _error(self, reason: str) -> TransformError:
        return TransformError(f"block {self._block.address:#x}, {self}: {reason}")

    def pack(self, followed: FollowedProcess | None) -> bytes:
        """What is to be changed at it in a process, as the runtime reads it: empty if nothing is."""
        if not self._pieces and not self._is_dropped:
            return b""
        head = pack_struct(
            "BlockChange",
            offset=self.address - self._block.address,
            is_dropped=int(self._is_dropped),
            n_pieces=len(self._pieces),
        )
        return head + b"".join(self._pack_piece(one, followed) for one in self._pieces)

    def _pack_piece(self, one: _Piece | _NativeCall | _Mark, followed: FollowedProcess | None) -> bytes:
        kind, code = PieceKind.CODE, b""
        if isinstance(one, _Piece):
            code = one.code
        elif isinstance(one, _Mark):
            kind, code = PieceKind.MARK, one.number.to_bytes(4, "little")
        else:
            assert followed is not None
            keeps_flags = self._block.needs_flags(self, is_behind=one.place == PiecePlace.AFTER)
            wrapped = one.native.call_from(followed, one.function, keeps_flags=keeps_flags)
            kind, code = PieceKind.VERBATIM, wrapped.code
            if wrapped.registers is not None:
                kept = sum(1 << number for number in wrapped.registers)
                kind = PieceKind.INLINE
                code = pack_struct("InlinePiece", registers=kept, keeps_flags=int(wrapped.keeps_flags)) + code
        return pack_struct("BlockPiece", place=one.place, kind=kind, size_bytes=len(code)) + code

    def __str__(self) -> str:
        return f"{self.address:#x} {self.mnemonic} {self.operands}".rstrip()

    def __repr__(self) -> str:
        return f"<instruction {self}>"


class CodeBlock(Sequence[CodeInstruction]):
    """A block that thread `tid` of process `pid` is about to execute for the first time: a sequence of its
    instructions.

    It ends where a thread may go on elsewhere, or where clew cuts it: after many instructions, or where code begins
    that may be written. `address` is its first one's, `code` its bytes.
    """

    def __init__(self, pid: int, tid: int, address: int, code: bytes, name: Callable[[int], str]) -> None:
        self.pid, self.tid, self.address, self.code = pid, tid, address, code
        self.callouts: list[Callout] = []
        """Those that were asked for."""
        self._name = name
        self._decoded: list[CodeInstruction] | None = None

    @property
    def _instructions(self) -> list[CodeInstruction]:
        # Late: who looks at nothing is not to wait for a disassembler.
        if self._decoded is None:
            details = list(native_processor().architecture.iter_details(self.code, self.address))
            last = len(details) - 1
            self._ends_with_branch = bool(details) and details[-1].may_go_elsewhere
            self._decoded = [CodeInstruction(self, one, is_last=index == last) for index, one in enumerate(details)]
        return self._decoded

    @property
    def ends_with_branch(self) -> bool:
        """Whether its last instruction may go on elsewhere: that one stays."""
        return bool(self._instructions) and self._ends_with_branch

    @property
    def name(self) -> str:
        """`IMAGE!SYMBOL+0x10` of its address, as much of it as is known."""
        return self._name(self.address)

    @property
    def size_bytes(self) -> int:
        """Bytes of it."""
        return len(self.code)

    def needs_flags(self, instruction: CodeInstruction, *, is_behind: bool) -> bool:
        """Whether what comes in front of an instruction, or behind it, is to keep the flags: they may be asked for."""
        index = self._instructions.index(instruction)
        for one in self._instructions[index + is_behind :]:
            if one.is_changed_otherwise or one.details.reads_flags:
                return True
            if one.details.overwrites_flags:
                return False
        return True

    def pack(self, followed: FollowedProcess | None = None) -> bytes:
        """What is to be changed in it, as the runtime of a process reads it. Raises TransformError: too much."""
        packed = b"" if self._decoded is None else b"".join(one.pack(followed) for one in self._decoded)
        if len(packed) > MAX_BLOCK_CHANGES_BYTES:
            raise TransformError(f"block {self.address:#x}: {len(packed)} bytes of code are added, too many")
        return packed

    def __len__(self) -> int:
        return len(self._instructions)

    def __getitem__(self, index: Any) -> Any:
        return self._instructions[index]

    def __iter__(self) -> Iterator[CodeInstruction]:
        return iter(self._instructions)

    def __repr__(self) -> str:
        return f"<block at {self.address:#x}, {self.size_bytes} bytes>"
