"""The graph of a process as typed arrays: its functions, its blocks, and how often they were executed.

Runs in the controller. docs/format/container.md lists the arrays. Times are nanoseconds since the recording began, as
f64: exact for 104 days. Executions are f64, exact up to 2^53.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clew.protocol._constants import FunctionFlag
from clew.server.container import encode_container, pack_texts
from clew.server.served_trace import ServedTrace
from clew.store.columns import Array

__all__ = [
    "encode_blocks",
    "encode_counts",
    "encode_functions",
    "encode_thread_functions",
    "find_main_image",
    "function_flags",
]


def function_flags(is_stub: Array, image: Array, main: int) -> Array:
    """FunctionFlag of each function; `image` is its image, or -1, and `main` the executable, or -1. u8."""
    flags = np.where(is_stub, FunctionFlag.STUB, 0) | np.where(image < 0, FunctionFlag.OUTSIDE, 0)
    flags |= np.where((image == main) & (main >= 0), FunctionFlag.MAIN_IMAGE, 0)
    return flags.astype(np.uint8)


def find_main_image(images: Sequence[Mapping[str, Any]], executable: str | None) -> int:
    """Which of `images` is the executable's; -1 if it is not known."""
    return next((number for number, image in enumerate(images) if image["path"] == executable), -1)


def encode_functions(served: ServedTrace, process_id: int) -> bytes:
    """Functions and the links between them: all that is needed to draw a graph of functions."""
    graph = served.graph(process_id)
    processes = served.trace.processes
    row = processes["process_id"].to_pylist().index(process_id)
    main = find_main_image(graph.images, processes["executable"][row].as_py())
    source, target, is_call, _ = graph.links
    meta = {
        "process_id": process_id,
        "n_blocks": graph.n_blocks,
        "n_edges": graph.n_edges,
        "main_image": main,
        "images": [
            {"path": image["path"], "base": hex(image["base"]), "size_bytes": image["size_bytes"]}
            for image in graph.images
        ],
        "threads": graph.threads.tolist(),
    }
    arrays = pack_texts("name", graph.names) | {
        "image": graph.image.astype(np.int32),
        "offset": graph.offset.astype(np.uint64),
        "address": graph.app_pc[graph.entry_block].astype(np.uint64),
        "entry_block": graph.entry_block.astype(np.uint32),
        "first_block": graph.first_block.astype(np.uint32),
        "discovered": (graph.discovered_ns - served.start_ns).astype(np.float64),
        "caller": graph.caller.astype(np.int32),
        "depth": graph.depth.astype(np.int32),
        "flags": function_flags(graph.is_stub, graph.image, main),
        "link_source": source.astype(np.uint32),
        "link_target": target.astype(np.uint32),
        "link_call": is_call.astype(np.uint8),
    }
    return encode_container("functions", meta, arrays)


def encode_blocks(served: ServedTrace, process_id: int, functions: tuple[int, int] | None = None) -> bytes:
    """Blocks and edges; of the functions from one up to another only, with the edges that touch them."""
    graph = served.graph(process_id)
    first, last = functions or (0, graph.n_functions)
    first_block, last_block = int(graph.first_block[first]), int(graph.first_block[last])
    blocks = slice(first_block, last_block)
    edges: Array = np.arange(graph.n_edges)
    if functions is not None:
        inside = [(ends >= first_block) & (ends < last_block) for ends in (graph.source, graph.target)]
        edges = np.flatnonzero(inside[0] | inside[1])
    arrays: dict[str, Array] = {
        "function": graph.function[blocks].astype(np.uint32),
        "block_id": graph.block_id[blocks].astype(np.float64),
        "address": graph.app_pc[blocks].astype(np.uint64),
        "size_bytes": graph.size_bytes[blocks].astype(np.uint32),
        "n_instructions": graph.n_instructions[blocks].astype(np.uint32),
        "exit_kind": graph.exit_kind[blocks].astype(np.int8),
        "code_version": graph.code_version[blocks].astype(np.uint32),
        "first": (graph.first_ns[blocks] - served.start_ns).astype(np.float64),
        "is_recorded": graph.is_recorded[blocks].astype(np.uint8),
        "edge_index": edges.astype(np.uint32),
        "edge_source": graph.source[edges].astype(np.int32),
        "edge_target": graph.target[edges].astype(np.int32),
        "edge_kind": graph.kind[edges].astype(np.int8),
        "edge_callee": graph.callee[edges].astype(np.int32),
    }
    return encode_container("blocks", {"process_id": process_id, "first_block": first_block}, arrays)


def encode_counts(
    served: ServedTrace, process_id: int, threads: Sequence[int] | None, *, has_blocks: bool, has_owners: bool
) -> bytes:
    """Executions by some threads, or by all: of functions and links, and if wanted of blocks and edges.

    `has_owners` adds which of them executed each block most: an index of the threads of the functions' container, -1
    for none, -2 for several.
    """
    graph = served.graph(process_id)
    counts = graph.count(threads)
    arrays: dict[str, Array] = {
        "function_instructions": graph.sum_functions(counts).astype(np.float64),
        "function_entries": graph.count_entries(counts).astype(np.float64),
        "link_executions": graph.sum_links(counts).astype(np.float64),
    }
    if has_blocks:
        arrays["block_executions"] = counts.blocks.astype(np.float64)
        arrays["edge_executions"] = counts.edges.astype(np.float64)
    if has_owners:
        if threads is None:
            owners = served.once(("owners", process_id), graph.find_owners)
        else:
            owners = graph.find_owners(threads)
        arrays["block_owner"] = owners.astype(np.int32)
    meta: dict[str, Any] = {"process_id": process_id, "threads": None if threads is None else list(threads)}
    return encode_container("counts", meta, arrays)


def encode_thread_functions(served: ServedTrace, process_id: int) -> bytes:
    """What each thread executed: instructions by thread and function, only those that are not 0."""
    thread, function, instructions = served.graph(process_id).sum_thread_functions()
    return encode_container(
        "thread_functions",
        {"process_id": process_id},
        {
            "thread": thread.astype(np.uint32),
            "function": function.astype(np.uint32),
            "instructions": instructions.astype(np.float64),
        },
    )
