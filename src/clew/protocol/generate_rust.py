"""What of the schema is Rust: the runtime's side, and the path codec's.

Runs on a developer's machine. Pure. `no_std`, formatted as rustfmt does.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from clew.protocol.generated_text import ORIGIN, WIDTH, snake_case
from clew.protocol.schema import EnumDefinition, Field, LimitDefinition, Schema, StructDefinition

__all__ = ["emit_codec_rust", "emit_rust"]

HASH_BYTES_A_LINE = (WIDTH - 4) // 6


def emit_rust(schema: Schema) -> str:
    """The runtime's side."""
    digest = schema.hash
    hash_lines = range(0, len(digest), HASH_BYTES_A_LINE)
    lines = [
        f"//! {ORIGIN}",
        "",
        f"pub const VERSION: u32 = {schema.version};",
        f"pub const MAGIC: u64 = {schema.magic:#018x};",
        f'pub const NOTE_NAME: &[u8; {len(schema.note_name) + 1}] = b"{schema.note_name}\\0";',
        f"pub const NOTE_TYPE: u32 = {schema.note_type};",
        "pub const SCHEMA_HASH: [u8; 32] = [",
        *("    " + " ".join(f"{byte:#04x}," for byte in digest[at : at + HASH_BYTES_A_LINE]) for at in hash_lines),
        "];",
        "/// the least that is mapped at once",
        f"pub const PAGE_BYTES: u64 = {schema.architectures[0].page_bytes:#x};",
        "",
        *_limits(schema.limits),
        *_enums(schema.enums),
    ]
    for struct in schema.structs:
        lines += _struct(struct, "Clone, Copy")
    return "\n".join(lines) + "\n"


def emit_codec_rust(schema: Schema) -> str:
    """The path codec's side."""
    codec = schema.codec
    lines = [f"//! {ORIGIN}", "", *_limits(codec.limits), *_enums(codec.enums)]
    for struct in codec.structs:
        # Pointers have no default.
        has_pointers = any(field.pointer is not None for field in struct.fields)
        lines += _struct(struct, "Clone, Copy" if has_pointers else "Clone, Copy, Debug, Default, PartialEq, Eq")
    return "\n".join(lines) + "\n"


def _limits(limits: Iterable[LimitDefinition]) -> list[str]:
    lines = []
    for limit in limits:
        lines += _doc(limit.doc, "")
        lines.append(f"pub const {limit.name.upper()}: {limit.scalar} = {limit.value:#x};")
    return lines


def _enums(enums: Iterable[EnumDefinition]) -> list[str]:
    lines = []
    for enum in enums:
        lines += ["", *_doc(enum.doc, ""), f"pub mod {snake_case(enum.name)} {{"]
        lines += [f"    pub const {name.upper()}: {enum.scalar} = {value};" for name, value in enum.values]
        lines.append("}")
    return lines


def _struct(struct: StructDefinition, traits: str) -> list[str]:
    lines = ["", *_doc(struct.doc, ""), "#[repr(C)]", f"#[derive({traits})]", f"pub struct {struct.name} {{"]
    for field in struct.fields:
        lines += _doc(field.doc if field.writer is None else f"{field.doc} (written by: {field.writer})", "    ")
        lines.append(f"    pub {field.name}: {_type(field)},")
    lines += ["}", f"const _: () = assert!(core::mem::size_of::<{struct.name}>() == {struct.size_bytes});"]
    lines += [
        f"const _: () = assert!(core::mem::offset_of!({struct.name}, {field.name}) == {field.offset});"
        for field in struct.fields
    ]
    return lines


def _type(field: Field) -> str:
    if field.inner is not None:
        return field.inner.name
    if field.pointer is not None:
        return field.pointer
    return field.scalar if field.length is None else f"[{field.scalar}; {field.length}]"


def _doc(doc: str, indent: str) -> list[str]:
    # Square brackets would be links to rustdoc.
    text = re.sub(r"([\[\]])", r"\\\1", doc)
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}/// ", subsequent_indent=f"{indent}/// ")
