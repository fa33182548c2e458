"""Export to drcov, the format that coverage viewers load: Lighthouse, Cartographer, Dragon Dance and others.

Runs in the controller. A text header and a table of modules, then one record of 8 bytes for each block that ran:
offset in the module u32, size u16, module u16. Version 2, with the module table in version 2, as DynamoRIO 7 writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Final

import numpy as np

from clew.analysis.tables.arrays import TraceArrays
from clew.store.trace import Trace

__all__ = ["DrcovExporter"]

_RECORD: Final = np.dtype([("start", "<u4"), ("size", "<u2"), ("module", "<u2")])


class DrcovExporter:
    """Writes what a process ran. Blocks outside of images have no place in the format and are left out."""

    name: Final = "drcov"
    suffix: Final = ".drcov.log"
    items: Final = "blocks"
    part: Final = ""
    notes: Final = ()

    def export(self, trace: Trace, file: IO[bytes]) -> int:
        """Write `trace` to `file`; how many blocks were written. All processes' images are in one table."""
        arrays = TraceArrays(trace)
        arrays.load("blocks", "block_id", "image_id", "offset", "size_bytes", "n_instructions")
        ran = np.flatnonzero((arrays.block_executions > 0) & (arrays.n_instructions > 0))
        module = arrays.block_image[ran]
        offset = arrays.numbers("blocks", "offset")[ran]
        fits = (module >= 0) & (module < 1 << 16) & (offset < 1 << 32)
        rows = np.zeros(int(np.count_nonzero(fits)), _RECORD)
        rows["start"], rows["module"] = offset[fits], module[fits]
        rows["size"] = np.minimum(arrays.size_bytes[ran][fits], 0xFFFF)
        file.write("".join(self._iter_header(trace, len(rows))).encode())
        file.write(rows.tobytes())
        return len(rows)

    def _iter_header(self, trace: Trace, n_blocks: int) -> Iterator[str]:
        yield "DRCOV VERSION: 2\n"
        yield "DRCOV FLAVOR: drcov\n"
        rows = trace.images.to_pylist()
        yield f"Module Table: version 2, count {len(rows)}\n"
        yield "Columns: id, base, end, entry, path\n"
        for index, row in enumerate(rows):
            end = row["base"] + row["size_bytes"]
            # A line is a row, a comma ends a column: a path may not break either.
            path = "".join(
                character if character.isprintable() and character != "," else "_" for character in row["path"]
            )
            yield f"{index:2}, {row['base']:#018x}, {end:#018x}, {0:#018x}, {path}\n"
        yield f"BB Table: {n_blocks} bbs\n"
