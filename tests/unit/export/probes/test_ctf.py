"""Traces of CTF are read by babeltrace2: what it tells has to be what was written."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from clew.export.probes.ctf import CtfTrace, process_folder, user_folder
from clew.export.probes.ctf_layout import MISSING_TEXT, NONE_MISSING, CtfStruct, Form, lay_out
from clew.export.probes.ctf_streams import NO_CPU
from clew.export.probes.event_types import EventBatch, EventType, Field, Loss, Shape
from clew.export.probes.identity import EventImage, ProcessIdentity
from clew.export.probes.tsdl import OWN_CONTEXTS
from clew.protocol._constants import CaptureType
from tests.unit.export.probes.babeltrace import print_ctf, read_ctf
from tests.unit.export.probes.made_events import HOST, PROCESS, START_NS, batches, to_table

TICK = EventType("tick", (Field("n", CaptureType.I32, is_present=True),))
Rows = list[tuple[Any, ...]]


def begin(root: Path, packet_bytes: int = 256 << 10) -> CtfTrace:
    return CtfTrace(process_folder(root, PROCESS), PROCESS, HOST, "session", START_NS, packet_bytes)


def ticks(*rows: tuple[int, int, int, int | None]) -> EventBatch:
    """Time, tid, value and sequence, cpu."""
    listed = [(time, n, 4711, tid, b"prog", cpu, n) for time, tid, n, cpu in rows]
    return EventBatch([(TICK, to_table(TICK, listed))])


def told(struct: CtfStruct, fields: tuple[Field, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    """What a reader has to tell of values."""
    found: dict[str, Any] = {}
    missing = []
    for member, field, value in zip(struct.members, fields, values, strict=True):
        name = member.name[1:]
        if value is None:
            missing.append(name)
        if member.form is Form.SEQUENCE:
            own = [*(value or [])]
            found |= {member.length_name[1:]: len(own), name: own}
        elif member.form is Form.STRUCT:
            values_of = [(value or {}).get(one, 0) for one in field.members]
            found[name] = {one[1:]: own for one, own in zip(member.names, values_of, strict=True)}
        elif member.form is Form.STRING:
            found[name] = MISSING_TEXT if value is None else value.decode()
        elif field.type in (CaptureType.F32, CaptureType.F64):
            found[name] = float(0 if value is None else value).hex()
        else:
            found[name] = value or 0
    return found | ({struct.missing[1:]: ",".join(missing) or NONE_MISSING} if struct.missing else {})


@settings(max_examples=30, deadline=None)
@given(batches())
def test_any_values_are_read_as_they_were_written(made: list[list[tuple[EventType, Rows]]]) -> None:
    expected: list[list[Any]] = []
    names: dict[EventType, str] = {}
    with tempfile.TemporaryDirectory() as root:
        trace = begin(Path(root), packet_bytes=200)
        for batch in made:
            trace.write(EventBatch([(one, to_table(one, rows)) for one, rows in batch]))
            trace.flush()
            for one, rows in batch:
                contexts, fields = lay_out(one.contexts, OWN_CONTEXTS), lay_out(one.fields)
                for time, _, pid, tid, comm, cpu, *values in rows:
                    middle = len(one.contexts)
                    own = {"vpid": pid, "vtid": tid, "procname": comm.decode()}
                    own |= told(contexts, one.contexts, tuple(values[:middle]))
                    payload = told(fields, one.fields, tuple(values[middle:]))
                    where = NO_CPU if cpu is None else cpu
                    expected.append([START_NS + time, one, where, own, payload])
        trace.close()
        events, losses = read_ctf(Path(root))
        assert losses == []
        # Names may have been changed: each type has one of its own.
        assert [one[0] for one in events] == sorted(one[0] for one in expected)
        for told_time, name, *rest in events:
            alike = [want for want in expected if [want[0], *want[2:]] == [told_time, *rest]]
            assert alike, (told_time, name, rest, expected)
            expected.remove(alike[0])
            # Of two that look alike nobody can tell which is which.
            if len(alike) == 1:
                assert names.setdefault(alike[0][1], name) == name
        assert expected == []
        assert len({*names.values()}) == len(names)


def test_bytes_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    one = EventType("one", (Field("s", CaptureType.TEXT, is_present=True),))
    text = b'a"\\\n\xff\xc3\xa9 behind \xf0'
    trace = begin(tmp_path)
    trace.write(EventBatch([(one, to_table(one, [(1, 0, 4711, 4711, b"\xfe\0x", 0, text)]))]))
    trace.close()
    [line] = print_ctf(tmp_path)
    assert line.endswith(b'procname = "\xfe" }, { s = "a\\"\\\\\\n\xff\xc3\xa9 behind \xf0" }')


def test_a_text_ends_at_its_first_zero(tmp_path: Path) -> None:
    one = EventType("one", (Field("s", CaptureType.TEXT, is_present=True), Field("b", Shape.BYTES, is_present=True)))
    texts = [b"", b"\0", b"ab\0cd", b"\0\0", b"efg", b"h\0"]
    trace = begin(tmp_path)
    rows = [(n, n, 4711, 4711, b"prog", 0, text, text) for n, text in enumerate(texts)]
    trace.write(EventBatch([(one, to_table(one, rows).slice(1))]))
    trace.close()
    events, _ = read_ctf(tmp_path)
    assert [event[4]["s"] for event in events] == ["", "ab", "", "efg", "h"]
    assert [bytes(event[4]["b"]) for event in events] == texts[1:]


def test_streams_are_in_order_whatever_times_say(tmp_path: Path) -> None:
    trace = begin(tmp_path)
    trace.write(ticks((50, 1, 0, 0), (40, 1, 1, 0), (60, 1, 2, 0)))
    trace.write(ticks((55, 1, 3, 0), (10, 2, 4, 0)))
    trace.close()
    events, _ = read_ctf(tmp_path)
    assert [(time - START_NS, event["n"]) for time, _, _, _, event in events] == [
        (10, 4), (50, 0), (50, 1), (60, 2), (60, 3)
    ]  # fmt: skip


def test_what_was_lost_is_told_behind_what_came_before(tmp_path: Path) -> None:
    trace = begin(tmp_path)
    trace.write(EventBatch([], [Loss(START_NS + 5, 4711, 7, 3)]))
    trace.write(EventBatch(ticks((10, 7, 0, 1), (20, 7, 1, 1)).tables, [Loss(START_NS + 30, 4711, 7, 4)]))
    trace.write(ticks((40, 7, 2, 1)))
    trace.write(EventBatch([], [Loss(START_NS + 50, 4711, 7, 5)]))
    trace.close()
    events, losses = read_ctf(tmp_path)
    assert [event[4]["n"] for event in events] == [0, 1, 2]
    places = [(count, start - START_NS, end - START_NS) for _, count, start, end in losses]
    # Between the ends of packets: of that in front, and of that which tells.
    # Nobody knows where the thread was that lost the first of them.
    assert places == [(3, 5, 5), (4, 20, 40), (5, 40, 50)]


def test_what_was_lost_is_told_between_events_of_others(tmp_path: Path) -> None:
    trace = begin(tmp_path)
    rows = ticks((10, 7, 0, 1), (5, 8, 1, 1), (20, 8, 2, 1), (30, 8, 3, 1), (1, 8, 4, 2))
    trace.write(EventBatch(rows.tables, [Loss(START_NS + 15, 4711, 7, 3), Loss(START_NS + 16, 4711, 7, 1)]))
    trace.close()
    events, losses = read_ctf(tmp_path)
    assert [event[0] - START_NS for event in events] == [5, 10, 20, 30, 30]
    assert [(count, start - START_NS, end - START_NS) for _, count, start, end in losses] == [(4, 10, 30)]


def test_a_trace_grows_while_it_is_read(tmp_path: Path) -> None:
    trace = begin(tmp_path)
    assert read_ctf(tmp_path) == ([], [])
    for n in range(3):
        trace.add_type(EventType(f"later {n}", contexts=(Field("c", CaptureType.U8),) * n))
        trace.write(ticks((10 * n, 1, n, n % 2)))
        assert len(read_ctf(tmp_path)[0]) == n
        trace.flush()
        assert len(read_ctf(tmp_path)[0]) == n + 1
    trace.close()
    assert len(read_ctf(tmp_path)[0]) == 3


def test_packets_are_no_larger_than_asked(tmp_path: Path) -> None:
    trace = begin(tmp_path, packet_bytes=1000)
    cpus = [*([0] * 100), *([1] * 3), *([0] * 50)]
    trace.write(ticks(*((n, 1, n, cpu) for n, cpu in enumerate(cpus))))
    trace.close()
    sizes: dict[str, list[int]] = {}
    for stream in tmp_path.rglob("channel0_*"):
        data, at = stream.read_bytes(), 0
        while at < len(data):
            assert data[at : at + 4] == bytes.fromhex("c11ffcc1")
            size = int.from_bytes(data[at + 56 : at + 64], "little") // 8
            sizes.setdefault(stream.name, []).append(size)
            at += size
    # 35 bytes an event, 84 in front.
    assert sizes == {"channel0_0": [*([84 + 28 * 35] * 5), 84 + 10 * 35], "channel0_1": [84 + 3 * 35]}
    assert [event[2] for event in read_ctf(tmp_path)[0]] == cpus


def test_what_comes_late_has_a_stream_of_its_own(tmp_path: Path) -> None:
    trace = begin(tmp_path)
    for n in range(20):
        trace.write(ticks((10 * n, 100 + n, n, 0), (10 * n + 5, 200, n, 1)))
        trace.end_thread(4711, 100 + n)
    streams = [*tmp_path.rglob("channel0_*")]
    assert streams == []
    trace.flush()
    assert len([*tmp_path.rglob("channel0_*")]) == 2
    # Threads that waited: both come long behind, one behind the other.
    trace.write(ticks((12, 300, 20, 0), (1000, 300, 21, 0)))
    trace.write(ticks((14, 301, 22, 0)))
    trace.write(ticks((13, 302, 23, 0)))
    trace.close()
    assert len([*tmp_path.rglob("channel0_*")]) == 4
    events, _ = read_ctf(tmp_path)
    times = [event[0] - START_NS for event in events]
    assert times == sorted([*range(0, 200, 10), *range(5, 200, 10), 12, 13, 14, 1000])


def test_images_name_addresses(tmp_path: Path) -> None:
    one = EventType("one", contexts=(Field("ip", Shape.POINTER, is_present=True),))
    program = Path(sys.executable).resolve()
    trace = begin(tmp_path)
    images = [
        EventImage(0x5000, 0x1000, b"/nowhere/prog", "ab" * 20),
        EventImage(0x10000, 0x4000, bytes(program)),
    ]
    trace.write_images(PROCESS, START_NS, images)
    trace.write(EventBatch([(one, to_table(one, [(1, 0, 4711, 4711, b"prog", 0, 0x10010)]))]))
    # It is unloaded.
    trace.write_images(PROCESS, START_NS + 2, images[:1])
    trace.write(EventBatch([(one, to_table(one, [(3, 1, 4711, 4711, b"prog", 0, 0x10010)]))]))
    trace.close()
    events, _ = read_ctf(tmp_path)
    dump = ["start", "bin_info", "build_id", "bin_info", "end"]
    assert [event[1].partition(":")[2] for event in events[:5]] == dump
    assert [event[4]["path"] for event in events[:5] if "path" in event[4]] == ["/nowhere/prog", str(program)]
    assert events[2][4]["build_id"] == [0xAB] * 20
    printed = [line.decode() for line in print_ctf(tmp_path, options=["--debug-info"]) if b" one: " in line]
    assert [f'bin = "{program.name}+0x10"' in line for line in printed] == [True, False]


def test_hostile_names_break_nothing(tmp_path: Path) -> None:
    names = ['"};', "\\", "a\nb", "", "event", "*/", "/*", "é", "x" * 600, "x" * 601, "_n", "n", "n_length"]
    process = ProcessIdentity(4711, b'../"\\\n\xff', START_NS)
    folder = process_folder(tmp_path, process)
    assert folder.parent == tmp_path / "ust" / "pid"
    trace = CtfTrace(folder, process, HOST, '"\n', START_NS)
    fields = tuple(Field(name, Shape.BYTES, is_present=True) for name in names)
    for n, name in enumerate(names):
        one = EventType(name, fields)
        trace.write(EventBatch([(one, to_table(one, [(n, n, 4711, 1, b"prog", 0, *([b"ab"] * len(names)))]))]))
    trace.close()
    events, _ = read_ctf(tmp_path)
    assert len({event[1] for event in events}) == len(events) == len(names)
    assert all([*event[4].values()].count([97, 98]) == len(names) for event in events)


def test_a_user_has_a_folder(tmp_path: Path) -> None:
    trace = CtfTrace(user_folder(tmp_path, 0), 0, HOST, "session", START_NS)
    trace.write(ticks((1, 1, 0, 0)))
    trace.close()
    assert [path.relative_to(tmp_path).parts[:4] for path in tmp_path.rglob("metadata")] == [
        ("ust", "uid", "0", "64-bit")
    ]
    assert len(read_ctf(tmp_path)[0]) == 1


def test_more_types_than_a_channel_has_numbers_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.export.probes.ctf.MAX_TYPES", 2)
    trace = begin(tmp_path)
    for n in range(5):
        one = EventType(f"e{n}")
        trace.write(EventBatch([(one, to_table(one, [(n, n, 4711, 1, b"prog", 0)]))]))
    trace.close()
    assert [event[1] for event in read_ctf(tmp_path)[0]] == [f"e{n}" for n in range(5)]
    assert {path.name.split("_")[0] for path in tmp_path.rglob("channel*")} == {f"channel{n}" for n in range(3)}


def test_tables_of_another_type_are_refused(tmp_path: Path) -> None:
    trace = begin(tmp_path)
    other = EventType("other", (Field("n", CaptureType.U32, is_present=True),))
    with pytest.raises(ValueError, match="tick: columns of"):
        trace.write(EventBatch([(TICK, to_table(other, [(1, 0, 4711, 1, b"prog", 0, 1)]))]))
    with pytest.raises(ValueError, match="a value of n is missing"):
        trace.write(EventBatch([(TICK, to_table(TICK, [(1, 0, 4711, 1, b"prog", 0, None)]))]))


def test_a_full_disk_leaves_whole_packets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = begin(tmp_path)
    trace.write(ticks((1, 1, 0, 0)))
    trace.flush()
    real, calls = os.write, itertools.count()

    def write(file: int, data: memoryview) -> int:
        if next(calls):
            raise OSError(28, "No space left on device")
        return real(file, data[: len(data) // 2])

    trace.write(ticks((2, 1, 1, 0)))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(OSError, match="No space"):
            trace.flush()
    assert [event[4]["n"] for event in read_ctf(tmp_path)[0]] == [0]
    trace.close()
    assert [event[4]["n"] for event in read_ctf(tmp_path)[0]] == [0, 1]
