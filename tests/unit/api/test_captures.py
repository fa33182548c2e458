"""What is captured of calls: all of it compiles and has room, and what it comes to is the call that was made."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.api.captures import CallCapture, capture_of
from clew.api.pieces import Pointed
from clew.api.reading import load_built_in
from clew.api.text import call_text
from clew.capture.compiler import compile_capture
from clew.capture.form import Form
from clew.capture.interpreter import interpret
from clew.dataclass import replace
from clew.protocol._constants import MAX_CAPTURE_FIELDS, MAX_CAPTURE_TEXTS, MAX_CAPTURE_VALUES, MAX_KEPT_VALUES
from tests.unit.capture.places import MACHINE, MEMORY_START, MadeUpPlace

DESCRIPTIONS = load_built_in()
CALLS = {call.name: call for call in DESCRIPTIONS.system_calls.values()}
REGISTERS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
BAD = 0xFFFF0000


def compiled(name: str) -> tuple[CallCapture, Form]:
    capture = capture_of(CALLS[name], DESCRIPTIONS)
    machine = replace(MACHINE, entry=MACHINE) if capture.returns else MACHINE
    return capture, compile_capture(capture.expressions, machine)


def made(name: str, arguments: list[int], result: int, before: bytes, after: bytes | None = None) -> str:
    """The text of a call whose program had `before` in memory when it began, and `after` when it returned."""
    capture, form = compiled(name)
    registers = dict(zip(REGISTERS, [*arguments, *[0] * (6 - len(arguments))], strict=True))
    begun = MadeUpPlace(before, **registers)
    returned = MadeUpPlace(before if after is None else after, **registers | {"rax": result})
    if form.entry is not None:
        kept = interpret(form.entry, begun)
        assert kept is not None
        returned.of_entry = kept
    fields = interpret(form, returned if capture.returns else begun)
    assert fields is not None
    values, told, _, _ = capture.values_of(fields)
    return call_text(capture.function, values, told, DESCRIPTIONS)


@pytest.mark.parametrize("name", CALLS)
def test_all_captures_have_room(name: str) -> None:
    capture, form = compiled(name)
    assert len(capture.expressions) <= MAX_CAPTURE_FIELDS
    for one in (form, form.entry):
        if one is not None:
            assert one.room.n_operations <= MAX_CAPTURE_VALUES
            assert one.room.n_text_bytes <= MAX_CAPTURE_TEXTS
    assert form.entry is None or len(form.entry.fields) <= MAX_KEPT_VALUES


@pytest.mark.parametrize(("library", "name"), DESCRIPTIONS.functions)
def test_captures_of_functions_have_room(library: str, name: str) -> None:
    function = DESCRIPTIONS.find_function(library, name)
    assert function is not None
    capture = capture_of(function, DESCRIPTIONS)
    form = compile_capture(capture.expressions, replace(MACHINE, entry=MACHINE) if capture.returns else MACHINE)
    assert len(capture.expressions) <= MAX_CAPTURE_FIELDS
    for one in (form, form.entry):
        assert one is None or one.room.n_operations <= MAX_CAPTURE_VALUES
        assert one is None or one.room.n_text_bytes <= MAX_CAPTURE_TEXTS
    assert form.entry is None or len(form.entry.fields) <= MAX_KEPT_VALUES


def at(offset: int) -> int:
    return MEMORY_START + offset


IOVECS = struct.pack("<QQQQ", at(64), 3, at(80), 5) + bytes(32) + b"abc" + bytes(13) + b"defgh" + bytes(11)
EMPTY = struct.pack("<QQQQ", at(64), 3, at(80), 5) + bytes(64)


def test_what_is_written_is_taken_when_the_call_begins() -> None:
    told = 'writev(1, [{iov_base="abc", iov_len=3}, {iov_base="defgh", iov_len=5}], 2) = 8'
    assert made("writev", [1, at(0), 2], 8, IOVECS, bytes(96)) == told


def test_what_is_read_is_taken_when_the_call_has_returned() -> None:
    told = 'readv(1, [{iov_base="abc", iov_len=3}, {iov_base="def", iov_len=5}], 2) = 6'
    assert made("readv", [1, at(0), 2], 6, EMPTY, IOVECS) == told
    failed = made("readv", [1, at(0), 2], 2**64 - 9, EMPTY)
    assert (
        failed
        == "readv(1, [{iov_base=0x1040, iov_len=3}, {iov_base=0x1050, iov_len=5}], 2) = -1 EBADF (Bad file descriptor)"
    )


def test_what_cannot_be_read_is_an_address() -> None:
    assert made("writev", [1, BAD, 2], 2**64 - 14, IOVECS) == "writev(1, 0xffff0000, 2) = -1 EFAULT (Bad address)"
    half = struct.pack("<QQQQ", at(64), 3, BAD, 5) + IOVECS[32:]
    assert '[{iov_base="abc", iov_len=3}, {iov_base=0xffff0000, iov_len=5}]' in made("writev", [1, at(0), 2], 3, half)
    assert made("fstat", [1, BAD], 0, b"") == "fstat(1, 0xffff0000) = 0"


def test_what_lies_behind_an_array_is_not_taken() -> None:
    assert made("writev", [1, at(0), 0], 0, IOVECS) == "writev(1, [], 0) = 0"
    assert made("writev", [1, at(0), 1], 3, IOVECS) == 'writev(1, [{iov_base="abc", iov_len=3}], 1) = 3'


def test_bits_of_a_number_are_told() -> None:
    attributes = struct.pack("<IIQQQQQ", 0, 64, 0, 0, 0, 0, 2 << 15 | 0x7FFF) + bytes(88)
    told = made("perf_event_open", [at(0), 0, 0, 0, 0], 3, attributes)
    assert "precise_ip=2, ..." in told
    assert "precise_ip=3" in made(
        "perf_event_open", [at(0), 0, 0, 0, 0], 3, attributes[:41] + b"\x80" + attributes[42:]
    )


def test_large_arrays_are_cut() -> None:
    parts = struct.pack("<QQ", at(0), 1) * 100
    told = made("writev", [1, at(0), 100], 100, parts)
    assert told.count("iov_len=1") == 32
    assert told.endswith(", ...], 100) = 100")


def test_what_is_ended_by_a_zero_is_taken_up_to_it() -> None:
    memory = struct.pack("<QQQ", at(24), at(27), 0) + b"ls\0-l\0/x\0"
    expected = 'execve("/x", ["ls", "-l"], NULL) = -1 ENOENT (No such file or directory)'
    assert made("execve", [at(30), at(0), 0], 2**64 - 2, memory) == expected
    long = struct.pack("<31Q", *[at(248)] * 30, 0) + b"a\0"
    told = made("execve", [at(248), at(0), 0], 2**64 - 2, long)
    twenty = ", ".join(['"a"'] * 20)
    assert f'execve("a", [{twenty}, 0x10f8, ...], NULL)' in told


@pytest.mark.parametrize(
    ("name", "arguments", "result", "before", "after", "told"),
    [
        ("pipe2", [at(0), 0], 0, bytes(8), struct.pack("<ii", 3, 4), "pipe2([3, 4], 0) = 0"),
        (
            "poll",
            [at(0), 1, 5],
            1,
            struct.pack("<ihh", 3, 1, 0),
            struct.pack("<ihh", 3, 1, 1),
            "poll([{fd=3, events=POLLIN}], 1, 5) = 1 ([{fd=3, revents=POLLIN}])",
        ),
        (
            "poll",
            [at(0), 1, 5],
            0,
            struct.pack("<ihh", 3, 1, 0),
            None,
            "poll([{fd=3, events=POLLIN}], 1, 5) = 0 (Timeout)",
        ),
        (
            "accept",
            [3, at(8), at(0)],
            4,
            struct.pack("<Q", 110) + bytes(8),
            struct.pack("<Q", 2) + struct.pack("<H", 1) + bytes(6),
            "accept(3, {sa_family=AF_UNIX}, [110 => 2]) = 4",
        ),
        (
            "ioctl",
            [3, 0x5413, at(0)],
            0,
            bytes(8),
            struct.pack("<4H", 5, 6, 0, 0),
            "ioctl(3, TIOCGWINSZ, {ws_row=5, ws_col=6, ws_xpixel=0, ws_ypixel=0}) = 0",
        ),
        ("ioctl", [3, 0x80045430, at(0)], 0, bytes(4), struct.pack("<I", 7), "ioctl(3, TIOCGPTN, [7]) = 0"),
        ("ioctl", [3, 0x5421, at(0)], 0, struct.pack("<i", 1), bytes(4), "ioctl(3, FIONBIO, [1]) = 0"),
        ("ioctl", [3, 0x12345678, 5], 0, b"", None, "ioctl(3, _IOC(_IOC_NONE, 0x56, 0x78, 0x1234), 0x5) = 0"),
        (
            "fcntl",
            [3, 6, at(0)],
            0,
            struct.pack("<hhiqqq", 0, 0, 0, 1, 2, 0),
            None,
            "fcntl(3, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=1, l_len=2}) = 0",
        ),
        ("fcntl", [3, 4, 0x800], 0, b"", None, "fcntl(3, F_SETFL, O_RDONLY|O_NONBLOCK) = 0"),
        ("prctl", [15, at(0)], 0, b"abc\0", None, 'prctl(PR_SET_NAME, "abc") = 0'),
        ("prctl", [16, at(0)], 0, bytes(4), b"abc\0", 'prctl(PR_GET_NAME, "abc") = 0'),
        ("prctl", [23, 3], 1, b"", None, "prctl(PR_CAPBSET_READ, CAP_FOWNER) = 1"),
        (
            "setsockopt",
            [3, 1, 13, at(0), 8],
            0,
            struct.pack("<ii", 1, 5),
            None,
            "setsockopt(3, SOL_SOCKET, SO_LINGER, {l_onoff=1, l_linger=5}, 8) = 0",
        ),
        (
            "setsockopt",
            [3, 6, 1, at(0), 4],
            0,
            struct.pack("<i", 1),
            None,
            "setsockopt(3, SOL_TCP, TCP_NODELAY, [1], 4) = 0",
        ),
        (
            "getsockopt",
            [3, 1, 3, at(4), at(0)],
            0,
            struct.pack("<ii", 4, 0),
            struct.pack("<ii", 4, 1),
            "getsockopt(3, SOL_SOCKET, SO_TYPE, [1], [4]) = 0",
        ),
        ("epoll_ctl", [4, 2, 3, at(0)], 0, bytes(12), None, "epoll_ctl(4, EPOLL_CTL_DEL, 3, 0x1000) = 0"),
        ("nanosleep", [at(0), at(0)], 0, bytes(16), None, "nanosleep({tv_sec=0, tv_nsec=0}, 0x1000) = 0"),
        (
            "nanosleep",
            [at(0), at(0)],
            2**64 - 4,
            bytes(16),
            struct.pack("<qq", 1, 2),
            "nanosleep({tv_sec=0, tv_nsec=0}, {tv_sec=1, tv_nsec=2}) = -1 EINTR (Interrupted system call)",
        ),
        ("wait4", [5, at(0), 1, 0], 0, bytes(4), None, "wait4(5, 0x1000, WNOHANG, NULL) = 0"),
        ("sched_setaffinity", [0, 8, at(0)], 0, struct.pack("<Q", 5), None, "sched_setaffinity(0, 8, [0 2]) = 0"),
        (
            "rt_sigprocmask",
            [0, at(0), 0, 8],
            0,
            struct.pack("<Q", 0x4002),
            None,
            "rt_sigprocmask(SIG_BLOCK, [INT TERM], NULL, 8) = 0",
        ),
    ],
)
def test_calls_are_told_as_they_were_made(
    name: str, arguments: list[int], result: int, before: bytes, after: bytes | None, told: str
) -> None:
    assert made(name, arguments, result, before, after) == told


@given(
    st.sampled_from(sorted(CALLS)),
    st.lists(st.integers(0, 2**64 - 1), min_size=7, max_size=7),
    st.binary(max_size=200),
    st.data(),
)
def test_no_arguments_are_too_strange(name: str, numbers: list[int], memory: bytes, data: st.DataObject) -> None:
    near = st.integers(MEMORY_START - 8, MEMORY_START + 256)
    numbers = [
        data.draw(st.sampled_from([number, number & 7])) if data.draw(st.booleans()) else data.draw(near)
        for number in numbers
    ]
    told = made(name, numbers[:6], numbers[6], memory)
    assert told.startswith(f"{name}(")
    assert len(told) < 100_000


def test_how_much_is_taken_is_bounded() -> None:
    """Whatever a program says of its memory: nothing of it is larger than what a field has room for."""
    capture, form = compiled("sendmsg")
    everything = MadeUpPlace(b"\xff" * (1 << 16), rdi=3, rsi=at(0))
    assert form.entry is not None
    kept = interpret(form.entry, everything)
    everything.of_entry = kept or ()
    fields = interpret(form, everything)
    assert fields is not None
    assert all(len(field) <= 4096 for field in fields if isinstance(field, bytes))
    values, *_ = capture.values_of(fields)
    assert isinstance(values[1], Pointed)


def test_sets_in_which_nothing_is_left_are_not_told() -> None:
    one, none = struct.pack("<Q", 1 << 3), bytes(8)
    told = made("select", [4, at(0), at(8), 0, 0], 1, one + one, none + one)
    assert told == "select(4, [3], [3], NULL, NULL) = 1 (out [3])"
    assert made("select", [4, at(0), 0, 0, 0], 0, one, none) == "select(4, [3], NULL, NULL, NULL) = 0 (Timeout)"
