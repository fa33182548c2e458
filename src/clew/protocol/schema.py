"""Reads protocol/schema.toml and checks that it keeps its own rules.

Runs on a developer's machine, when code is generated. Knows nothing of what is generated from the schema.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from clew.dataclass import dataclass
from clew.errors import SchemaError
from clew.protocol.architecture import ArchitectureDefinition

__all__ = [
    "CodecDefinition",
    "EnumDefinition",
    "Field",
    "LimitDefinition",
    "Schema",
    "StructDefinition",
    "WordsDefinition",
    "load_schema",
    "parse_schema",
]

SCALAR_BYTES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
WRITERS = ("controller", "controller:live", "runtime", "runtime:thread", "both")
SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
CAMEL_CASE = re.compile(r"([A-Z][a-z0-9]*)+")
FIELD_TYPE = re.compile(r"(u8|u16|u32|u64)(?:\[([1-9][0-9]*|registers|held_registers)\])?")
POINTER_TYPE = re.compile(r"\*(?:const|mut) \w+")


@dataclass(frozen=True)
class Field:
    """One field of a struct. `length` is None for a scalar, else the number of elements.

    `inner` is the struct that it is, or None: then `scalar` is the widest in that. `pointer` is its type in Rust if it
    is a pointer, or None.
    """

    name: str
    scalar: str
    length: int | None
    offset: int
    writer: str | None
    doc: str
    inner: StructDefinition | None = None
    pointer: str | None = None

    @property
    def size_bytes(self) -> int:
        if self.inner is not None:
            return self.inner.size_bytes
        return SCALAR_BYTES[self.scalar] * (1 if self.length is None else self.length)

    @property
    def type_text(self) -> str:
        return self.scalar if self.length is None else f"{self.scalar}[{self.length}]"


@dataclass(frozen=True)
class StructDefinition:
    """One struct. `record` is the RecordKind it is the layout of, or None. Where `has_rows` there are tables of it."""

    name: str
    doc: str
    size_bytes: int
    is_shared: bool
    record: str | None
    fields: tuple[Field, ...]
    has_rows: bool = False

    @property
    def widest_scalar(self) -> str:
        return max((field.scalar for field in self.fields), key=SCALAR_BYTES.__getitem__)


@dataclass(frozen=True)
class EnumDefinition:
    """One enum: `values` in the order of the schema."""

    name: str
    doc: str
    scalar: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class LimitDefinition:
    """One named number."""

    name: str
    value: int
    doc: str
    scalar: str = "u64"


@dataclass(frozen=True)
class WordsDefinition:
    """What a column of a trace's tables, or an answer, has as text: `values` in the order of their numbers."""

    name: str
    doc: str
    values: tuple[str, ...]
    is_of_page: bool


@dataclass(frozen=True)
class CodecDefinition:
    """What the path codec and the controller share."""

    limits: tuple[LimitDefinition, ...]
    enums: tuple[EnumDefinition, ...]
    structs: tuple[StructDefinition, ...]


@dataclass(frozen=True)
class Schema:
    """The whole schema, laid out for the first of `architectures`. `hash` is SHA-256 over names, types, offsets and
    values, not over documentation.

    What is the page's, the path codec's or the tables' is no part of it: a runtime does not depend on that. Of an
    architecture, what it makes of the layouts is.
    """

    version: int
    magic: int
    note_name: str
    note_type: int
    architectures: tuple[ArchitectureDefinition, ...]
    limits: tuple[LimitDefinition, ...]
    enums: tuple[EnumDefinition, ...]
    structs: tuple[StructDefinition, ...]
    page: tuple[LimitDefinition, ...]
    page_enums: tuple[EnumDefinition, ...]
    codec: CodecDefinition
    words: tuple[WordsDefinition, ...]

    @property
    def hash(self) -> bytes:
        canonical = {
            "version": self.version,
            "magic": self.magic,
            "note": [self.note_name, self.note_type],
            "limits": {limit.name: limit.value for limit in self.limits},
            "enums": {enum.name: [enum.scalar, dict(enum.values)] for enum in self.enums},
            "structs": {
                struct.name: [
                    struct.size_bytes,
                    struct.is_shared,
                    struct.record,
                    [[field.name, field.type_text, field.offset, field.writer] for field in struct.fields],
                ]
                for struct in self.structs
            },
        }
        text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).digest()


def load_schema(path: Path) -> Schema:
    """Read and check the schema at `path`. Raises SchemaError when it breaks a rule."""
    try:
        return parse_schema(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"{path}: {error}") from error


def parse_schema(text: str, architecture: str = "") -> Schema:
    """Parse and check a schema, as it is for `architecture`: by default for its first one.

    Raises SchemaError when it breaks a rule.
    """
    document = tomllib.loads(text)
    architectures = [
        _parse_architecture(name, told, document["structs"])
        for name, told in document.get("architectures", {}).items()
        if architecture in ("", name)
    ]
    _require(bool(architectures), f"architectures: there is no {architecture or 'one'}")
    protocol = document["protocol"]
    page = document.get("page", {})
    page_enums = tuple(_parse_enum(name, enum) for name, enum in page.get("enums", {}).items())
    codec = _parse_codec(document.get("codec", {}), architectures[0])
    enums = tuple(_parse_enum(name, enum) for name, enum in document["enums"].items())
    names = [enum.name for enum in (*enums, *page_enums, *codec.enums)]
    _require(len(set(names)) == len(names), "an enum of the page or the path codec has the name of another one")
    schema = Schema(
        version=_integer(protocol["version"], 32, "protocol.version"),
        magic=_integer(protocol["magic"], 64, "protocol.magic"),
        note_name=protocol["note_name"],
        note_type=_integer(protocol["note_type"], 32, "protocol.note_type"),
        architectures=tuple(architectures),
        limits=_parse_limits(document["limits"]),
        enums=enums,
        structs=tuple(_parse_struct(name, struct, architectures[0]) for name, struct in document["structs"].items()),
        page=_parse_limits(page.get("limits", {})),
        page_enums=page_enums,
        codec=codec,
        words=tuple(
            _parse_words(name, told, (*enums, *codec.enums)) for name, told in document.get("words", {}).items()
        ),
    )
    _check_records(schema)
    return schema


def _parse_limits(limits: dict[str, Any]) -> tuple[LimitDefinition, ...]:
    found = []
    for name, limit in limits.items():
        _require(SNAKE_CASE.fullmatch(name) is not None, f"limit {name}: not a snake_case name")
        scalar = limit.get("type", "u64")
        _require(scalar in SCALAR_BYTES, f"limit {name}: unknown type {scalar!r}")
        value = _integer(limit["value"], 8 * SCALAR_BYTES[scalar], f"limit {name}")
        found.append(LimitDefinition(name, value, limit["doc"], scalar))
    return tuple(found)


def _parse_codec(told: dict[str, Any], architecture: ArchitectureDefinition) -> CodecDefinition:
    structs: dict[str, StructDefinition] = {}
    for name, struct in told.get("structs", {}).items():
        structs[name] = _parse_struct(name, struct, architecture, structs)
    enums = tuple(_parse_enum(name, enum) for name, enum in told.get("enums", {}).items())
    return CodecDefinition(_parse_limits(told.get("limits", {})), enums, tuple(structs.values()))


def _parse_words(name: str, told: dict[str, Any], enums: tuple[EnumDefinition, ...]) -> WordsDefinition:
    _require(CAMEL_CASE.fullmatch(name) is not None, f"words {name}: not a CamelCase name")
    values, without = told.get("values", []), told.get("without", [])
    if "enum" in told:
        numbers = next((dict(enum.values) for enum in enums if enum.name == told["enum"]), None)
        if numbers is None:
            raise SchemaError(f"words {name}: there is no enum {told['enum']}")
        _require(numbers.keys() >= set(without), f"words {name}: without what enum {told['enum']} does not have")
        values = [value for value in sorted(numbers, key=numbers.__getitem__) if value not in without]
    for value in values:
        _require(SNAKE_CASE.fullmatch(value) is not None, f"words {name}: {value!r} is not a snake_case name")
    _require(bool(values) and len(set(values)) == len(values), f"words {name}: there are none, or one is there twice")
    return WordsDefinition(name, told["doc"], tuple(values), told.get("page", False))


def _parse_enum(name: str, enum: dict[str, Any]) -> EnumDefinition:
    _require(CAMEL_CASE.fullmatch(name) is not None, f"enum {name}: not a CamelCase name")
    scalar = enum["type"]
    _require(scalar in SCALAR_BYTES, f"enum {name}: unknown type {scalar!r}")
    values = []
    for value_name, value in enum["values"].items():
        _require(SNAKE_CASE.fullmatch(value_name) is not None, f"enum {name}.{value_name}: not a snake_case name")
        values.append((value_name, _integer(value, 8 * SCALAR_BYTES[scalar], f"enum {name}.{value_name}")))
    _require(len({value for _, value in values}) == len(values), f"enum {name}: a value is used twice")
    return EnumDefinition(name, enum["doc"], scalar, tuple(values))


def _parse_architecture(name: str, told: dict[str, Any], structs: dict[str, Any]) -> ArchitectureDefinition:
    _require(SNAKE_CASE.fullmatch(name) is not None, f"architecture {name}: not a snake_case name")
    registers = tuple(told["registers"])
    held = (*registers, *told["more_held_registers"])
    _require(len(set(held)) == len(held), f"architecture {name}: a register is named twice")
    for key in ("program_counter", "stack_pointer"):
        _require(told[key] in held, f"architecture {name}: its {key} {told[key]!r} is none of its registers")
    own_fields = {
        struct_name: tuple(row["name"] for row in struct["fields"] if row.get("architecture") == name)
        for struct_name, struct in structs.items()
    }
    return ArchitectureDefinition(
        name,
        told["doc"],
        told["title"],
        _integer(told["machine"], 16, f"architecture {name}"),
        _page_size(told["page_bytes"], f"architecture {name}"),
        registers,
        held,
        told["program_counter"],
        told["stack_pointer"],
        {struct_name: names for struct_name, names in own_fields.items() if names},
    )


def _parse_struct(
    name: str,
    struct: dict[str, Any],
    architecture: ArchitectureDefinition,
    known: dict[str, StructDefinition] | None = None,
) -> StructDefinition:
    """A struct, whose fields may be structs that are `known`, and pointers, if that is given."""
    _require(CAMEL_CASE.fullmatch(name) is not None, f"struct {name}: not a CamelCase name")
    is_shared = struct["shared"]
    end_offset = 0
    fields = []
    for row in struct["fields"]:
        if row.get("architecture", architecture.name) != architecture.name:
            continue
        field = _parse_field(name, row, is_shared, architecture, known)
        _require(
            field.offset == end_offset,
            f"struct {name}.{field.name}: at {field.offset}, but the field before it ends at {end_offset}",
        )
        _require(
            field.offset % SCALAR_BYTES[field.scalar] == 0,
            f"struct {name}.{field.name}: offset {field.offset} is not aligned for {field.scalar}",
        )
        end_offset = field.offset + field.size_bytes
        fields.append(field)
    size = _of_architecture(struct["size"], architecture, f"struct {name}")
    _require(end_offset == size, f"struct {name}: fields end at {end_offset}, not at its size {size}")
    _require(len({field.name for field in fields}) == len(fields), f"struct {name}: a field name is used twice")
    _require(
        size % max(SCALAR_BYTES[field.scalar] for field in fields) == 0,
        f"struct {name}: its size is no multiple of its alignment",
    )
    has_rows = struct.get("rows", False)
    return StructDefinition(name, struct["doc"], size, is_shared, struct.get("record"), tuple(fields), has_rows)


def _parse_field(
    struct_name: str,
    row: dict[str, Any],
    is_shared: bool,
    architecture: ArchitectureDefinition,
    known: dict[str, StructDefinition] | None,
) -> Field:
    where = f"struct {struct_name}.{row['name']}"
    _require(SNAKE_CASE.fullmatch(row["name"]) is not None, f"{where}: not a snake_case name")
    text, inner = row["type"], (known or {}).get(row["type"])
    pointer = text if known is not None and POINTER_TYPE.fullmatch(text) else None
    match = FIELD_TYPE.fullmatch(inner.widest_scalar if inner else "u64" if pointer else text)
    if match is None:
        raise SchemaError(f"{where}: unknown type {text!r}")
    writer = row.get("writer")
    if is_shared:
        _require(writer in WRITERS, f"{where}: shared, so it names its writer, one of {', '.join(WRITERS)}")
    else:
        _require(writer is None, f"{where}: not shared, so it has no writer")
    lengths = {"registers": len(architecture.registers), "held_registers": len(architecture.held_registers)}
    length = None if match[2] is None else lengths.get(match[2]) or int(match[2])
    offset = _integer(_of_architecture(row["offset"], architecture, where), 64, where)
    return Field(row["name"], match[1], length, offset, writer, row["doc"], inner, pointer)


def _of_architecture(value: Any, architecture: ArchitectureDefinition, where: str) -> Any:
    """What is given by architecture, or for all of them."""
    if not isinstance(value, dict):
        return value
    _require(architecture.name in value, f"{where}: says nothing for architecture {architecture.name}")
    return value[architecture.name]


def _check_records(schema: Schema) -> None:
    record_bytes = next((limit.value for limit in schema.limits if limit.name == "record_bytes"), None)
    kinds = next((dict(enum.values) for enum in schema.enums if enum.name == "RecordKind"), {})
    seen: set[str] = set()
    for struct in schema.structs:
        if struct.record is None:
            continue
        _require(struct.record in kinds, f"struct {struct.name}: {struct.record!r} is no RecordKind")
        _require(struct.record not in seen, f"struct {struct.name}: record {struct.record!r} has a layout already")
        _require(struct.size_bytes == record_bytes, f"struct {struct.name}: a record has {record_bytes} bytes")
        first = struct.fields[0]
        _require(
            (first.name, first.type_text) == ("kind", "u16"), f"struct {struct.name}: a record begins with its kind"
        )
        seen.add(struct.record)


def _page_size(value: object, where: str) -> int:
    size = _integer(value, 32, where)
    _require(size.bit_count() == 1, f"{where}: a page of {size} bytes is no power of two")
    return size


def _integer(value: object, bits: int, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << bits:
        raise SchemaError(f"{where}: {value!r} is not an unsigned integer of {bits} bits")
    return value


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise SchemaError(message)
