"""Clew's own description files: what the generator makes, out of what was captured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.api.c_types import raw_type_of
from clew.api.generate import __main__ as generate
from clew.api.generate.capture import capture_values, format_prototype
from clew.api.generate.descriptions import HintError, flag_tables_content, system_calls_content
from clew.api.generate.effects import EffectError
from clew.api.generate.rules import describe_argument
from clew.api.generate.sources import (
    Argument,
    Sources,
    parse_flag_values,
    parse_numbers,
    parse_prototypes,
    read_sources,
)
from clew.api.reading import BUILT_IN

EVENT = """name: sys_enter_probe
ID: 1
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;
\tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;
\tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;

print fmt: "dfd: 0x%08lx"
"""


NO_EFFECTS: dict[str, Any] = {"Calls": {}, "Cases": {}}


def sources(hints: dict[str, Any], *prototypes: str, effects: dict[str, Any] | None = None) -> Sources:
    made: dict[str, Any] = {"Renamed": {}, "Prototypes": [], "Filters": {"Other": "*"}, "Results": {"int": "*"}}
    made |= {"In": [], "InOut": [], "Structs": {}, "Calls": {}}
    parsed = parse_prototypes(list(prototypes))
    numbers = {name: {"x86_64": index} for index, name in enumerate(parsed)}
    tables = {"modes": {"kind": "flags", "fields": [[3, "M_A|M_B"]]}}
    values = {"modes": [("M_A", 0), ("M_B", 1), ("M_C", 4)]}
    return Sources(parsed, numbers, tables, values, made | hints, effects or NO_EFFECTS, [], {}, {}, "here")


def only_call(made: Sources) -> dict[str, Any]:
    (call,) = system_calls_content(made)["SystemCalls"]
    assert isinstance(call, dict)
    return call


def test_the_committed_files_are_what_is_made_of_the_sources() -> None:
    files = generate.generated_files(read_sources())
    assert {path.name: path.read_text(encoding="utf-8") for path in BUILT_IN} == files


def test_the_check_tells_of_a_file_that_is_not_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copies = tuple(tmp_path / path.name for path in BUILT_IN)
    monkeypatch.setattr(generate, "BUILT_IN", copies)
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    copies[2].write_text(copies[2].read_text().replace("openat", "openit", 1))
    assert generate.main(["--check"]) == 1
    assert "system_calls.json is not up to date" in capsys.readouterr().err
    assert generate.main([]) == 0
    assert copies[2].read_bytes() == BUILT_IN[2].read_bytes()


def test_an_event_is_a_prototype() -> None:
    assert format_prototype("probe", EVENT) == "probe(int dfd, const char * filename)"
    assert format_prototype("none", EVENT.split("\tfield:int dfd")[0]) == "none()"


def test_prototypes_are_parsed() -> None:
    parsed = parse_prototypes(["a(int dfd, const char *const * argv, const void *const attr)", "b()"])
    assert parsed["a"] == [
        Argument("int", "dfd"),
        Argument("const char *const *", "argv"),
        Argument("const void *const", "attr"),
    ]
    assert parsed["b"] == []
    with pytest.raises(ValueError, match="is no prototype"):
        parse_prototypes(["c(int"])
    with pytest.raises(ValueError, match="'int' is no argument"):
        parse_prototypes(["c(int)"])


def test_numbers_and_values_are_parsed() -> None:
    assert parse_numbers(["x86_64 2 open", "aarch64 56 openat", "x86_64 257 openat"]) == {
        "open": {"x86_64": 2},
        "openat": {"aarch64": 56, "x86_64": 257},
    }
    assert parse_flag_values(["[a]", "A -0x64", "B 0x10", "[b]", "C 1"]) == {
        "a": [("A", -100), ("B", 16)],
        "b": [("C", 1)],
    }


def test_values_are_worked_out_by_a_compiler() -> None:
    table = {"headers": ["errno.h", "sys/socket.h"], "names": "ENO(ENT|DEV)|SOCK_STREAM", "but": "ENODEV"}
    assert capture_values(table) == [("SOCK_STREAM", 1), ("ENOENT", 2)]


@pytest.mark.parametrize(
    ("c_type", "name", "raw_type"),
    [
        ("const char *", "filename", "path"),
        ("const char *", "oldname", "path"),
        ("const char *", "_type", "string"),
        ("const char *", "buf", "buffer"),
        ("char *", "buf", "buffer"),
        ("const void *", "value", "buffer"),
        ("void *", "uargs", "pointer"),
        ("struct stat *", "statbuf", "struct"),
        ("struct sockaddr *", "addr", "sockaddr"),
        ("const struct iovec *", "vec", "struct"),
        ("const struct __kernel_timespec *", "uts", "timespec"),
        ("struct iocb * *", "iocbpp", "pointer"),
        ("int *", "fildes", "pointer"),
        ("unsigned long", "fd", "fd"),
        ("const int", "ruleset_fd", "fd"),
        ("umode_t", "mode", "mode"),
        ("size_t", "count", "size"),
        ("loff_t", "pos", "offset"),
        ("pid_t", "upid", "pid"),
        ("int", "sig", "signal"),
        ("const clockid_t", "which_clock", "clock"),
        ("unsigned", "flags", "flags"),
        ("int", "msgflg", "flags"),
        ("unsigned long", "start", "pointer"),
        ("unsigned long", "arg2", "ulong"),
        ("long", "nr", "long"),
        ("u32", "val", "uint"),
        ("int", "backlog", "int"),
        ("const enum landlock_rule_type", "rule_type", "enum"),
    ],
)
def test_types_and_names_say_what_an_argument_is(c_type: str, name: str, raw_type: str) -> None:
    assert raw_type_of(c_type, name) == raw_type


def test_what_stands_behind_a_pointer_says_how_much_there_is() -> None:
    arguments = parse_prototypes(
        ["a(char * buf, size_t count, const struct iovec * vec, unsigned long vlen, void * p)"]
    )["a"]
    made = [describe_argument(arguments, index) for index in range(5)]
    assert made[0]["Bytes"] == 1
    assert made[0]["Direction"] == "out"
    assert made[2]["Count"] == 3
    assert "Direction" not in made[2]
    assert "Bytes" not in made[4]


def test_hints_name_arguments_and_tables() -> None:
    calls = {
        "pro*": {
            "how": "modes",
            "buf": {"Bytes": "result"},
            "Variants": {"By": "how", "Cases": [{"Values": ["M_C"], "Parameters": {"fd": {"RawType": "int"}}}]},
        }
    }
    call = only_call(sources({"Calls": calls}, "probe(int fd, int how, char * buf, size_t count)"))
    fd, how, buf, _, result = call["Parameters"]
    assert (how["RawType"], how["Flags"]) == ("flags", "modes")
    assert (buf["Bytes"], buf["Room"]) == (-1, 3)
    assert result["Index"] == -1
    assert call["Effects"] == [{"Effect": "UseReference", "Parameters": [0]}]
    assert call["Variants"] == {"By": 1, "Cases": [{"Values": ["M_C"], "Parameters": [fd | {"RawType": "int"}]}]}


def test_pointers_go_the_way_that_hints_say() -> None:
    text = "probe(struct a * first, struct a * second, struct a * third)"
    made = only_call(sources({"In": ["probe.f*"], "InOut": ["*.second"]}, text))["Parameters"]
    assert [parameter.get("Direction") for parameter in made] == [None, "inout", "out", None]


@pytest.mark.parametrize(
    ("hints", "message"),
    [
        ({"Calls": {"probe": {"nothing": "modes"}}}, "fit nothing: probe: nothing"),
        ({"Calls": {"other": {"fd": "modes"}}}, "fit nothing: other: fd"),
        ({"In": ["other.*"]}, r"fit nothing: In: other\.\*"),
        ({"Calls": {"probe": {"fd": "unknown"}}}, "no table unknown"),
        ({"Prototypes": ["newer(int fd)"]}, "no number for newer"),
    ],
)
def test_hints_that_fit_nothing_are_refused(hints: dict[str, Any], message: str) -> None:
    with pytest.raises(HintError, match=message):
        system_calls_content(sources(hints, "probe(int fd)"))


def test_effects_name_arguments_and_what_paths_begin_at() -> None:
    lines = ["LinkReference result path|name role=opened cloexec=how:M_C", "UseReference fd if=how:M_A|M_B bytes=size"]
    hints = {
        "Calls": {"probe": {"how": "modes", "Variants": {"By": "how", "Cases": [{"Values": ["M_A", "M_C"]}]}}},
        "Results": {"fd": "*"},
    }
    effects = {"Calls": {"pro*": lines}, "Cases": {"probe": {"M_C": ["DestroyReference fd"]}}}
    text = "probe(int fd, const char * path, int how, size_t size)"
    call = only_call(sources(hints, text, effects=effects))
    assert call["Effects"] == [
        {"Effect": "LinkReference", "Parameters": [-1, 1], "At": [None, 0], "Role": "opened"}
        | {"CloseOnExec": {"Index": 2, "Flags": ["M_C"]}},
        {"Effect": "UseReference", "Parameters": [0], "Conditional": {"Index": 2, "Flags": ["M_A", "M_B"]}, "Bytes": 3},
    ]
    # A case of several values is parted where one of them has effects of its own.
    assert call["Variants"]["Cases"] == [
        {"Values": ["M_C"], "Effects": [{"Effect": "DestroyReference", "Parameters": [0]}]},
        {"Values": ["M_A"]},
    ]


def test_what_is_named_is_used_where_nothing_is_said() -> None:
    call = only_call(sources({}, "probe(int dfd, const char * path, pid_t pid, int what)"))
    assert call["Effects"] == [
        {"Effect": "UseReference", "Parameters": [0]},
        {"Effect": "UseEntity", "Parameters": [1], "At": [0]},
        {"Effect": "UseReference", "Parameters": [2]},
    ]


@pytest.mark.parametrize(
    ("effects", "message"),
    [
        ({"Calls": {"probe": ["UseReference nothing"]}, "Cases": {}}, "probe: there is no argument nothing"),
        ({"Calls": {"probe": ["UseReference fd what=fd"]}, "Cases": {}}, "what is what"),
        ({"Calls": {"other": ["UseReference fd"]}, "Cases": {}}, "fit nothing: other"),
        ({"Calls": {}, "Cases": {"probe": {"M_A": ["UseReference fd"]}}}, "no case for M_A"),
    ],
)
def test_effects_that_fit_nothing_are_refused(effects: dict[str, Any], message: str) -> None:
    with pytest.raises(EffectError, match=message):
        system_calls_content(sources({}, "probe(int fd)", effects=effects))


def test_values_of_fields_have_their_mask() -> None:
    tables = flag_tables_content(sources({}, "probe()"))["FlagTables"]
    assert tables["modes"] == {"Kind": "flags", "Values": [["M_A", 0, 3], ["M_B", 1, 3], ["M_C", 4]]}
