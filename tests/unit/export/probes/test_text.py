"""Lines of text are what babeltrace2 prints of the same events; those of JSON are as their schema says."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import given, settings

from clew.export.probes.ctf import CtfTrace, process_folder
from clew.export.probes.event_types import EventBatch, EventType, Field, Loss, Shape
from clew.export.probes.json_lines import JsonLinesWriter
from clew.export.probes.text import TextWriter
from clew.protocol._constants import CaptureType
from tests.unit.export.probes.babeltrace import print_ctf
from tests.unit.export.probes.made_events import HOST, PROCESS, START_NS, batches, to_table

ALL = EventType(
    "libc.so.6!malloc+0x10",
    (
        Field("n", CaptureType.I8, is_present=True),
        Field("u", CaptureType.U64, is_present=True),
        Field("f", CaptureType.F64, is_present=True),
        Field("s", CaptureType.TEXT, is_present=True),
        Field("b", Shape.BYTES, is_present=True),
        Field("p", Shape.POINTER, is_present=True),
        Field("regs", Shape.REGISTERS, ("rax", "rsp"), is_present=True),
    ),
    (Field("callstack", Shape.BACKTRACE, is_present=True),),
)
NONE = EventType("none")
TICK = EventType("tick", (Field("n", CaptureType.I32),))


def text_of(*given_batches: EventBatch) -> list[str]:
    file = io.StringIO()
    writer = TextWriter(file, HOST, {4711: b"prog"}, UTC)
    for batch in given_batches:
        writer.write(batch)
    writer.close()
    return file.getvalue().splitlines()


def json_of(*given_batches: EventBatch) -> list[dict[str, Any]]:
    file = io.StringIO()
    writer = JsonLinesWriter(file)
    for batch in given_batches:
        writer.write(batch)
    writer.close()
    return [json.loads(line) for line in file.getvalue().splitlines()]


def ticks(*rows: tuple[int, int, int | None], losses: tuple[Loss, ...] = (), until: int | None = None) -> EventBatch:
    """Time, tid, value."""
    listed = [(time, n, 4711, tid, b"prog", 0, value) for n, (time, tid, value) in enumerate(rows)]
    until_ns = None if until is None else START_NS + until
    return EventBatch([(TICK, to_table(TICK, listed))], [*losses], until_ns)


def test_lines_are_those_of_babeltrace(tmp_path: Path) -> None:
    registers = {"rax": 0, "rsp": (1 << 64) - 1}
    full = -128, (1 << 64) - 1, 0.25, b'a "b" \\ \n\t\xc3\xa9', b"a\0", 0xABCDEF, registers
    batch = EventBatch(
        [
            (ALL, to_table(ALL, [(10, 0, 4711, 4711, b"main", 1, [1, 2], *full)])),
            (NONE, to_table(NONE, [(5, 0, 4711, 4712, b"other", 0), (5_000_000_005, 1, 4711, 4712, b"other", 0)])),
            (ALL, to_table(ALL, [(20, 1, 4711, 4711, b"main", 1, [], 1, 2, 3.0, b"x", b"", 0, registers)])),
        ]
    )
    trace = CtfTrace(process_folder(tmp_path, PROCESS), PROCESS, HOST, "session", START_NS)
    trace.write(batch)
    trace.close()
    lengths = re.compile(r"_(callstack|b)_length = \d+, ")
    assert text_of(batch) == [lengths.sub("", line.decode()) for line in print_ctf(tmp_path)]


def test_text_drives_no_terminal() -> None:
    odd = EventType("\x1b[31m", (Field("\n", CaptureType.TEXT),))
    [line] = text_of(EventBatch([(odd, to_table(odd, [(1, 0, 1, 1, b"\x1b\xff", 0, b"\x1b[2J\x9b\xff\xc2\x9b")]))]))
    assert line.endswith('\\x1b[31m: { cpu_id = 0 }, { vpid = 1, vtid = 1, procname = "\\x1b\\xff" }, '
                         '{ \\n = "\\x1b[2J\\x9b\\xff\\x9b" }')  # fmt: skip


def test_what_is_missing_is_said() -> None:
    row = (1, 0, 4711, 4711, b"prog", None, None)
    [line] = text_of(EventBatch([(TICK, to_table(TICK, [row]))]))
    assert "{ cpu_id = <missing> }" in line
    assert line.endswith("{ n = <missing> }")


def test_events_of_threads_are_brought_in_order() -> None:
    first = ticks((10, 1, 1), (30, 1, 3), until=25)
    second = ticks((20, 2, 2), (40, 2, 4), losses=(Loss(START_NS + 40, 4711, 2, 9),), until=41)
    found = json_of(first, second, ticks((50, 1, 5)))
    assert [one.get("lost") or one["fields"]["n"] for one in found] == [1, 2, 3, 4, 9, 5]
    # Nothing waits for what nobody promised.
    assert [one["fields"]["n"] for one in json_of(ticks((10, 1, 1), (30, 1, 3)), ticks((20, 2, 2)))] == [1, 3, 2]


def test_losses_are_lines() -> None:
    lines = text_of(ticks((10, 1, 1), losses=(Loss(START_NS + 20, 4711, 1, 3),)))
    assert lines[1:] == ["[08:21:39.000000020] 3 events of thread 1 of 4711 were lost"]


@settings(max_examples=30, deadline=None)
@given(batches())
def test_json_is_as_its_schema_says(made: list[list[tuple[EventType, list[tuple[Any, ...]]]]]) -> None:
    schema = json.loads(files("clew.export.probes").joinpath("events.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    found = json_of(*(EventBatch([(one, to_table(one, rows)) for one, rows in batch]) for batch in made))
    expected = sorted((START_NS + row[0], row[1], row[3]) for batch in made for _, rows in batch for row in rows)
    assert sorted((one["time_ns"], one["sequence"], one["tid"]) for one in found) == expected
    types = {row[1]: one for batch in made for one, rows in batch for row in rows}
    for one in found:
        validator.validate(one)
        assert one["event"] == types[one["sequence"]].name
        assert len(one["fields"]) == len(types[one["sequence"]].fields)


def test_json_tells_values_exactly() -> None:
    fields = tuple(Field(f"f{n}", kind) for n, kind in enumerate([*CaptureType, *Shape]))
    one = EventType("one", (*fields[:-2], Field("regs", Shape.REGISTERS, ("rax",)), fields[-1]))
    numbers = [-1, 255, -1, 65535, -1, (1 << 32) - 1, -(1 << 63), (1 << 64) - 1, 0.1, float("nan"), b"\xff\xc3\xa9"]
    values = [0.5 if value == 0.1 else value for value in numbers]
    row = (1, 0, 4711, 4711, b"\xff", 0, *values, 255, b"\0\xff", {"rax": 16}, [1, (1 << 64) - 1])
    [found] = json_of(EventBatch([(one, to_table(one, [row]))]))
    assert found["comm"].encode(errors="surrogateescape") == b"\xff"
    told = [*found["fields"].values()]
    assert told[:9] == values[:9]
    assert told[9] == "nan"
    assert told[10].encode(errors="surrogateescape") == b"\xff\xc3\xa9"
    assert told[11:] == ["0xff", "00ff", {"rax": "0x10"}, ["0x1", "0xffffffffffffffff"]]
