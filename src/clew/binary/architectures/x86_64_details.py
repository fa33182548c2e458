"""What is known of instructions of x86-64.

Runs in the controller. By the decoder that the runtime has, so that both see the same instructions. Imported late.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from iced_x86 import (
    Code,
    CpuidFeature,
    Decoder,
    DecoderOptions,
    FlowControl,
    Formatter,
    FormatterSyntax,
    Instruction,
    InstructionInfo,
    InstructionInfoFactory,
    MemorySizeInfo,
    MemorySizeOptions,
    Mnemonic,
    OpAccess,
    Register,
    RegisterInfo,
)

from clew.binary.architectures.details import InstructionDetails, MemoryAccess

__all__ = ["iter_details", "registers_read", "registers_used", "registers_written"]

_READS: Final = frozenset((OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE))
_WRITES: Final = frozenset((OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE))
_FLAGS: Final = "rflags"
_OVERWRITES: Final = frozenset(
    (Mnemonic.ADD, Mnemonic.SUB, Mnemonic.CMP, Mnemonic.TEST, Mnemonic.AND, Mnemonic.OR, Mnemonic.XOR, Mnemonic.NEG)
)
"""Change all arithmetic flags, whatever their operands are."""


def iter_details(code: bytes, address: int) -> Iterator[InstructionDetails]:
    """As `Architecture.iter_details`."""
    position = 0
    for one in Decoder(64, code, ip=address, options=_decoder_options()):
        if one.code == Code.INVALID:
            return
        yield _Details(one, code[position : position + one.len])
        position += one.len


class _Details(InstructionDetails):
    def __init__(self, one: Instruction, code: bytes) -> None:
        may_go_elsewhere = one.flow_control != FlowControl.NEXT
        super().__init__(one.ip, code, may_go_elsewhere=may_go_elsewhere, uses_own_segment=_uses_gs(one))
        self._one = one

    @property
    def mnemonic(self) -> str:
        return _formatter().format_mnemonic(self._one)

    @property
    def operands(self) -> str:
        return _formatter().format_all_operands(self._one)

    @property
    def groups(self) -> tuple[str, ...]:
        one = self._one
        flow = () if one.flow_control == FlowControl.NEXT else (_names(FlowControl)[one.flow_control],)
        return (*flow, *(_names(CpuidFeature)[feature] for feature in one.cpuid_features()))

    @property
    def reads(self) -> tuple[str, ...]:
        return self._used(_READS, is_flags=self._one.rflags_read != 0)

    @property
    def writes(self) -> tuple[str, ...]:
        return self._used(_WRITES, is_flags=self._one.rflags_modified != 0)

    def _used(self, how: frozenset[int], *, is_flags: bool) -> tuple[str, ...]:
        names = _registers()
        used = [names[place.register] for place in self._info.used_registers() if place.access in how]
        return tuple(dict.fromkeys([*used, _FLAGS] if is_flags else used))

    @property
    def reads_flags(self) -> bool:
        return self._one.rflags_read != 0

    @property
    def overwrites_flags(self) -> bool:
        return self._one.mnemonic in _OVERWRITES

    @property
    def memory(self) -> tuple[MemoryAccess, ...]:
        names = _registers()
        return tuple(
            MemoryAccess(
                names[place.base],
                names[place.index],
                place.scale,
                _signed(place.displacement),
                names[place.segment],
                MemorySizeInfo(place.memory_size).size,
                ("r" if place.access in _READS else "") + ("w" if place.access in _WRITES else ""),
            )
            for place in self._info.used_memory()
        )

    @cached_property
    def _info(self) -> InstructionInfo:
        return _factory().info(self._one)


def registers_read(one: Instruction) -> set[str]:
    """The registers that an instruction reads, by their full names."""
    return _registers_of(one, _READS)


def registers_written(one: Instruction) -> set[str]:
    """Those that it writes."""
    return _registers_of(one, _WRITES)


def registers_used(one: Instruction) -> set[str]:
    """Those that it reads or writes."""
    return _registers_of(one, _READS | _WRITES)


def _registers_of(one: Instruction, how: frozenset[int]) -> set[str]:
    used = _factory().info(one).used_registers()
    return {_registers()[RegisterInfo(place.register).full_register] for place in used if place.access in how}


@cache
def _factory() -> InstructionInfoFactory:
    return InstructionInfoFactory()


def _signed(displacement: int) -> int:
    return displacement - (displacement >> 63 << 64)


def _uses_gs(one: Instruction) -> bool:
    registers = [int(one.op_register(index)) for index in range(one.op_count)]
    return int(Register.GS) in (int(one.segment_prefix), *registers)


@cache
def _formatter() -> Formatter:
    # The assembler that text is given to reads this.
    formatter = Formatter(FormatterSyntax.INTEL)
    formatter.show_branch_size = False
    formatter.memory_size_options = MemorySizeOptions.ALWAYS
    formatter.hex_prefix, formatter.hex_suffix = "0x", ""
    formatter.uppercase_hex = False
    formatter.rip_relative_addresses = True
    return formatter


@cache
def _decoder_options() -> Any:
    # What the makers decode differently, as the runtime does (runtime/src/arch/x86_64/decode/block.rs).
    text = Path("/proc/cpuinfo").read_text(errors="replace")
    return DecoderOptions.AMD if "AuthenticAMD" in text or "HygonGenuine" in text else DecoderOptions.NONE


@cache
def _names(of: ModuleType) -> dict[int, str]:
    """The words of an enumeration of the decoder's, by their numbers."""
    return {value: name.lower() for name, value in vars(of).items() if isinstance(value, int)}


@cache
def _registers() -> dict[int, str]:
    return _names(Register) | {Register.NONE: ""}
