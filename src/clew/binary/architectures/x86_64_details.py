"""What is known of instructions of x86-64.

Runs in the controller. By the decoder that the runtime has, so that both see the same instructions. Imported late.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from iced_x86 import (
    Code,
    CpuidFeature,
    Decoder,
    DecoderOptions,
    FlowControl,
    Formatter,
    FormatterSyntax,
    Instruction,
    InstructionInfoFactory,
    MemorySizeInfo,
    OpAccess,
    Register,
)

from clew.binary.architectures.details import InstructionDetails, MemoryAccess

__all__ = ["iter_details"]

_READS: Final = frozenset((OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE))
_WRITES: Final = frozenset((OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE))
_FLAGS: Final = "rflags"


def iter_details(code: bytes, address: int) -> Iterator[InstructionDetails]:
    """As `Architecture.iter_details`."""
    factory, formatter, position = InstructionInfoFactory(), _formatter(), 0
    for one in Decoder(64, code, ip=address, options=_decoder_options()):
        if one.code == Code.INVALID:
            return
        info = factory.info(one)
        used = [(_registers()[place.register], place.access) for place in info.used_registers()]
        reads = [name for name, access in used if access in _READS] + ([_FLAGS] if one.rflags_read else [])
        writes = [name for name, access in used if access in _WRITES] + ([_FLAGS] if one.rflags_modified else [])
        names = _registers()
        memory = tuple(
            MemoryAccess(
                names[place.base],
                names[place.index],
                place.scale,
                _signed(place.displacement),
                names[place.segment],
                MemorySizeInfo(place.memory_size).size,
                ("r" if place.access in _READS else "") + ("w" if place.access in _WRITES else ""),
            )
            for place in info.used_memory()
        )
        yield InstructionDetails(
            address=one.ip,
            code=code[position : position + one.len],
            mnemonic=formatter.format_mnemonic(one),
            operands=formatter.format_all_operands(one),
            groups=_groups_of(one),
            reads=tuple(dict.fromkeys(reads)),
            writes=tuple(dict.fromkeys(writes)),
            memory=memory,
            may_go_elsewhere=one.flow_control != FlowControl.NEXT,
            uses_own_segment=_uses_gs(one),
        )
        position += one.len


def _groups_of(one: Instruction) -> tuple[str, ...]:
    flow = () if one.flow_control == FlowControl.NEXT else (_names(FlowControl)[one.flow_control],)
    return (*flow, *(_names(CpuidFeature)[feature] for feature in one.cpuid_features()))


def _signed(displacement: int) -> int:
    return displacement - (displacement >> 63 << 64)


def _uses_gs(one: Instruction) -> bool:
    return one.segment_prefix == Register.GS or Register.GS in (one.op_register(i) for i in range(one.op_count))


@cache
def _formatter() -> Formatter:
    # The assembler that text is given to reads this.
    formatter = Formatter(FormatterSyntax.INTEL)
    formatter.show_branch_size = False
    formatter.memory_size_options = 1
    formatter.hex_prefix, formatter.hex_suffix = "0x", ""
    formatter.uppercase_hex = False
    formatter.rip_relative_addresses = True
    return formatter


@cache
def _decoder_options() -> int:
    """How this processor's maker decodes what the makers decode differently (runtime/src/arch/x86_64/decode/block.rs)."""
    text = Path("/proc/cpuinfo").read_text(errors="replace")
    return DecoderOptions.AMD if "AuthenticAMD" in text or "HygonGenuine" in text else DecoderOptions.NONE


@cache
def _names(of: object) -> dict[int, str]:
    """The words of an enumeration of the decoder's, by their numbers."""
    return {value: name.lower() for name, value in vars(of).items() if isinstance(value, int)}


@cache
def _registers() -> dict[int, str]:
    return _names(Register) | {Register.NONE: ""}
