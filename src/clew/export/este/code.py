"""The blocks of a process as Este's files need them: which are told of, and which routine outside each one calls.

Runs in the controller. Blocks are indices of the process' `ProcessCode`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.analysis.order.path_code import ProcessCode, read_process_rows
from clew.export.este.images import EsteImage, find_section
from clew.protocol.codec import Ending
from clew.store.columns import Array, to_numpy

if TYPE_CHECKING:
    from clew.export.este.config import EsteScope
    from clew.protocol.words import EdgeWord
    from clew.store.trace import Trace

__all__ = ["NO_BLOCK", "NO_ROUTINE", "EsteBlock", "EsteCode"]

NO_BLOCK: Final = -1
NO_ROUTINE: Final = -1
_CALLS: Final[tuple[EdgeWord, ...]] = ("call", "indirect_call", "jump", "indirect_jump")
"""Edges by which a routine is called: a jump to one is a call in a tail's place, as in the stubs of dynamic linking."""
_DIRECT: Final = (Ending.JUMP, Ending.BACK_JUMP, Ending.CALL)
_INDIRECT: Final = (Ending.INDIRECT_JUMP, Ending.INDIRECT_CALL)

# A block as the files have it: address, size in bytes, bytes, number of the image and of the executable range in it.
EsteBlock = tuple[int, int, bytes, int, int]


class EsteCode:
    """The blocks of process `process_id`, whose images are `images`.

    By block: `is_white`, whether it is told of; `place` (i64), one for all blocks that begin at one address;
    `is_indirect` branches and `is_direct` ones, whose targets are `target` (i64, NO_BLOCK where there is none). `pc`
    (u64) are addresses.
    """

    def __init__(
        self, trace: Trace, process_id: int, code: ProcessCode, images: list[EsteImage], scope: EsteScope
    ) -> None:
        self.code = code
        self.images = images
        n = len(code)
        table = code.code.blocks
        self.pc: Array = table["pc"][:n].copy()
        ending = table["ending"][:n]
        self.is_direct: Array = np.isin(ending, _DIRECT)
        self.is_indirect: Array = np.isin(ending, _INDIRECT)
        self.target = self._resolve(table["target"][:n].astype(np.int64))
        places, self.place = np.unique(self.pc, return_inverse=True)
        self._n_places = max(len(places), 1)
        columns = [
            "block_id",
            "size_bytes",
            "bytes",
            "image_id",
            "offset",
            "symbol",
            "symbol_offset",
            "function_offset",
        ]
        self._rows = read_process_rows(trace, "blocks", columns, process_id)
        row = np.zeros(n, np.int64)
        found, known = code.find_ids(to_numpy(self._rows["block_id"]).astype(np.int64))
        row[found] = known
        self._row: Array = row
        image_id = to_numpy(pc.fill_null(self._rows["image_id"], -1)).astype(np.int64)
        numbers = {image.image_id: image.idx for image in images}
        known_ids, inverse = np.unique(image_id, return_inverse=True)
        image = np.array([numbers.get(one, -1) for one in known_ids.tolist()], np.int64)[inverse]
        self.image: Array = image[row] if n else np.zeros(0, np.int64)
        # The last one is of blocks outside of all images.
        is_white = np.array([*(image.is_whitelisted for image in images), scope.has_dynamic], bool)
        self.is_white: Array = is_white[self.image]
        self._calls, self._only_call = self._find_calls(trace, process_id)

    def _resolve(self, target: Array) -> Array:
        """Blocks of what are blocks or slots; NO_BLOCK for what is neither."""
        n, table = len(self.code), self.code.code.blocks
        is_slot = (target >= n) & (target < len(table))
        target[is_slot] = table["target"][target[is_slot]]
        target[target >= n] = NO_BLOCK
        return target

    def _find_calls(self, trace: Trace, process_id: int) -> tuple[Array, dict[int, int]]:
        """Pairs of a place from which a call or jump was made and one that it led to, as keys (i64), rising; and by
        place the only one that it ever led to. By place, as versions of code may be told apart otherwise in edges."""
        edges = read_process_rows(trace, "edges", ["source_block_id", "target_block_id", "kind"], process_id)
        edges = edges.filter(pc.is_in(pc.cast(edges["kind"], pa.string()), value_set=pa.array(_CALLS, pa.string())))
        places = []
        for name in ("source_block_id", "target_block_id"):
            ids = to_numpy(pc.fill_null(edges[name], -1)).astype(np.int64)
            found, inside = self.code.find_ids(ids)
            place = np.full(len(ids), NO_BLOCK, np.int64)
            place[inside] = self.place[found]
            places.append(place)
        source, target = places
        whole = (source >= 0) & (target >= 0)
        pairs = np.unique(source[whole] * self._n_places + target[whole])
        sources, first, count = np.unique(pairs // self._n_places, return_index=True, return_counts=True)
        is_only = count == 1
        targets = pairs[first[is_only]] % self._n_places
        return pairs, dict(zip(sources[is_only].tolist(), targets.tolist(), strict=True))

    def find_called(self, source: int, target: int) -> int | None:
        """What block `source` called or jumped to when `target` ran next (NO_BLOCK: nothing did); NO_BLOCK if that
        was none, None if it can't be told, for a signal came between and it leads to several."""
        if self.is_direct[source]:
            return int(self.target[source])
        if not self.is_indirect[source]:
            return NO_BLOCK
        if target != NO_BLOCK:
            key = int(self.place[source]) * self._n_places + int(self.place[target])
            at = int(np.searchsorted(self._calls, key))
            if at < len(self._calls) and self._calls[at] == key:
                return target
        only = self._only_call.get(int(self.place[source]))
        return None if only is None else int(np.flatnonzero(self.place == only)[0])

    def find_block(self, address: int) -> int:
        """A block that begins at an address; NO_BLOCK if none does."""
        at = int(np.searchsorted(self.pc, np.uint64(address)))
        return at if at < len(self.pc) and int(self.pc[at]) == address else NO_BLOCK

    def block(self, index: int) -> EsteBlock:
        """A block as the files have it."""
        row = int(self._row[index])
        address = int(self.pc[index])
        image = int(self.image[index])
        section = find_section(self.images[image] if image >= 0 else None, address)
        return address, self._rows["size_bytes"][row].as_py(), self._rows["bytes"][row].as_py() or b"", image, section

    def content(self, index: int) -> bytes:
        """The bytes of a block."""
        return self._rows["bytes"][int(self._row[index])].as_py() or b""

    def list_functions(self) -> dict[int, dict[int, str]]:
        """By image (its number) that is not told of: addresses at which functions start that were executed or led to,
        and their names; an empty one where it is not known."""
        found: dict[int, dict[int, str]] = {}
        rows = self._rows.select(["offset", "symbol", "symbol_offset", "function_offset"])
        names = rows["symbol"].combine_chunks() if rows.num_rows else None
        if names is None:
            return found
        offset, symbol_offset, function_offset = (
            to_numpy(pc.fill_null(pc.cast(rows[name], "int64", safe=False), -1))
            for name in ("offset", "symbol_offset", "function_offset")
        )
        has_symbol = to_numpy(pc.cast(pc.is_valid(rows["symbol"]), "uint8")).astype(bool)
        start = np.where(has_symbol, offset - symbol_offset, function_offset)
        outside = np.flatnonzero(~self.is_white & (self.image >= 0))
        chosen = outside[start[self._row[outside]] >= 0]
        keys = self.image[chosen], start[self._row[chosen]]
        order = np.lexsort((~has_symbol[self._row[chosen]], keys[1], keys[0]))
        chosen = chosen[order]
        image, start = (key[order] for key in keys)
        is_first = np.ones(len(chosen), bool)
        is_first[1:] = (image[1:] != image[:-1]) | (start[1:] != start[:-1])
        for at in np.flatnonzero(is_first).tolist():
            number = int(image[at])
            address = self.images[number].base + int(start[at])
            if self.images[number].base <= address < self.images[number].end:
                name = rows["symbol"][int(self._row[chosen[at]])].as_py()
                found.setdefault(number, {})[address] = name or ""
        return found
