"""Which code ran, as a table.

Runs in the controller.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from clew.analysis.tables.arrays import TraceArrays
from clew.store.trace import Trace

__all__ = ["list_coverage"]

_COLUMNS = ("process_id", "offset", "app_pc", "size_bytes", "n_instructions", "symbol", "symbol_offset", "first_ns")


def list_coverage(trace: Trace) -> pa.Table:
    """A row for each basic block that ran, by process, image and address. Raises TraceDamagedError."""
    arrays = TraceArrays(trace)
    arrays.load("blocks", "block_id", "image_id", "n_instructions")
    images = trace.read("images", ["path"])["path"]
    rows = np.flatnonzero((arrays.block_executions > 0) & (arrays.n_instructions > 0))
    blocks = trace.read("blocks", _COLUMNS).take(pa.array(rows))
    image = arrays.block_image[rows]
    paths = images.take(pa.array(image, mask=image < 0))
    table = blocks.add_column(1, "image", pa.chunked_array(paths))
    table = table.append_column("executions", pa.array(arrays.block_executions[rows]))
    return table.sort_by([("process_id", "ascending"), ("app_pc", "ascending")])
