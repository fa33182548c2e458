"""What changed of a live picture, as a container of typed arrays: docs/format/container.md lists them, as `live`.

Runs in the controller. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from clew.server.container import encode_container, pack_texts
from clew.server.live_graph import LiveGraph
from clew.server.live_rows import LiveRows
from clew.store.columns import Array

__all__ = ["encode_frame"]


def encode_frame(graph: LiveGraph | None, since: int, meta: Mapping[str, Any]) -> bytes:
    """What changed of `graph` after number `since` of the sequence; all of it for a `since` of -1."""
    if graph is None:
        return encode_container("live", {**meta, "since": since, "images": None, "totals": None}, {})
    told = {
        **meta,
        "since": since,
        "images": graph.images if graph.images_changed > since else None,
        "totals": {
            "functions": len(graph.functions),
            "blocks": len(graph.blocks),
            "edges": len(graph.edges),
            "instructions": graph.instructions,
            "executions": graph.executions,
            "threads_ended": graph.n_threads_ended,
        },
    }
    arrays: dict[str, Array] = {}
    functions = graph.functions.find_changed(since)
    arrays |= _take("function", graph.functions, functions, leave_out="name")
    arrays |= pack_texts("function_name", [graph.texts[text] for text in graph.functions.columns["name"][functions]])
    arrays |= _take("block", graph.blocks, graph.blocks.find_changed(since))
    arrays |= _take("edge", graph.edges, graph.edges.find_changed(since))
    for name, rows in (("block", graph.blocks), ("edge", graph.edges)):
        counted = rows.find_counted(since)
        arrays[f"counted_{name}"] = counted.astype(np.uint32)
        arrays[f"counted_{name}_executions"] = rows.counts[counted]
    threads = graph.threads
    arrays |= {
        "thread_tid": np.array([one.tid for one in threads], np.uint32),
        "thread_running": np.array([one.is_running for one in threads], np.uint8),
        "thread_members": np.array([one.n_members for one in threads], np.uint32),
        "thread_instructions": np.array([one.instructions for one in threads], np.float64),
        "thread_executions": np.array([one.executions for one in threads], np.float64),
    }
    arrays |= pack_texts("thread_name", [one.name for one in threads])
    return encode_container("live", told, arrays)


def _take(prefix: str, rows: LiveRows, numbers: Array, leave_out: str = "") -> dict[str, Array]:
    """The numbers, columns and ends of some rows."""
    return {
        prefix: numbers.astype(np.uint32),
        **{f"{prefix}_{name}": column[numbers] for name, column in rows.columns.items() if name != leave_out},
        f"{prefix}_gone": rows.is_gone[numbers].astype(np.uint8),
    }
