"""Lines of instructions against those that `addr2line` finds in a program with debugging information."""

from __future__ import annotations

import subprocess
from pathlib import Path

from clew.address import FileOffset
from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.graph.instruction_lines import InstructionLines
from clew.binary.architectures.x86_64 import X86_64
from clew.binary.disassembly import instruction_starts
from clew.binary.elf import ElfFile, open_elf
from clew.binary.symbols import load_symbols
from tests.unit.small_trace import MakeTrace, Rows

SOURCE = """
int twice(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += 2;
    return sum;
}
int main(int argc, char **argv) {
    (void)argv;
    return twice(argc);
}
"""


def test_lines_are_addr2lines(make_trace: MakeTrace, rows: Rows, tmp_path: Path) -> None:
    source, program = tmp_path / "twice.c", tmp_path / "twice"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O0", "-o", program, source], check=True)
    with open_elf(program) as elf:
        build_id, base = elf.build_id, elf.lowest_address
        content = {
            name: elf.read(_file_offset(elf, offset + base), size)
            for name, (offset, size) in _functions(program).items()
        }
    offsets = {name: offset for name, (offset, _) in _functions(program).items()}
    rows["images"][0] |= {"path": str(program), "build_id": build_id}
    for block, name in ((rows["blocks"][0], "twice"), (rows["blocks"][3], "main")):
        block |= {"bytes": content[name], "size_bytes": len(content[name]), "offset": offsets[name]}
        block |= {"app_pc": rows["images"][0]["base"] + offsets[name], "function_offset": offsets[name]}
    graph = ProcessGraph(make_trace(rows), 0)
    found = InstructionLines(graph).find(range(graph.n_blocks))
    assert found["files"] == [str(source)]
    for name in ("twice", "main"):
        (index,) = [b for b in range(graph.n_blocks) if graph.app_pc[b] == rows["images"][0]["base"] + offsets[name]]
        starts = instruction_starts(content[name], offsets[name] + base, X86_64)
        told = subprocess.run(
            ["addr2line", "-e", program, *map(hex, starts)], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        expected = [int(line.rpartition(":")[2].split()[0]) for line in told]
        assert [line for _, line in found["lines"][str(index)]] == expected


def test_another_file_by_now_gives_no_lines(make_trace: MakeTrace, rows: Rows, tmp_path: Path) -> None:
    source, program = tmp_path / "twice.c", tmp_path / "twice"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-o", program, source], check=True)
    rows["images"][0] |= {"path": str(program), "build_id": "ab" * 20}
    graph = ProcessGraph(make_trace(rows), 0)
    assert InstructionLines(graph).find(range(graph.n_blocks)) == {"files": [], "lines": {}}


def _functions(program: Path) -> dict[str, tuple[int, int]]:
    """Image offsets and sizes of the functions of SOURCE."""
    table = load_symbols(program)
    names = {table.name(index): index for index in range(len(table))}
    return {name: (int(table.offsets[names[name]]), int(table.sizes_bytes[names[name]])) for name in ("twice", "main")}


def _file_offset(elf: ElfFile, address: int) -> FileOffset:
    for segment in elf.segments:
        if segment.kind == 1 and segment.address <= address < segment.address + segment.file_bytes:
            return FileOffset(segment.file_offset + address - segment.address)
    raise AssertionError(hex(address))
