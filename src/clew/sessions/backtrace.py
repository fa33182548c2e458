"""The calls that are open in a stopped thread, by what unwinders read, and by frame pointers where there is nothing.

Runs in the controller. What is read comes from the target: it may be nonsense, and the number of frames is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clew.binary.architectures.architecture import Architecture
from clew.binary.dwarf_expression import evaluate
from clew.binary.frame_rules import FrameRule, RegisterRule
from clew.dataclass import dataclass
from clew.protocol.architecture import ArchitectureDefinition
from clew.sessions.memory import Image, Images

__all__ = ["Frame", "unwind"]

MAX_FRAMES: Final = 512
_WORD_BYTES: Final = 8


@dataclass(frozen=True)
class Frame:
    """An open call: `pc` is where it goes on, or, of the first one, where the thread is.

    `image` and `function` are names, empty where they are not known; `offset` is how far behind the function's start,
    or the image's.
    """

    pc: int
    image: str
    function: str
    offset: int

    def __str__(self) -> str:
        name = "!".join(word for word in (self.image, self.function) if word)
        return f"{name}+{self.offset:#x}" if name else f"{self.pc:#x}"


def unwind(
    images: Images,
    loaded: list[Image],
    registers: dict[str, int],
    read: Callable[[int, int], bytes],
    architecture: Architecture,
    definition: ArchitectureDefinition,
    *,
    is_place: bool = True,
) -> list[Frame]:
    """The frames, from the innermost on; `registers` are the thread's by name, `read` reads its memory. `is_place`: it
    was interrupted where it is, and does not go on there behind a call."""
    names = architecture.dwarf_registers
    numbered = {number: registers[name] for number, name in enumerate(names) if name in registers}
    special = definition.program_counter, definition.stack_pointer, architecture.frame_pointer
    walk = _Walk(images, loaded, read, *(names.index(name) for name in special))
    frames: list[Frame] = []
    while len(frames) < MAX_FRAMES:
        pc = numbered[walk.pc_number]
        # A return address may be behind the function's last instruction.
        image, function, offset = images.name(loaded, pc if is_place else pc - 1)
        frames.append(Frame(pc, image, function, offset if is_place else offset + 1))
        stepped = walk.step(numbered, pc if is_place else pc - 1)
        if stepped is None:
            break
        numbered, is_place = stepped
    return frames


class _Walk:
    def __init__(
        self,
        images: Images,
        loaded: list[Image],
        read: Callable[[int, int], bytes],
        pc_number: int,
        sp_number: int,
        frame_pointer: int,
    ) -> None:
        self._images, self._loaded, self._read = images, loaded, read
        self.pc_number, self._sp_number, self._frame_pointer = pc_number, sp_number, frame_pointer

    def step(self, registers: dict[int, int], place: int) -> tuple[dict[int, int], bool] | None:
        """The caller's registers, and whether it was interrupted where it is and did not call; None: no caller."""
        rule = self._find_rule(place)
        caller = self._by_frame_pointer(registers) if rule is None else self._by_rule(registers, rule)
        if caller is None or not caller.get(self.pc_number):
            return None
        is_signal = rule is not None and rule.is_signal
        # A caller's frame is above, or the thread is on another stack.
        if not is_signal and caller[self._sp_number] <= registers[self._sp_number]:
            return None
        return caller, is_signal

    def _find_rule(self, place: int) -> FrameRule | None:
        image = next((one for one in self._loaded if one.start <= place < one.end), None)
        rules = None if image is None else self._images.rules(image)
        return None if rules is None else rules[0].find(place - rules[1])

    def _by_rule(self, registers: dict[int, int], rule: FrameRule) -> dict[int, int] | None:
        if rule.code is None:
            base = registers.get(rule.register)
            frame = None if base is None else base + rule.offset
        else:
            frame = evaluate(rule.code, registers, self._load)
        if frame is None:
            return None
        caller = dict(registers)
        caller[self._sp_number] = frame & (1 << 64) - 1
        caller.pop(self.pc_number)
        for number, one in rule.registers.items():
            value = self._value(one, frame, registers)
            if value is None:
                caller.pop(number, None)
            else:
                caller[number] = value & (1 << 64) - 1
        if rule.return_column != self.pc_number and rule.return_column in caller:
            caller[self.pc_number] = caller[rule.return_column]
        return caller

    def _value(self, rule: RegisterRule, frame: int, registers: dict[int, int]) -> int | None:
        match rule.kind:
            case "offset":
                return self._load(frame + rule.number, _WORD_BYTES)
            case "val_offset":
                return frame + rule.number
            case "register":
                return registers.get(rule.number)
            case "expression":
                address = evaluate(rule.code, registers, self._load, (frame,))
                return None if address is None else self._load(address, _WORD_BYTES)
            case "val_expression":
                return evaluate(rule.code, registers, self._load, (frame,))
        return None

    def _by_frame_pointer(self, registers: dict[int, int]) -> dict[int, int] | None:
        """As code without unwind tables often has it: the caller's frame pointer, and above it the return address."""
        frame = registers.get(self._frame_pointer)
        if frame is None or frame < registers[self._sp_number]:
            return None
        before, pc = self._load(frame, _WORD_BYTES), self._load(frame + _WORD_BYTES, _WORD_BYTES)
        if before is None or pc is None:
            return None
        return {self._frame_pointer: before, self._sp_number: frame + 2 * _WORD_BYTES, self.pc_number: pc}

    def _load(self, address: int, size_bytes: int) -> int | None:
        found = self._read(address & (1 << 64) - 1, size_bytes)
        return int.from_bytes(found, "little") if len(found) == size_bytes else None
