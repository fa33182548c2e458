"""Structures: what is taken apart, how it is written, what is in it; whatever bytes a program has there."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.api.decoding import decode
from clew.api.description import Description, Member, Parameter, Struct
from clew.api.descriptions import Descriptions
from clew.api.members import Found, members_of
from clew.api.pieces import Path, Pointed
from clew.api.reading import load_built_in, parse_description
from clew.api.text import argument_text

BUILT_IN = load_built_in()


def leading_to(name: str, **keys: Any) -> Parameter:
    """An argument that leads to a structure of clew's own."""
    return Parameter(0, "it", f"struct {name} *", "struct", struct=name, **keys)


def text(name: str, data: bytes, inner: dict[Path, bytes] | None = None, **keys: Any) -> str:
    return argument_text(leading_to(name, **keys), Pointed(0x1000, data, inner=inner or {}), BUILT_IN)


def numbers(name: str, data: bytes, inner: dict[Path, bytes] | None = None, **keys: Any) -> list[tuple[str, Any]]:
    value = Pointed(0x1000, data, inner=inner or {})
    return [(found.path, found.value) for found in members_of(leading_to(name, **keys), value, BUILT_IN)]


IOVECS = struct.pack("<QQQQ", 0x5000, 3, 0x6000, 9)
RIGHTS = struct.pack("<Qii", 24, 1, 1) + struct.pack("<ii", 3, 4)
MESSAGE = struct.pack("<QIIQQQQi4x", 0, 0, 0, 0x7000, 2, 0x8000, 24, 0)
MESSAGE_PARTS: dict[Path, bytes] = {
    ("msg_iov",): IOVECS,
    ("msg_iov", 0, "iov_base"): b"abc",
    ("msg_control",): RIGHTS,
}


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("timeval", struct.pack("<qq", 5, 6), "{tv_sec=5, tv_usec=6}"),
        ("timeval", struct.pack("<q", 5), "{tv_sec=5, ...}"),
        ("timeval", b"", "0x1000"),
        (
            "itimerval",
            struct.pack("<4q", 1, 2, 3, 4),
            "{it_interval={tv_sec=1, tv_usec=2}, it_value={tv_sec=3, tv_usec=4}}",
        ),
        ("fd", struct.pack("<i", 3), "[3]"),
        ("rlimit64", struct.pack("<QQ", 8 << 20, 2**64 - 1), "{rlim_cur=8192*1024, rlim_max=RLIM64_INFINITY}"),
        ("wait_status", struct.pack("<i", 0x300), "[{WIFEXITED(s) && WEXITSTATUS(s) == 3}]"),
        ("wait_status", struct.pack("<i", 0x8B), "[{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}]"),
        ("wait_status", struct.pack("<i", 0x137F), "[{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}]"),
        ("wait_status", struct.pack("<i", 0xFFFF), "[{WIFCONTINUED(s)}]"),
        (
            "siginfo",
            struct.pack("<iiiiIIq", 11, 0, 1, 0, 0x40, 0, 0) + bytes(96),
            "{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x40}",
        ),
        (
            "siginfo",
            struct.pack("<iiiiiIiiqq", 17, 0, 1, 0, 9, 0, 3, 0, 0, 0) + bytes(80),
            "{si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=9, si_uid=0, si_status=3, si_utime=0, si_stime=0}",
        ),
        (
            "siginfo",
            struct.pack("<iiiiii", 34, 5, -2, 0, 1, 2) + struct.pack("<q", 7) + bytes(96),
            "{si_signo=SIGRT_2, si_code=SI_TIMER, si_errno=5, si_timerid=0x1, si_overrun=2, si_int=7, si_ptr=0x7}",
        ),
        ("open_how", struct.pack("<QQQ", 0o100, 0o644, 0), "{flags=O_RDONLY|O_CREAT, mode=0644, resolve=0}"),
        ("open_how", struct.pack("<QQQ", 0, 0o644, 4), "{flags=O_RDONLY, resolve=RESOLVE_NO_SYMLINKS}"),
        (
            "stat",
            struct.pack("<QQQIIIIQq", 1, 2, 3, 0o20666, 0, 0, 0, 0x103, 0) + bytes(88),
            "{st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}",
        ),
    ],
)
def test_structures_are_written_as_by_strace(name: str, data: bytes, told: str) -> None:
    assert text(name, data) == told


def test_arrays_are_as_long_as_what_was_read() -> None:
    assert text("fd", struct.pack("<ii", 3, 4), elements=2) == "[3, 4]"
    assert text("fd", b"", elements=2) == "[]"
    one = Pointed(0x1000, struct.pack("<i", 3), is_cut=True)
    assert argument_text(leading_to("fd", count=1), one, BUILT_IN) == "[3, ...]"
    many = struct.pack("<40i", *range(40))
    assert argument_text(leading_to("fd", count=1), Pointed(1, many), BUILT_IN).endswith("31, ...]")
    assert argument_text(leading_to("fd", count=1), Pointed(1, many), BUILT_IN, limit=None).endswith("39]")


def test_what_structures_lead_to_is_told_where_it_was_read() -> None:
    assert text("msghdr", MESSAGE, MESSAGE_PARTS) == (
        '{msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base="abc", iov_len=3}, {iov_base=0x6000, iov_len=9}],'
        " msg_iovlen=2, msg_control=[{cmsg_len=24, cmsg_level=SOL_SOCKET, cmsg_type=SCM_RIGHTS, cmsg_data=[3, 4]}],"
        " msg_controllen=24, msg_flags=0}"
    )
    assert "msg_iov=0x7000" in text("msghdr", MESSAGE)
    cut = MESSAGE_PARTS | {("msg_iov",): IOVECS[:16]}
    assert 'msg_iov=[{iov_base="abc", iov_len=3}, ...]' in text("msghdr", MESSAGE, cut)


def test_only_so_many_bytes_are_told_as_were_moved() -> None:
    parameter = leading_to("iovec", count=1, direction="inout", total_index=-1)
    inner: dict[Path, bytes] = {(0, "iov_base"): b"abc", (1, "iov_base"): b"defghijkl"}
    value = Pointed(0x1000, IOVECS, inner=inner, total=5)
    assert argument_text(parameter, value, BUILT_IN) == '[{iov_base="abc", iov_len=3}, {iov_base="de", iov_len=9}]'


def test_a_change_is_told_with_what_was_there_before() -> None:
    parameter = leading_to("int", direction="inout")
    before, after = struct.pack("<i", 200), struct.pack("<i", 16)
    assert argument_text(parameter, Pointed(1, after, before=before), BUILT_IN) == "[200 => 16]"
    assert argument_text(parameter, Pointed(1, before, before=before), BUILT_IN) == "[200]"
    # It failed.
    assert argument_text(parameter, Pointed(1, None, before=before), BUILT_IN) == "[200]"
    assert argument_text(leading_to("int", direction="out"), Pointed(1, None, before=before), BUILT_IN) == "0x1"


def test_details_are_told_to_who_wants_them() -> None:
    data = struct.pack("<8q", *range(8)) + bytes(80)
    assert argument_text(leading_to("rusage"), Pointed(1, data), BUILT_IN).endswith("}, ...}")
    all_of_it = argument_text(leading_to("rusage"), Pointed(1, data), BUILT_IN, has_details=True)
    assert "ru_maxrss=4" in all_of_it and "..." not in all_of_it


def test_members_are_found_with_their_way() -> None:
    assert numbers("fd", struct.pack("<ii", 3, 4), elements=2) == [("[0]", 3), ("[1]", 4)]
    found = dict(numbers("msghdr", MESSAGE, MESSAGE_PARTS))
    assert found["msg_control[0].cmsg_data[1]"] == 4
    assert found["msg_iov[0].iov_base"] == b"abc"
    assert "msg_iov[1].iov_base" not in found
    assert numbers("pollfd", struct.pack("<ihhihh", 3, 1, 0, -1, 0, 0), count=1)[-1] == ("[1].revents", 0)
    assert dict(numbers("pollfd", struct.pack("<ihh", -1, 1, 0), count=1))["[0].fd"] == -1


def test_members_of_a_message_are_descriptors() -> None:
    value = Pointed(0x1000, MESSAGE, inner=MESSAGE_PARTS)
    found = [one for one in members_of(leading_to("msghdr"), value, BUILT_IN) if one.one.raw_type == "fd"]
    assert [(one.path, one.value) for one in found] == [
        ("msg_control[0].cmsg_data[0]", 3),
        ("msg_control[0].cmsg_data[1]", 4),
    ]


@pytest.mark.parametrize("value", [None, 5, Pointed(5), Pointed(0)])
def test_nothing_is_found_where_nothing_was_read(value: Any) -> None:
    assert list(members_of(leading_to("stat"), value, BUILT_IN)) == []
    assert list(members_of(Parameter(0, "it", "int", "int"), value, BUILT_IN)) == []


def test_of_what_failed_that_is_found_which_was_there() -> None:
    parameter = leading_to("fd", direction="inout")
    value = Pointed(1, None, before=struct.pack("<i", 7))
    assert list(members_of(parameter, value, BUILT_IN)) == [Found("", BUILT_IN.structs["fd"].members[0], 7)]


def test_control_messages_end_where_they_say_nothing_sensible() -> None:
    for length in (0, 15, 25, 2**63):
        damaged = struct.pack("<Q", length) + RIGHTS[8:]
        assert "msg_control=[]" in text("msghdr", MESSAGE, MESSAGE_PARTS | {("msg_control",): damaged})


@given(st.sampled_from(sorted(BUILT_IN.structs)), st.binary(max_size=300), st.booleans(), st.data())
def test_no_bytes_are_too_strange_to_be_told(name: str, data: bytes, is_array: bool, more: st.DataObject) -> None:
    paths = st.sampled_from(sorted(MESSAGE_PARTS, key=str))
    inner = more.draw(st.dictionaries(paths, st.binary(max_size=100), max_size=3))
    parameter = leading_to(name, count=1) if is_array else leading_to(name)
    value = Pointed(0x1000, data, inner=inner, before=more.draw(st.none() | st.binary(max_size=40)))
    for limit in (0, 3, None):
        assert argument_text(parameter, value, BUILT_IN, limit=limit)
    assert len(list(members_of(parameter, value, BUILT_IN))) <= 100 * (len(data) + 300)


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=8))
def test_what_is_put_into_an_array_is_found_in_it(pairs: list[tuple[int, int]]) -> None:
    data = b"".join(struct.pack("<QQ", *pair) for pair in pairs)
    found = numbers("iovec_elsewhere", data, count=1)
    names = ("iov_base", "iov_len")
    expected = [(f"[{at}].{name}", pair[place]) for at, pair in enumerate(pairs) for place, name in enumerate(names)]
    assert found == expected


def test_structures_without_end_are_cut() -> None:
    """What a file says may lead in circles: by addresses, or from one file to another."""
    ring = Struct("ring", 8, (Member("next", 0, 8, "ring *", "struct", True, struct="ring"),))
    itself = Struct("itself", 8, (Member("own", 0, 8, "itself", "struct", struct="itself"),))
    descriptions = Descriptions()
    descriptions.add(Description(structs=(ring, itself)), "x86_64")
    inner: dict[Path, bytes] = {("next",) * depth: b"\1" * 8 for depth in range(1, 40)}
    for name in ("ring", "itself"):
        parameter = Parameter(0, "it", "it", "struct", struct=name)
        assert decode(parameter, b"\1" * 8, descriptions, inner) is not None


def test_a_description_of_ones_own_has_structures() -> None:
    content = {
        "Structs": {
            "pair": {
                "Size": 8,
                "Members": [
                    {"Name": "kind", "Offset": 0, "Size": 4, "CType": "int", "RawType": "int"},
                    {"Name": "n", "Offset": 4, "Size": 4, "CType": "int", "RawType": "uint"}
                    | {"If": [{"Member": "kind", "Values": [-1], "Not": True}]},
                ],
            }
        }
    }
    descriptions = Descriptions()
    descriptions.add(parse_description(content), "x86_64")
    parameter = Parameter(0, "it", "pair *", "struct", struct="pair")
    assert argument_text(parameter, Pointed(1, struct.pack("<iI", 1, 2)), descriptions) == "{kind=1, n=2}"
    assert argument_text(parameter, Pointed(1, struct.pack("<iI", -1, 2)), descriptions) == "{kind=-1}"
