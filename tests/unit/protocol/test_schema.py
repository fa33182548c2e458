"""The schema's own rules, its hash, and that what is generated is up to date and agrees with the schema."""

from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from clew.errors import SchemaError
from clew.protocol import _constants, _generated, words
from clew.protocol.generate import generated_files, main
from clew.protocol.layout import field_offset, pack_struct
from clew.protocol.schema import load_schema, parse_schema

ROOT = Path(__file__).resolve().parents[3]
RUST_FILES = ("runtime/src/protocol.rs", "pathcodec/src/protocol.rs")

SMALL = """
[protocol]
version = 3
magic = 0x1122334455667788
note_name = "clew"
note_type = 1
[limits]
record_bytes = { value = 64, doc = "bytes" }
[architectures.tiny]
doc = "two registers"
title = "Tiny"
machine = 7
page_bytes = 256
registers = ["a", "b"]
more_held_registers = ["pc"]
program_counter = "pc"
stack_pointer = "b"
[enums.RecordKind]
doc = "kinds"
type = "u16"
values = { padding = 0, thing = 1 }
[structs.ThingRecord]
doc = "a thing"
size = 64
shared = true
record = "thing"
fields = [
  { name = "kind", type = "u16", offset = 0, writer = "runtime:thread", doc = "kind" },
  { name = "small", type = "u8[6]", offset = 2, writer = "runtime:thread", doc = "six [bytes]" },
  { name = "large", type = "u64[7]", offset = 8, writer = "runtime:thread", doc = "seven words" },
]
[structs.Private]
doc = "private"
size = 8
shared = false
fields = [{ name = "word", type = "u64", offset = 0, doc = "a word" }]
[page.limits]
container_version = { value = 1, doc = "of containers" }
[page.enums.ShownKind]
doc = "what is shown"
type = "u8"
values = { point = 0, stretch = 1 }
[codec.limits]
nothing = { value = 0xff, type = "u8", doc = "none of them" }
[codec.enums.Way]
doc = "where it goes"
type = "u8"
values = { onward = 1, away = 0 }
[codec.structs.Mark]
doc = "a place"
size = 16
shared = false
fields = [
  { name = "first", type = "u64", offset = 0, doc = "so far" },
  { name = "second", type = "u64", offset = 8, doc = "and so far" },
]
[codec.structs.Step]
doc = "a step"
size = 24
shared = false
rows = true
fields = [
  { name = "mark", type = "Mark", offset = 0, doc = "where" },
  { name = "way", type = "u8", offset = 16, doc = "enum Way" },
  { name = "reserved", type = "u8[7]", offset = 17, doc = "zero" },
]
[codec.structs.Walk]
doc = "all steps"
size = 24
shared = false
fields = [
  { name = "steps", type = "*const Step", offset = 0, doc = "the first one" },
  { name = "end", type = "Mark", offset = 8, doc = "where it ends" },
]
[words.WayWord]
doc = "where it went"
enum = "Way"
[words.SomeWord]
doc = "a part of it"
enum = "Way"
without = ["onward"]
[words.OwnWord]
doc = "no enum's"
values = ["yes", "no"]
page = true
"""


def test_generated_files_are_up_to_date() -> None:
    assert main(["--check", "--root", str(ROOT)]) == 0


def test_dtypes_agree_with_the_schema() -> None:
    for definition in load_schema(ROOT / "protocol" / "schema.toml").structs:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", definition.name).upper()
        dtype = getattr(_generated, name)
        assert dtype.itemsize == definition.size_bytes
        assert dtype.names == tuple(field.name for field in definition.fields)
        for field in definition.fields:
            field_dtype, offset = dtype.fields[field.name]
            assert (offset, field_dtype.itemsize) == (field.offset, field.size_bytes)
            assert field_offset(definition.name, field.name) == field.offset


@pytest.mark.parametrize("name", RUST_FILES)
def test_rust_side_is_formatted(tmp_path: Path, name: str) -> None:
    if shutil.which("rustfmt") is None:
        pytest.skip("rustfmt is not installed")
    text = generated_files(load_schema(ROOT / "protocol" / "schema.toml"))[name]
    (tmp_path / "protocol.rs").write_text(text)
    shutil.copy(ROOT / "rustfmt.toml", tmp_path)
    subprocess.run(["rustfmt", "--edition", "2021", "--check", tmp_path / "protocol.rs"], check=True)


@pytest.mark.parametrize(
    ("name", "layout"),
    [(RUST_FILES[0], "offset_of!(ThingRecord, large) == 8"), (RUST_FILES[1], "offset_of!(Walk, end) == 8")],
)
def test_rust_side_compiles_and_asserts_its_layout(tmp_path: Path, name: str, layout: str) -> None:
    if shutil.which("rustc") is None:
        pytest.skip("rustc is not installed")
    text = generated_files(parse_schema(SMALL))[name]
    (tmp_path / "lib.rs").write_text("#![no_std]\n#![allow(dead_code)]\n" + text.replace("//!", "//"))
    command = [
        "rustc",
        "--edition",
        "2021",
        "--crate-type",
        "lib",
        "--emit=metadata",
        "-o",
        str(tmp_path / "out"),
        "lib.rs",
    ]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert f"assert!(core::mem::{layout});" in text
    broken = text.replace(layout, layout.replace("== 8", "== 16"))
    (tmp_path / "lib.rs").write_text("#![no_std]\n#![allow(dead_code)]\n" + broken.replace("//!", "//"))
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode != 0


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('type = "u8[6]", offset = 2', 'type = "u8[6]", offset = 4', "the field before it ends at 2"),
        ('type = "u8[6]", offset = 2', 'type = "u32", offset = 2', "not aligned"),
        ('type = "u64[7]", offset = 8', 'type = "u64[8]", offset = 8', "fields end at 72, not at its size 64"),
        ('type = "u64[7]"', 'type = "i64[7]"', "unknown type"),
        ('offset = 8, writer = "runtime:thread"', 'offset = 8, writer = "anybody"', "names its writer"),
        ('offset = 8, writer = "runtime:thread",', "offset = 8,", "names its writer"),
        ('offset = 0, doc = "a word"', 'offset = 0, writer = "both", doc = "a word"', "has no writer"),
        ('record = "thing"', 'record = "stone"', "no RecordKind"),
        ("thing = 1 }", "thing = 0 }", "used twice"),
        ("thing = 1 }", "thing = 65536 }", "16 bits"),
        ("stretch = 1 }", "stretch = 256 }", "8 bits"),
        ("page.enums.ShownKind", "page.enums.RecordKind", "has the name of another one"),
        ('name = "small"', 'name = "Small"', "snake_case"),
        ('name = "large"', 'name = "small"', "used twice"),
        ("record_bytes = { value = 64", "record_bytes = { value = 32", "a record has 32 bytes"),
        ("codec.enums.Way", "codec.enums.RecordKind", "has the name of another one"),
        ('value = 0xff, type = "u8"', 'value = 0x100, type = "u8"', "8 bits"),
        ('type = "Mark", offset = 8', 'type = "Walk", offset = 8', "unknown type"),
        ('type = "*const Step"', 'type = "&Step"', "unknown type"),
        (
            'name = "way", type = "u8", offset = 16',
            'name = "way", type = "u8", offset = 8',
            "the field before it ends at 16",
        ),
        ('type = "u64", offset = 0, doc = "a word"', 'type = "*mut u8", offset = 0, doc = "a word"', "unknown type"),
        ('enum = "Way"\nwithout', 'enum = "Path"\nwithout', "there is no enum Path"),
        ('without = ["onward"]', 'without = ["inward"]', "without what enum Way does not have"),
        ('without = ["onward"]', 'without = ["onward", "away"]', "there are none"),
        ('["yes", "no"]', '["no", "no"]', "twice"),
    ],
)
def test_broken_rules_are_refused(old: str, new: str, complaint: str) -> None:
    assert SMALL.count(old) == 1
    with pytest.raises(SchemaError, match=re.escape(complaint)):
        parse_schema(SMALL.replace(old, new))


OTHER = """
[architectures.wide]
doc = "four registers"
title = "Wide"
machine = 8
page_bytes = 256
registers = ["w0", "w1", "w2", "w3"]
more_held_registers = ["pc", "sp"]
program_counter = "pc"
stack_pointer = "sp"
[structs.State]
doc = "what a thread is doing"
size = { tiny = 32, wide = 64 }
shared = false
fields = [
  { name = "registers", type = "u64[registers]", offset = 0, doc = "the general ones" },
  { name = "flags", type = "u64", offset = 16, architecture = "tiny", doc = "only here" },
  { name = "mask", type = "u64", offset = { tiny = 24, wide = 32 }, doc = "signal mask" },
  { name = "thread", type = "u64", offset = 40, architecture = "wide", doc = "only there" },
  { name = "more", type = "u64[2]", offset = 48, architecture = "wide", doc = "more of it" },
]
"""


def test_layouts_are_sized_and_placed_by_architecture() -> None:
    text = SMALL + OTHER
    tiny, wide = parse_schema(text), parse_schema(text, "wide")
    assert [one.name for one in tiny.architectures] == ["tiny", "wide"]
    of_tiny, of_wide = tiny.structs[-1], wide.structs[-1]
    assert [(field.name, field.type_text, field.offset) for field in of_tiny.fields] == [
        ("registers", "u64[2]", 0),
        ("flags", "u64", 16),
        ("mask", "u64", 24),
    ]
    assert [(field.name, field.type_text, field.offset) for field in of_wide.fields] == [
        ("registers", "u64[4]", 0),
        ("mask", "u64", 32),
        ("thread", "u64", 40),
        ("more", "u64[2]", 48),
    ]
    assert (of_tiny.size_bytes, of_wide.size_bytes) == (32, 64)
    assert tiny.architectures[0].own_fields == {"State": ("flags",)}
    assert wide.architectures[0].own_fields == {"State": ("thread", "more")}
    assert wide.architectures[0].held_registers == ("w0", "w1", "w2", "w3", "pc", "sp")
    assert tiny.hash != wide.hash


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("offset = { tiny = 24, wide = 32 }", "offset = { wide = 32 }", "says nothing for architecture tiny"),
        ('registers = ["a", "b"]', 'registers = ["a", "b", "c"]', "the field before it ends at 24"),
        ('registers = ["a", "b"]', 'registers = ["a", "a"]', "named twice"),
        ('stack_pointer = "b"', 'stack_pointer = "s"', "none of its registers"),
        ("machine = 7", "machine = 65536", "16 bits"),
        ("page_bytes = 256", "page_bytes = 257", "no power of two"),
    ],
)
def test_broken_rules_of_architectures_are_refused(old: str, new: str, complaint: str) -> None:
    text = SMALL + OTHER
    assert old in text
    with pytest.raises(SchemaError, match=complaint):
        parse_schema(text.replace(old, new, 1))


def test_what_of_an_architecture_is_generated() -> None:
    architecture = _constants.ARCHITECTURES["x86_64"]
    _, fields = _constants.LAYOUTS["ThreadState"]
    assert struct.calcsize(fields["registers"][1]) == 8 * len(architecture.registers)
    held = _constants.LAYOUTS["ThreadSlot"][1]["held_registers"]
    assert struct.calcsize(held[1]) == 8 * len(architecture.held_registers)
    assert {architecture.program_counter, architecture.stack_pointer} <= set(architecture.held_registers)
    assert set(architecture.own_fields["ThreadState"]) < fields.keys()


def test_hash_covers_meaning_but_not_documentation() -> None:
    original = parse_schema(SMALL).hash
    assert parse_schema(SMALL.replace("seven words", "7 words")).hash == original
    assert parse_schema(SMALL.replace("stretch = 1 }", "stretch = 2 }")).hash == original, "the page is not in it"
    assert parse_schema(SMALL.replace("onward = 1", "onward = 2")).hash == original, "the path codec is not in it"
    assert parse_schema(SMALL.replace('["yes", "no"]', '["no", "yes"]')).hash == original, "words are not in it"
    for old, new in (
        ("version = 3", "version = 4"),
        ("thing = 1 }", "thing = 2 }"),
        ('name = "large"', 'name = "huge"'),
        ('offset = 8, writer = "runtime:thread"', 'offset = 8, writer = "both"'),
        ("value = 64", "value = 64, doc = 'x' }\nother = { value = 1"),
    ):
        assert parse_schema(SMALL.replace(old, new)).hash != original, old


def test_enums_of_the_page_are_there_for_python_and_the_page_alone() -> None:
    files = generated_files(parse_schema(SMALL))
    knowing = [name for name, text in files.items() if "stretch" in text.lower()]
    assert knowing == ["src/clew/protocol/_constants.py", "web/src/protocol/generated.ts"]
    assert "export const SHOWN_KIND = {\n  point: 0,\n  stretch: 1,\n} as const;" in files[knowing[1]]


def run_generated(name: str) -> dict[str, Any]:
    """What a generated Python file has in it."""
    content: dict[str, Any] = {}
    exec(compile(generated_files(parse_schema(SMALL))[name], name, "exec"), content)
    assert all(one in content for one in content["__all__"])
    return content


def test_what_the_path_codec_has_is_there_for_it_and_python_alone() -> None:
    files = generated_files(parse_schema(SMALL))
    knowing = [name for name, text in files.items() if "enum way" in text.lower() or "class Way" in text]
    assert knowing == [RUST_FILES[1], "src/clew/protocol/codec.py", "src/clew/protocol/codec_layouts.py"]
    content = run_generated("src/clew/protocol/codec.py")
    assert (content["NOTHING"], content["Way"].ONWARD) == (255, 1)
    content = run_generated("src/clew/protocol/codec_layouts.py")
    step, walk, mark = content["STEP"], content["Walk"], content["Mark"]
    assert {name: offset for name, (_, offset) in step.fields.items()} == {
        "first": 0,
        "second": 8,
        "way": 16,
        "reserved": 17,
    }
    assert (step.itemsize, ctypes.sizeof(walk), ctypes.sizeof(mark)) == (24, 24, 16)
    assert (walk.steps.offset, walk.end.offset, walk(end=mark(1, 2)).end.second) == (0, 8, 2)


def test_words_are_the_names_of_values_by_their_numbers() -> None:
    content = run_generated("src/clew/protocol/words.py")
    assert (content["WAY_WORDS"], content["SOME_WORDS"]) == (("away", "onward"), ("away",))
    assert content["OWN_WORDS"] == get_args(content["OwnWord"]) == ("yes", "no")
    page = generated_files(parse_schema(SMALL))["web/src/protocol/generated.ts"]
    assert 'export type OwnWord = "yes" | "no";' in page
    assert "SomeWord" not in page


def test_words_of_graphs_have_the_numbers_of_their_enums() -> None:
    for words_, kinds in ((words.EXIT_WORDS, _constants.ExitKind), (words.EDGE_WORDS, _constants.EdgeKind)):
        assert all(kinds[word.upper()] == number for number, word in enumerate(words_))


def test_check_names_the_stale_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "protocol").mkdir()
    (tmp_path / "protocol" / "schema.toml").write_text(SMALL)
    assert main(["--root", str(tmp_path)]) == 0
    assert main(["--check", "--root", str(tmp_path)]) == 0
    (tmp_path / "docs" / "format" / "protocol.md").write_text("old")
    assert main(["--check", "--root", str(tmp_path)]) == 1
    assert "docs/format/protocol.md" in capsys.readouterr().err


def test_pack_struct_puts_values_where_numpy_finds_them() -> None:
    data = pack_struct("SessionHeader", magic=7, schema_hash=bytes(range(32)), max_threads=9)
    row = np.frombuffer(data, _generated.SESSION_HEADER)[0]
    assert (row["magic"], row["max_threads"], bytes(row["schema_hash"])) == (7, 9, bytes(range(32)))
    block = np.frombuffer(pack_struct("StartBlock", ranges=[1, 2, 3], rip=5), _generated.START_BLOCK)[0]
    assert (list(block["ranges"][:4]), block["rip"]) == ([1, 2, 3, 0], 5)


def test_pack_struct_refuses_what_does_not_fit() -> None:
    with pytest.raises(struct.error):
        pack_struct("SessionHeader", max_threads=1 << 32)
    with pytest.raises(struct.error):
        pack_struct("StartBlock", ranges=[0] * 481)
    with pytest.raises(KeyError):
        pack_struct("StartBlock", nothing=1)


def test_constants_are_the_same_with_and_without_numpy() -> None:
    assert _generated.SCHEMA_HASH is _constants.SCHEMA_HASH
    assert set(_generated.RECORD_DTYPES) == set(_generated.RecordKind) - {_generated.RecordKind.PADDING}
