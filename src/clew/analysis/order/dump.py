"""A path as lines: blocks or instructions, with their addresses and places, from any number on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from clew.analysis.order.thread_path import PathPiece, ThreadPath
from clew.binary.disassembly import disassemble
from clew.store.trace import Trace

__all__ = ["Dump", "DumpedBlock"]

FIRST_PIECE_BLOCKS = 256


@dataclass(frozen=True)
class DumpedBlock:
    """An execution of a block or an instruction (`what`): its number, its address, where that is, and its text.

    Blocks have none. `is_after_loss`: what was executed in front of it was not recorded: lost, or left out on purpose
    (`is_thinned`).
    """

    index: int
    what: str
    address: int
    place: str
    text: str
    is_after_loss: bool
    is_thinned: bool = False


@dataclass(frozen=True)
class _Code:
    """A block: where its instructions are, what they are, and where that is."""

    addresses: list[int]
    texts: list[str]
    place: str


class Dump:
    """Lines of the path `path` of a trace."""

    def __init__(self, trace: Trace, path: ThreadPath) -> None:
        self._path = path
        self._trace = trace
        self._row_of = {int(block): row for row, block in enumerate(trace.blocks["block_id"].to_pylist())}
        self._images = {row["image_id"]: row["path"] for row in trace.images.to_pylist()}
        self._code = lru_cache(1 << 16)(self._load)

    def iter_blocks(self, start: int, count: int | None) -> Iterator[DumpedBlock]:
        """Executions of blocks from number `start` on; at most `count`."""
        left = self._path.block_executions if count is None else count
        for piece in self._pieces(start, left):
            ids = piece.block_ids.tolist()[:left]
            for number, block_id in enumerate(ids, piece.place.execution):
                code = self._code(block_id)
                is_first = piece.is_after_loss and number == piece.place.execution
                yield DumpedBlock(number, "block", code.addresses[0], code.place, "", is_first, piece.is_thinned)
            left -= len(ids)
            if left <= 0:
                return

    def iter_instructions(self, start: int, count: int | None) -> Iterator[DumpedBlock]:
        """Executions of instructions from number `start` on; at most `count`."""
        left = self._path.instructions if count is None else count
        place = self._path.find_instruction(start)
        for piece in self._pieces(place.execution, left):
            number = piece.place.instruction
            is_after_loss = piece.is_after_loss
            for block_id in piece.block_ids.tolist():
                code = self._code(block_id)
                for address, text in zip(code.addresses, code.texts, strict=True):
                    if number >= start:
                        yield DumpedBlock(
                            number, "instruction", address, code.place, text, is_after_loss, piece.is_thinned
                        )
                        is_after_loss = False
                        left -= 1
                        if left <= 0:
                            return
                    number += 1

    def _pieces(self, start: int, left: int) -> Iterator[PathPiece]:
        return self._path.iter_pieces(start, min(max(left, 1), FIRST_PIECE_BLOCKS) if left < 1 << 14 else 1 << 16)

    def _load(self, block_id: int) -> _Code:
        columns = ["process_id", "app_pc", "bytes", "image_id", "offset", "symbol", "symbol_offset", "n_instructions"]
        row = self._trace.read_rows("blocks", [self._row_of[block_id]], columns)[0]
        architecture = self._trace.architecture_of(row["process_id"])
        listed = disassemble(row["bytes"] or b"", row["app_pc"], architecture)[: row["n_instructions"]]
        place = ""
        if row["symbol"]:
            place = row["symbol"] + (f"+{row['symbol_offset']:#x}" if row["symbol_offset"] else "")
        if row["image_id"] is not None:
            image = self._images.get(row["image_id"], "").rpartition("/")[2]
            place = f"{image}!{place}" if place else f"{image}+{row['offset']:#x}"
        addresses = [instruction.address for instruction in listed] or [row["app_pc"]]
        return _Code(addresses, [instruction.text for instruction in listed] or [""], place)
