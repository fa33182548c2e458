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

from clew.protocol._generated import EventKind, Mode
from clew.recording.assemble_code import count_counters, parse_code, work_out
from clew.recording.assemble_ends import end_at_execution
from clew.recording.assemble_images import ImageFiles, build_image_map
from clew.recording.assemble_paths import build_path_tables
from clew.recording.assemble_regions import iter_tag_tables
from clew.recording.assemble_tables import Clock, FirstIds, build_tables, clean_text, number_blocks
from clew.recording.finish_paths import drop_paths, finish_paths
from clew.recording.path_weights import weigh_counters
from clew.recording.raw import RawProcess, SessionInfo
from clew.store.manifest import Manifest
from clew.store.writer import TraceWriter

__all__ = ["assemble"]


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
    losses = dict.fromkeys(
        (
            "dropped_records",
            "damaged_records",
            "damaged_counters",
            "lost_threads",
            "lost_processes",
            "unfollowed_children",
            "uncounted_fragments",
            "untagged_fragments",
        ),
        0,
    )
    warnings = list(session.warnings)
    ends: list[dict[str, Any]] = []
    mode = session.mode
    for process in processes:
        # Where the order was recorded for a while only.
        mode = Mode.FULL if process.mode == Mode.FULL else mode
        end = _assemble_process(process, writer, first, files, losses, warnings, follow=session.follow)
        ends.append(end)
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
            losses=losses,
            processes=ends,
            warnings=[clean_text(line) for line in dict.fromkeys(warnings)],
        )
    )


def _describe_cpu(session: SessionInfo) -> dict[str, float]:
    target = session.target_cpu_seconds
    known = {} if target is None else {"target_seconds": target}
    return known | {"controller_seconds": session.controller_cpu_seconds}


def _assemble_process(
    process: RawProcess,
    writer: TraceWriter,
    first: FirstIds,
    files: ImageFiles,
    losses: dict[str, int],
    warnings: list[str],
    *,
    follow: bool,
) -> dict[str, Any]:
    n_counters = count_counters(process.threads)
    code = parse_code(process.records, n_counters)
    parsed = code.parsed
    process = end_at_execution(process, parsed.events)
    flow, blocks, edges = work_out(code, process.threads, process.mode)
    images = build_image_map(process.initial_images, parsed.mappings, parsed.unmaps, files)
    if process.mode == Mode.FULL:
        clock = Clock(process)
        weights = weigh_counters(parsed.fragments, flow, blocks, n_counters)
        paths = finish_paths(process, writer.directory, weights, clock, first.process)
        starts_ns = [clock.one_to_ns(path.thread.start_tsc) for path in paths]
        for name, table in build_path_tables(process, parsed, blocks, edges, paths, starts_ns, weights, first):
            writer.write(name, table)
    else:
        drop_paths(process, writer.directory)
    if process.mode == Mode.REGION:
        block_id, _ = number_blocks(blocks, edges, first.block)
        for table in iter_tag_tables(process, parsed.fragments, flow, blocks, block_id, first.process):
            writer.write("tags", table)
    for name, table in build_tables(process, parsed.fragments, parsed.events, images, blocks, edges, first):
        writer.write(name, table)

    status = process.status
    losses["dropped_records"] += int(status["lost_records"])
    losses["damaged_records"] += parsed.damaged_records + len(blocks.code.damaged)
    losses["damaged_counters"] += flow.damaged_counters
    losses["lost_threads"] += int(status["lost_threads"])
    losses["lost_processes"] += process.is_lost
    is_fork = parsed.events["event_kind"] == EventKind.FORK
    losses["unfollowed_children"] += follow and int(np.count_nonzero(is_fork & (parsed.events["b"] != 1)))
    losses["uncounted_fragments"] += int(status["uncounted_fragments"])
    losses["untagged_fragments"] += int(status["untagged_fragments"])
    warnings += process.warnings
    if not images.is_complete:
        warnings.append("mappings overlap beyond all measure: some code is told to be of the wrong image")
    if edges.shared_return_points:
        some = ", ".join(hex(pc) for pc in sorted(edges.shared_return_points)[:4])
        warnings.append(f"overlapping calls end at the same address ({some}); returns there are told of the lower one")
    end: dict[str, Any] = {"pid": process.pid}
    if process.signal is not None:
        end["signal"] = process.signal
    else:
        end["code"] = process.exit_code
    if process.went_on_unfollowed:
        end["went_on_unfollowed"] = True
    return end
