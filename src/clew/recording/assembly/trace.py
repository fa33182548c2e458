"""From what a session recorded to a trace on disk.

Runs in the controller, after the target ended. Its time counts as the recorder's, so everything that grows with the
program works on whole arrays. The steps: records are parsed, the flow is accounted for, fragments become blocks, edges
and counts are worked out, code gets images and names, tables are written.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import replace
from clew.protocol._generated import Mode
from clew.recording.assembly.blocks.block_code import BlockCode
from clew.recording.assembly.blocks.blocks import CutBlocks
from clew.recording.assembly.clock import Clock, set_start
from clew.recording.assembly.code import find_blocks, find_edges, find_flow, needs_fragments, parse_code
from clew.recording.assembly.edges.edges import Edges
from clew.recording.assembly.ends import settle_end
from clew.recording.assembly.flow.flow import ProcessFlow
from clew.recording.assembly.images.images import ImageFiles, ImageMap, build_image_map, join_image_maps
from clew.recording.assembly.memory import give_back_memory
from clew.recording.assembly.records.bundles import Bundle, iter_bundles
from clew.recording.assembly.records.records import ImageMapping, ParsedRecords
from clew.recording.assembly.tables.losses import Losses
from clew.recording.assembly.tables.tables import FirstIds, build_tables, clean_text, number_blocks
from clew.recording.raw.process import RawProcess, SessionInfo
from clew.store.manifest import Manifest
from clew.store.names import PATHS_FOLDER
from clew.store.writer import TraceWriter

__all__ = ["assemble"]

Array = npt.NDArray[Any]

LARGE_RECORDS = 1 << 18
"""What a step took that had so many is given back to the kernel: pieces of the next step's would lie all over it."""


def assemble(processes: Iterable[RawProcess], trace_directory: Path, session: SessionInfo) -> None:
    """Write the trace of `processes` into `trace_directory`, which exists.

    Raises OSError if it can't be written: nothing of it is left then.
    """
    writer = TraceWriter(trace_directory)
    try:
        _write(processes, writer, session)
    except BaseException:
        writer.discard()
        raise


def _write(processes: Iterable[RawProcess], writer: TraceWriter, session: SessionInfo) -> None:
    first, files = FirstIds(), ImageFiles()
    losses = Losses(session)
    warnings = list(session.warnings)
    ends: list[dict[str, Any]] = []
    mode = session.mode
    offset_ns = session.machine.get("clock_offset_ns")
    for bundle in iter_bundles(set_start(process, offset_ns) for process in processes):
        # Where the order was recorded for a while only.
        mode = Mode.FULL if bundle.mode == Mode.FULL else mode
        ends += _assemble_bundle(bundle, writer, first, files, losses, warnings)
    writer.finish(
        Manifest(
            command=[clean_text(word) for word in session.command],
            mode=mode.name.lower(),
            include=[clean_text(word) for word in session.include],
            exclude=[clean_text(word) for word in session.exclude],
            start_ns=session.start_ns,
            end_ns=session.end_ns,
            clew_version=session.clew_version,
            machine=session.machine,
            cpu=_describe_cpu(session),
            losses=losses.counts,
            releases=losses.releases,
            processes=ends,
            warnings=[clean_text(line) for line in dict.fromkeys(warnings)],
        )
    )


def _describe_cpu(session: SessionInfo) -> dict[str, float]:
    target = session.target_cpu_seconds
    known = {} if target is None else {"target_seconds": target}
    return known | {"controller_seconds": session.controller_cpu_seconds}


def _assemble_bundle(
    bundle: Bundle,
    writer: TraceWriter,
    first: FirstIds,
    files: ImageFiles,
    losses: Losses,
    warnings: list[str],
) -> list[dict[str, Any]]:
    """Write the tables of some processes; how they ended, for the manifest."""
    is_large = len(bundle.records) > LARGE_RECORDS
    code = parse_code(bundle.take_records(), bundle.n_counters)
    parsed, mode = code.parsed, bundle.mode
    mappings, unmaps, events = parsed.mappings, parsed.unmaps, parsed.events
    threads = [bundle.take_threads()]
    bundle = _settle_ends(bundle, events)
    if is_large:
        give_back_memory()
    flow = find_flow(code, threads.pop, mode)
    if is_large:
        give_back_memory()
    cut = find_blocks(code, flow)
    damaged_records = parsed.damaged_records + len(cut.code.damaged)
    losses.add(bundle, events, damaged_records=damaged_records, damaged_counters=flow.damaged_counters)
    blocks, block_code = cut.blocks, BlockCode.find(parsed.fragments, cut)
    # What of it is needed no more takes as much memory as what comes next.
    later = parsed if needs_fragments(parsed.fragments, mode) else None
    del code, parsed
    if is_large:
        give_back_memory()
    flow, edges = find_edges(flow, cut, later.fragments if later else None)
    _write_order(bundle, writer, first, later, flow, cut, edges)
    del flow, cut, later
    if is_large:
        give_back_memory()
    images = _map_images(bundle, mappings, unmaps, files)
    for name, table in build_tables(bundle, block_code, events, images, blocks, edges, first):
        writer.write(name, table)
    del block_code, events, blocks
    if is_large:
        give_back_memory()

    for process in bundle.processes:
        warnings += process.warnings
    if not images.is_complete:
        warnings.append("mappings overlap beyond all measure: some code is told to be of the wrong image")
    if edges.shared_return_points:
        points = bundle.own_pc(np.array(sorted(edges.shared_return_points), np.uint64))
        some = ", ".join(hex(pc) for pc in points[:4].tolist())
        warnings.append(f"overlapping calls end at the same address ({some}); returns there are told of the lower one")
    return [_describe_end(process) for process in bundle.processes]


def _settle_ends(bundle: Bundle, events: Array) -> Bundle:
    """`bundle` with what its processes themselves tell of their ends."""
    owner = bundle.owner_of(events["app_pc"])
    of_process = [events[owner == number] for number in range(len(bundle.processes))]
    ended = [settle_end(process, own) for process, own in zip(bundle.processes, of_process, strict=True)]
    return replace(bundle, processes=ended)


def _map_images(bundle: Bundle, mappings: list[ImageMapping], unmaps: Array, files: ImageFiles) -> ImageMap:
    mapped: list[list[ImageMapping]] = [[] for _ in bundle.processes]
    starts = np.array([mapping.start for mapping in mappings], np.uint64)
    for owner, mapping in zip(bundle.owner_of(starts).tolist(), mappings, strict=True):
        place = bundle.place(owner)
        mapped[owner].append(
            replace(mapping, start=mapping.start - place, end=mapping.end - place) if place else mapping
        )
    owner_of_unmap = bundle.owner_of(unmaps["start"])
    maps = []
    for owner, process in enumerate(bundle.processes):
        unmapped = unmaps[owner_of_unmap == owner]
        unmapped["start"] -= np.uint64(bundle.place(owner))
        maps.append(build_image_map(process.initial_images, mapped[owner], unmapped, files))
    return maps[0] if len(maps) == 1 else join_image_maps(maps, bundle)


def _write_order(
    bundle: Bundle,
    writer: TraceWriter,
    first: FirstIds,
    parsed: ParsedRecords | None,
    flow: ProcessFlow,
    cut: CutBlocks,
    edges: Edges,
) -> None:
    """Write what a process has beside counts, its paths or its tags: such a process is alone in its bundle."""
    process = bundle.processes[0]
    if parsed and bundle.mode == Mode.FULL:
        from clew.recording.assembly.paths.finish_paths import finish_paths
        from clew.recording.assembly.paths.weights import weigh_counters
        from clew.recording.assembly.tables.path_tables import build_path_tables

        clock = Clock(process)
        weights = weigh_counters(parsed, flow, cut, bundle.n_counters)
        paths = finish_paths(process, writer.directory, weights, clock, first.process)
        starts_ns = clock.to_ns(np.array([path.thread.start_tsc for path in paths], np.uint64))
        for name, table in build_path_tables(process, parsed, cut, edges, paths, starts_ns, weights, first):
            writer.write(name, table)
        return
    if (writer.directory / PATHS_FOLDER).is_dir():
        from clew.recording.assembly.paths.finish_paths import drop_paths

        for one in bundle.processes:
            drop_paths(one, writer.directory)
    if parsed and bundle.mode == Mode.REGION:
        from clew.recording.assembly.region.regions import iter_tag_tables

        block_id, _ = number_blocks(cut.blocks, edges, first.block)
        for table in iter_tag_tables(process, parsed.fragments, flow, cut, block_id, first.process):
            writer.write("tags", table)


def _describe_end(process: RawProcess) -> dict[str, Any]:
    end: dict[str, Any] = {"pid": process.pid}
    if process.signal is not None:
        end["signal"] = process.signal
    else:
        end["code"] = process.exit_code
    if process.went_on_unfollowed:
        end["went_on_unfollowed"] = True
    return end
