"""The graph of two processes that are compared as typed arrays: its functions, its nodes, and what of them is whose.

Runs in the controller. docs/format/container.md lists the arrays; those of functions and blocks are as of one process,
nodes in the place of blocks, so that a page draws both alike.
"""

from __future__ import annotations

import numpy as np

from clew.analysis.comparison.union_graph import UnionGraph
from clew.server.container import encode_container, pack_texts
from clew.server.graph_arrays import find_main_image, function_flags
from clew.store.columns import Array

__all__ = ["encode_compared_blocks", "encode_compared_functions", "encode_comparison"]


def encode_compared_functions(union: UnionGraph) -> bytes:
    """Functions and the links between them."""
    executable = union.graphs[0].arrays.trace.read("processes", ["executable"])["executable"][0].as_py()
    main = find_main_image(union.images, executable)
    source, target, is_call, _ = union.links
    meta = {
        "process_id": union.graphs[0].process_id,
        "n_blocks": union.n_nodes,
        "n_edges": union.n_edges,
        "main_image": main,
        "images": [
            {"path": image["path"], "base": hex(image["base"]), "size_bytes": image["size_bytes"]}
            for image in union.images
        ],
        "threads": union.graphs[0].threads.tolist(),
    }
    arrays = pack_texts("name", union.names) | {
        "image": union.image.astype(np.int32),
        "offset": union.offset,
        "address": union.app_pc[union.entry_block].astype(np.uint64),
        "entry_block": union.entry_block.astype(np.uint32),
        "first_block": union.first_block.astype(np.uint32),
        "discovered": union.discovered_ns.astype(np.float64),
        "caller": union.caller.astype(np.int32),
        "depth": union.depth.astype(np.int32),
        "flags": function_flags(union.is_stub, union.image, main),
        "link_source": source.astype(np.uint32),
        "link_target": target.astype(np.uint32),
        "link_call": is_call.astype(np.uint8),
    }
    return encode_container("functions", meta, arrays)


def encode_compared_blocks(union: UnionGraph) -> bytes:
    """Nodes and edges."""
    arrays: dict[str, Array] = {
        "function": union.function.astype(np.uint32),
        "block_id": union.block_id.astype(np.float64),
        "address": union.app_pc.astype(np.uint64),
        "size_bytes": union.size_bytes.astype(np.uint32),
        "n_instructions": union.n_instructions.astype(np.uint32),
        "exit_kind": union.exit_kind.astype(np.int8),
        "code_version": union.code_version.astype(np.uint32),
        "first": union.first_ns.astype(np.float64),
        "is_recorded": union.is_recorded.astype(np.uint8),
        "edge_index": np.arange(union.n_edges, dtype=np.uint32),
        "edge_source": union.source.astype(np.int32),
        "edge_target": union.target.astype(np.int32),
        "edge_kind": union.kind.astype(np.int8),
        "edge_callee": union.callee.astype(np.int32),
    }
    return encode_container("blocks", {"process_id": union.graphs[0].process_id, "first_block": 0}, arrays)


def encode_comparison(union: UnionGraph) -> bytes:
    """How often each of both executed what, and which function and block of theirs it is."""
    diff = union.diff
    ran = union.executions > 0
    alone = np.stack([ran[side] & ~ran[1 - side] & union.is_comparable for side in (0, 1)])
    differs = diff.blocks.differs[union.number]
    instructions = diff.blocks.instructions[:, union.number]
    of_functions = union.sum_functions(instructions)
    only = union.sum_functions(alone)
    has_run = union.sum_functions(ran)
    entries, links = union.count_entries(), union.sum_links()
    apart = np.abs(instructions[0] - instructions[1]) * union.is_comparable
    differing, difference, unknown = union.sum_functions(
        np.stack([differs, apart, ran.any(axis=0) & ~union.is_comparable])
    )
    arrays: dict[str, Array] = {
        "is_comparable": union.is_comparable.astype(np.uint8),
        "distance": union.distance.astype(np.float64),
        "function_difference": difference.astype(np.float64),
        "function_differing": differing.astype(np.uint32),
        "function_not_comparable": unknown.astype(np.uint32),
    }
    for side, name in enumerate("ab"):
        arrays |= {
            f"block_{name}": union.block[side].astype(np.int32),
            f"executions_{name}": union.executions[side].astype(np.float64),
            f"edge_{name}": union.edge_executions[side].astype(np.float64),
            f"link_{name}": links[side].astype(np.float64),
            f"function_{name}": union.graph_function[side].astype(np.int32),
            f"entries_{name}": entries[side].astype(np.float64),
            f"instructions_{name}": of_functions[side].astype(np.float64),
            f"blocks_{name}": has_run[side].astype(np.uint32),
            f"only_{name}": only[side].astype(np.uint32),
        }
    meta = {
        "process_id": union.graphs[0].process_id,
        "other_process_id": union.graphs[1].process_id,
        "is_counted": diff.is_counted,
    }
    return encode_container("comparison", meta, arrays)
