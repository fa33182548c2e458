"""Este's files of a program are what single-stepping and binutils say, field by field."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clew.export.este.config import EsteScope
from clew.export.este.exporter import EsteExporter
from clew.store.trace import Trace
from tests.e2e import runs
from tests.oracle.este_truth import (
    MADE,
    MAIN,
    OUTSIDE,
    Row,
    Stepped,
    build,
    count_links,
    read_end,
    read_functions,
    read_sections,
)


@dataclass(frozen=True)
class Files:
    """Este's files of one process, read."""

    pid: int
    folder: Path
    process: dict[str, Any]
    routines: list[list[str]]
    blocks: list[list[str]]
    trace: list[list[str]]

    @property
    def images(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.process["binaries_loaded"]
        return found

    def image(self, name: str) -> dict[str, Any]:
        return next(image for image in self.images if Path(image["path"]).name == name)

    def rows(self, pin_tid: int) -> list[tuple[int, int]]:
        """Of a thread, numbers of blocks and of routines."""
        return [(int(row[0]), int(row[3])) for row in self.trace if int(row[2]) == pin_tid]


def read_table(path: Path, header: str) -> list[list[str]]:
    """The rows of a CSV file, which has no other newline than those that end rows."""
    text = path.read_bytes().decode("ascii")
    assert text.endswith("\n") and "\r" not in text
    lines = list(csv.reader(text.splitlines()))
    assert lines[0] == header.split(",")
    return lines[1:]


def read_files(folder: Path, pid: int) -> Files:
    return Files(
        pid,
        folder,
        json.loads((folder / f"pid{pid}.este.json").read_text()),
        read_table(folder / f"pid{pid}.rtn.csv", "idx,addr,rtn_name,image_idx,section_idx"),
        read_table(folder / f"pid{pid}.bb.csv", "idx,addr,size,bytes,image_idx,section_idx"),
        read_table(folder / f"pid{pid}.trace.csv", "bb_idx,os_tid,pin_tid,rtn_called_idx"),
    )


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> Stepped:
    folder = tmp_path_factory.mktemp("este")
    build(folder)
    return Stepped(folder)


@pytest.fixture(scope="module")
def recorded(stepped: Stepped) -> Trace:
    recorded = runs.record([stepped.folder / MAIN], stepped.folder / "t.clew", "--mode", "full", fixed_layout=True)
    assert recorded == stepped.run
    assert recorded.status == 7
    return runs.read(stepped.folder / "t.clew").trace


@pytest.fixture(scope="module", params=[False, True], ids=["images", "dynamic"])
def has_made(request: pytest.FixtureRequest) -> bool:
    """Whether code outside of images is told of."""
    chosen: bool = request.param
    return chosen


@pytest.fixture(scope="module")
def files(recorded: Trace, has_made: bool, tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("files")
    scope = EsteScope(("/PROGRAM",), has_made)
    written = EsteExporter(scope).export_into(recorded, folder)
    assert written.warnings == []
    found = read_files(folder, recorded.processes["pid"][0].as_py())
    assert written.count == sum(row[0] != "-1" for row in found.trace)
    return found


def section_of(image: dict[str, Any], pc: int) -> int:
    ranges = image["addr_range_executable"]
    return next((at for at, (low, high) in enumerate(ranges) if low <= pc < high), -1)


def test_names_of_files(files: Files, recorded: Trace) -> None:
    tids = recorded.threads["tid"].to_pylist()
    of_threads = {f"pid{files.pid}_tid{tid}_ptid{number}.json" for number, tid in enumerate(tids)}
    of_process = {f"pid{files.pid}.{suffix}" for suffix in ("este.json", "rtn.csv", "bb.csv", "trace.csv", "log")}
    assert {path.name for path in files.folder.iterdir()} == of_threads | of_process | {"pid_tid_map.json"}
    told = json.loads((files.folder / "pid_tid_map.json").read_text())
    assert told == {str(files.pid): [{"pin_tid": number, "os_tid": tid} for number, tid in enumerate(tids)]}


def test_images(files: Files, stepped: Stepped) -> None:
    assert (files.process["pid"], files.process["architecture"]) == (files.pid, "ARCH_X8664")
    assert set(files.process) == {"pid", "architecture", "binaries_loaded"}
    assert [image["idx"] for image in files.images] == list(range(len(files.images)))
    lines = [line.split() for line in stepped.maps.splitlines()]
    mapped = {fields[5] for fields in lines if len(fields) > 5 and fields[1][2] == "x"} - {"[vsyscall]"}
    assert {image["path"] for image in files.images} == mapped
    # The library is loaded by the program, the others with it.
    assert files.images[-1]["path"] == str(stepped.folder / OUTSIDE)
    for image in files.images:
        assert set(image) == {"idx", "path", "addr_range", "addr_range_executable", "is_main", "is_whitelisted"}
        low = min(int(fields[0].split("-")[0], 16) for fields in lines if fields[5:] == [image["path"]])
        high = max(int(fields[0].split("-")[1], 16) for fields in lines if fields[5:] == [image["path"]])
        is_main = Path(image["path"]).name == MAIN
        assert image["is_main"] is image["is_whitelisted"] is is_main
        base, path = 0 if is_main else low, Path(image["path"])
        sections = [] if image["path"] == "[vdso]" else read_sections(path)
        assert image["addr_range"] == [low, base + read_end(path) if sections else high]
        assert image["addr_range_executable"] == [[base + s.start, base + s.end] for s in sections]
        assert bool(sections) == (image["path"] != "[vdso]")


def test_blocks(files: Files, stepped: Stepped, has_made: bool) -> None:
    blocks, _ = stepped.tell(has_made=has_made)
    main = files.image(MAIN)
    expected = {}
    for pc, block in blocks.items():
        is_made = pc >= MADE
        image, section = (-1, -1) if is_made else (main["idx"], section_of(main, pc))
        assert is_made or section >= 0
        expected[str(pc)] = [str(pc), str(len(block.code)), block.code.hex().upper(), str(image), str(section)]
    assert [row[0] for row in files.blocks] == [str(number) for number in range(len(files.blocks))]
    assert {row[1]: row[1:] for row in files.blocks} == expected
    assert any(pc >= MADE for pc in blocks) == has_made
    # In the order of first execution.
    seen = dict.fromkeys(int(row[0]) for row in files.trace if row[0] != "-1")
    assert list(seen) == list(range(len(files.blocks)))


def test_executions(files: Files, recorded: Trace, stepped: Stepped, has_made: bool) -> None:
    _, threads = stepped.tell(has_made=has_made)
    address = {int(row[0]): int(row[1]) for row in files.blocks} | {-1: None}
    called = {int(row[0]): int(row[1]) for row in files.routines} | {-1: None}
    tids = recorded.threads["tid"].to_pylist()
    assert {(row[1], row[2]) for row in files.trace} == {(str(tid), str(number)) for number, tid in enumerate(tids)}
    for pin_tid, expected in enumerate(threads):
        found = [Row(address[block], called[routine]) for block, routine in files.rows(pin_tid)]
        assert found == expected
    # All ways out are among what was compared.
    out = [row for rows in threads for row in rows if row.called is not None]
    assert len({row.called for row in out}) >= (6 if has_made else 7)
    assert any(row.pc is None for row in threads[1])


def test_threads_are_told_of_in_the_order_of_time(files: Files, stepped: Stepped, has_made: bool) -> None:
    """The first thread makes the second, then waits until that has nearly ended."""
    _, threads = stepped.tell(has_made=has_made)
    own = read_functions(stepped.folder / MAIN, is_dynamic=False)
    start = next(pc for pc, name in own.items() if name == "spawn")
    numbers = {int(row[1]): int(row[0]) for row in files.blocks}
    order = [(int(row[0]), int(row[2])) for row in files.trace]
    of_second = [at for at, (_, pin_tid) in enumerate(order) if pin_tid == 1]
    spawns = next(at for at, row in enumerate(order) if row == (numbers[start], 0))
    assert spawns < of_second[0]
    # What it did before it wrote, which is all but its last blocks, comes before what the first one did last.
    writes = len(threads[1]) - 3
    last = max(at for at, (_, pin_tid) in enumerate(order) if pin_tid == 0)
    assert of_second[writes] < last


def test_routines(files: Files, stepped: Stepped, has_made: bool) -> None:
    assert [row[0] for row in files.routines] == [str(number) for number in range(len(files.routines))]
    # Of the library all names, those functions that have none and were executed, and nothing else.
    library = files.image(OUTSIDE)
    base = library["addr_range"][0]
    exported = read_functions(stepped.folder / OUTSIDE, is_dynamic=True)
    every = read_functions(stepped.folder / "named.so", is_dynamic=False)
    hidden = {pc for pc, name in every.items() if name in ("twice", "less", "ask")}
    executed = {pc - base for path in stepped.threads for pc in path if pc is not None}
    names = exported | {pc: f"sub_{base + pc:x}" for pc in hidden & executed}
    assert len(names) > len(exported) == 5
    [never] = [pc for pc, name in exported.items() if name == "outside_never"]
    assert never not in executed
    expected = [
        [str(base + pc), name, str(library["idx"]), str(section_of(library, base + pc))]
        for pc, name in sorted(names.items())
    ]
    assert [row[1:] for row in files.routines if row[3] == str(library["idx"])] == expected
    # Of the dynamic linker at least what it exports, by the same names; of the program nothing.
    linker = next(image for image in files.images if image["path"].endswith("/ld-linux-x86-64.so.2"))
    low = linker["addr_range"][0]
    rows = {int(row[1]) - low: row[2] for row in files.routines if row[3] == str(linker["idx"])}
    aliases: dict[int, set[str]] = {}
    dynamic = read_functions(Path(linker["path"]), is_dynamic=True)
    for pc, name in dynamic.items():
        aliases.setdefault(pc, set()).add(name)
    assert set(dynamic) <= set(rows)
    assert all(int(row[4]) == section_of(linker, int(row[1])) for row in files.routines if row[3] == str(linker["idx"]))
    assert not any(row[3] == str(files.image(MAIN)["idx"]) for row in files.routines)
    # What was made while it ran has no image; it is told of, or called.
    made = [row[1:] for row in files.routines if row[3] == "-1"]
    assert made == ([] if has_made else [[str(MADE), f"sub_{MADE:x}", "-1", "-1"]])


def test_graphs(files: Files, recorded: Trace, stepped: Stepped, has_made: bool) -> None:
    names = {int(row[0]): row[2] for row in files.routines}
    header = ["idx", "addr", "size", "bytes", "image_idx", "section_idx"]
    _, threads = stepped.tell(has_made=has_made)
    number_of = {int(row[1]): int(row[0]) for row in files.blocks}
    routine_of = {int(row[1]): int(row[0]) for row in files.routines}
    for pin_tid, (tid, expected_rows) in enumerate(zip(recorded.threads["tid"].to_pylist(), threads, strict=True)):
        graph = json.loads((files.folder / f"pid{files.pid}_tid{tid}_ptid{pin_tid}.json").read_text())
        assert set(graph) == {"nodes", "links"}
        rows = [
            (-1 if row.pc is None else number_of[row.pc], -1 if row.called is None else routine_of[row.called])
            for row in expected_rows
        ]
        counts = Counter(block for block, _ in rows if block >= 0)
        assert {node["id"]: node["count"] for node in graph["nodes"]} == counts
        for node in graph["nodes"]:
            assert [str(node[name]) for name in header] == files.blocks[node["id"]]
            assert node["idx"] == node["id"]
            assert set(node) == {*header, "id", "count"}
        expected = count_links(rows, names)
        found = {}
        for link in graph["links"]:
            assert set(link) <= {"source", "target", "count", "non_white", "rtn_called"}
            assert link.get("non_white", 1) == 1
            found[link["source"], link["target"], "non_white" in link, link.get("rtn_called")] = link["count"]
        assert found == expected
        assert any(link[2] and link[3] for link in expected) and any(not link[2] for link in expected)


def test_log(files: Files, recorded: Trace, stepped: Stepped) -> None:
    lines = (files.folder / f"pid{files.pid}.log").read_text().splitlines()
    assert all(line.startswith("[INFO] ") for line in lines)
    text = "\n".join(lines)
    assert f"{stepped.folder / MAIN} [MAIN] [WHITELISTED]" in text
    assert "process ended with code 7" in text
    for number, tid in enumerate(recorded.threads["tid"].to_pylist()):
        assert f"thread {number} (os {tid}" in text
