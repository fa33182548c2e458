"""Writes what is generated from protocol/schema.toml: `python -m clew.protocol.generate [--check]`.

Runs on a developer's machine, from the repository. With --check it writes nothing and fails if a file is not up to
date. What the runtime and the controller do with the definitions is not known here.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from clew.errors import ClewError
from clew.protocol.schema import Field, Schema, StructDefinition, load_schema

__all__ = ["generated_files", "main"]

ORIGIN = "Generated from protocol/schema.toml by `make generate`; do not edit."
WIDTH = 120
PAGE_ENUMS = ("ExitKind", "EdgeKind")
HASH_BYTES_A_LINE = (WIDTH - 4) // 6


def generated_files(schema: Schema) -> dict[str, str]:
    """Text of every generated file, by its path in the repository."""
    return {
        "runtime/src/protocol.rs": emit_rust(schema),
        "src/clew/protocol/_constants.py": emit_python_constants(schema),
        "src/clew/protocol/_generated.py": emit_python_dtypes(schema),
        "docs/format/protocol.md": emit_markdown(schema),
        "web/src/protocol/generated.ts": emit_typescript(schema),
    }


def emit_rust(schema: Schema) -> str:
    """The runtime's side: `no_std`, formatted as rustfmt does."""
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
        "",
    ]
    for limit in schema.limits:
        lines += _rust_doc(limit.doc, "")
        lines.append(f"pub const {limit.name.upper()}: u64 = {limit.value:#x};")
    for enum in schema.enums:
        lines += ["", *_rust_doc(enum.doc, ""), f"pub mod {_snake(enum.name)} {{"]
        lines += [f"    pub const {name.upper()}: {enum.scalar} = {value};" for name, value in enum.values]
        lines.append("}")
    for struct in schema.structs:
        lines += [
            "",
            *_rust_doc(struct.doc, ""),
            "#[repr(C)]",
            "#[derive(Clone, Copy)]",
            f"pub struct {struct.name} {{",
        ]
        for field in struct.fields:
            lines += _rust_doc(_field_doc(field), "    ")
            scalar = field.scalar if field.length is None else f"[{field.scalar}; {field.length}]"
            lines.append(f"    pub {field.name}: {scalar},")
        lines += ["}", f"const _: () = assert!(core::mem::size_of::<{struct.name}>() == {struct.size_bytes});"]
        lines += [
            f"const _: () = assert!(core::mem::offset_of!({struct.name}, {field.name}) == {field.offset});"
            for field in struct.fields
        ]
    return "\n".join(lines) + "\n"


def emit_python_constants(schema: Schema) -> str:
    """The controller's side without numpy: enums, limits, sizes and layouts."""
    lines = [
        f'"""{ORIGIN}',
        "",
        "Numbers, enums and layouts, cheap to import. The numpy dtypes are in `clew.protocol._generated`.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        "from clew.enumeration import IntEnum",
        "from clew.protocol.architecture import ArchitectureDefinition",
        "",
        f"VERSION: Final = {schema.version}",
        f"MAGIC: Final = 0x{schema.magic:016X}",
        f'NOTE_NAME: Final = b"{schema.note_name}\\0"',
        f"NOTE_TYPE: Final = {schema.note_type}",
        f'SCHEMA_HASH: Final = bytes.fromhex("{schema.hash.hex()}")',
        *(f"{name.upper()}: Final = {value:#x}" for name, value in schema.page),
        "",
    ]
    for limit in schema.limits:
        lines += [f"{limit.name.upper()}: Final = {limit.value}", *_python_doc(limit.doc, "")]
    lines += ["", "ARCHITECTURES: Final = {", *_python_architectures(schema), "}"]
    lines += _python_doc("The architectures by name.", "")
    lines.append("")
    for enum in (*schema.enums, *schema.page_enums):
        lines += ["", f"class {enum.name}(IntEnum):", *_python_doc(enum.doc, "    "), ""]
        lines += [f"    {name.upper()} = {value}" for name, value in enum.values]
        lines.append("")
    lines += [""] + [f"{_upper(struct.name)}_BYTES: Final = {struct.size_bytes}" for struct in schema.structs]
    lines += ["", "LAYOUTS: Final[dict[str, tuple[int, dict[str, tuple[int, str]]]]] = {"]
    for struct in schema.structs:
        lines += [f'    "{struct.name}": (', f"        {struct.size_bytes},", "        {"]
        lines += [
            f'            "{field.name}": ({field.offset}, "{_struct_format(field)}"),' for field in struct.fields
        ]
        lines += ["        },", "    ),"]
    lines += ["}", *_python_doc("Of each struct: its size, and of each field its offset and `struct` format.", "")]
    return "\n".join(lines) + "\n"


def emit_python_dtypes(schema: Schema) -> str:
    """The controller's side with numpy: one dtype for each struct, and everything of the constants again."""
    names = ["ARCHITECTURES", "LAYOUTS", "MAGIC", "NOTE_NAME", "NOTE_TYPE", "SCHEMA_HASH", "VERSION"]
    names += [name.upper() for name, _ in schema.page]
    names += [limit.name.upper() for limit in schema.limits]
    names += [enum.name for enum in (*schema.enums, *schema.page_enums)]
    names += [f"{_upper(struct.name)}_BYTES" for struct in schema.structs]
    dtypes = [_upper(struct.name) for struct in schema.structs]
    lines = [
        f'"""{ORIGIN}',
        "",
        "Everything of `clew.protocol._constants`, and a numpy dtype for each struct, with explicit offsets.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        "import numpy as np",
        "",
        "from clew.protocol._constants import (",
        *(f"    {name}," for name in _isort_order(names)),
        ")",
        "",
        "__all__ = [",
        *(f'    "{name}",' for name in _isort_order([*names, *dtypes, "RECORD_DTYPES"])),
        "]",
    ]
    for struct in schema.structs:
        lines += ["", *_python_dtype(struct), *_python_doc(struct.doc, "")]
    lines += ["", "RECORD_DTYPES: Final[dict[RecordKind, np.dtype[np.void]]] = {"]
    lines += [
        f"    RecordKind.{struct.record.upper()}: {_upper(struct.name)}," for struct in schema.structs if struct.record
    ]
    lines += ["}", *_python_doc("The dtype of each kind of record.", "")]
    return "\n".join(lines) + "\n"


def emit_typescript(schema: Schema) -> str:
    """The page's side: its own numbers and enums, and the enums of which tables have the words, by their numbers."""
    lines = [f"// {ORIGIN}", ""]
    lines += [f"export const {name.upper()} = {value:#x}{'n' if value >> 53 else ''};" for name, value in schema.page]
    for enum in (*(enum for enum in schema.enums if enum.name in PAGE_ENUMS), *schema.page_enums):
        lines += ["", *(f"// {line}" for line in textwrap.wrap(enum.doc, WIDTH - 3))]
        lines.append(f"export const {_upper(enum.name)} = {{")
        lines += [f"  {name}: {value}," for name, value in enum.values]
        lines.append("} as const;")
    return "\n".join(lines) + "\n"


def emit_markdown(schema: Schema) -> str:
    """Tables for readers."""
    lines = [
        "# The protocol between runtime and controller",
        "",
        f"{ORIGIN}",
        "",
        "Little endian. A field's writer is who may write it: `controller` before the target runs, `controller:live`",
        "also later, `runtime` under the runtime's lock or atomically, `runtime:thread` the thread that owns the slot,",
        "`both` as a state machine.",
        "",
        f"Version {schema.version}, magic `{schema.magic:#018x}`, ELF note `{schema.note_name}` type {schema.note_type}"
        f", hash `{schema.hash.hex()}`.",
        "",
        "## Limits",
        "",
        "| name | value | meaning |",
        "| --- | --- | --- |",
        *(f"| `{limit.name}` | {limit.value} | {_cell(limit.doc)} |" for limit in schema.limits),
        "",
        "## Architectures",
        "",
        "| name | ELF machine | registers | held registers besides | meaning |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| `{one.name}` | {one.machine} | {' '.join(one.registers)} "
            f"| {' '.join(one.held_registers[len(one.registers) :])} | {_cell(one.doc)} |"
            for one in schema.architectures
        ),
        "",
        "Layouts below are those of the first one.",
        "",
        "## Enums",
    ]
    for enum in schema.enums:
        lines += ["", f"### {enum.name} (`{enum.scalar}`)", "", enum.doc, "", "| value | name |", "| --- | --- |"]
        lines += [f"| {value} | `{name}` |" for name, value in enum.values]
    lines += ["", "## Structs"]
    for struct in schema.structs:
        kind = f", record `{struct.record}`" if struct.record else ""
        where = "shared memory" if struct.is_shared else "private memory of the target"
        lines += ["", f"### {struct.name}", "", f"{struct.size_bytes} bytes, {where}{kind}. {struct.doc}", ""]
        lines += ["| offset | type | name | writer | meaning |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| {field.offset} | `{field.type_text}` | `{field.name}` | {field.writer or '-'} | {_cell(field.doc)} |"
            for field in struct.fields
        ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the generated files, or check them; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m clew.protocol.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not up to date")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[3], help="the repository")
    options = parser.parse_args(arguments)
    try:
        schema = load_schema(options.root / "protocol" / "schema.toml")
    except ClewError as error:
        print(f"schema: {error.message}", file=sys.stderr)
        return error.exit_status
    stale = []
    for name, text in generated_files(schema).items():
        path: Path = options.root / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if options.check and stale:
        print(f"not up to date, run `make generate`: {', '.join(stale)}", file=sys.stderr)
        return 1
    return 0


def _python_architectures(schema: Schema) -> Iterator[str]:
    for architecture in schema.architectures:
        yield f'    "{architecture.name}": ArchitectureDefinition('
        for value in (architecture.name, architecture.doc, architecture.title):
            yield f"        {_quoted(value)},"
        yield f"        {architecture.machine},"
        yield from _python_words(architecture.registers, "        ", "")
        yield from _python_words(architecture.held_registers, "        ", "")
        yield f"        {_quoted(architecture.program_counter)},"
        yield f"        {_quoted(architecture.stack_pointer)},"
        yield "        {"
        for struct, names in architecture.own_fields.items():
            yield from _python_words(names, "            ", f"{_quoted(struct)}: ")
        yield "        },"
        yield "    ),"


def _python_words(words: tuple[str, ...], indent: str, start: str) -> list[str]:
    """A tuple of strings, wrapped as ruff does."""
    one_line = f"{indent}{start}({', '.join(map(_quoted, words))}{',' if len(words) == 1 else ''}),"
    if len(one_line) <= WIDTH:
        return [one_line]
    return [f"{indent}{start}(", *(f"{indent}    {_quoted(word)}," for word in words), f"{indent}),"]


def _quoted(text: str) -> str:
    return json.dumps(text)


def _python_dtype(struct: StructDefinition) -> Iterator[str]:
    yield f"{_upper(struct.name)}: Final[np.dtype[np.void]] = np.dtype("
    yield "    {"
    for key, values in (
        ("names", [f'"{field.name}"' for field in struct.fields]),
        ("formats", [_numpy_format(field) for field in struct.fields]),
        ("offsets", [str(field.offset) for field in struct.fields]),
    ):
        one_line = f'        "{key}": [{", ".join(values)}],'
        if len(one_line) <= WIDTH:
            yield one_line
        else:
            yield f'        "{key}": ['
            yield from (f"            {value}," for value in values)
            yield "        ],"
    yield f'        "itemsize": {struct.size_bytes},'
    yield "    }"
    yield ")"


def _numpy_format(field: Field) -> str:
    scalar = f'"<{field.scalar[0]}{int(field.scalar[1:]) // 8}"'
    return scalar if field.length is None else f"({scalar}, ({field.length},))"


def _struct_format(field: Field) -> str:
    code = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}[field.scalar]
    if field.length is None:
        return f"<{code}"
    return f"<{field.length}s" if field.scalar == "u8" else f"<{field.length}{code}"


def _field_doc(field: Field) -> str:
    return field.doc if field.writer is None else f"{field.doc} (written by: {field.writer})"


def _rust_doc(doc: str, indent: str) -> list[str]:
    # Square brackets would be links to rustdoc.
    text = re.sub(r"([\[\]])", r"\\\1", doc)
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}/// ", subsequent_indent=f"{indent}/// ")


def _python_doc(doc: str, indent: str) -> list[str]:
    text = doc.replace("\\", "\\\\")
    if len(indent) + len(text) + 6 <= WIDTH:
        return [f'{indent}"""{text}"""']
    wrapped = textwrap.wrap(text, WIDTH - len(indent) - 3)
    return [f'{indent}"""{wrapped[0]}', *(f"{indent}{line}" for line in wrapped[1:]), f'{indent}"""']


def _isort_order(names: list[str]) -> list[str]:
    """Constants, then classes, as ruff sorts them."""
    return sorted(names, key=lambda name: (0 if name.isupper() else 1, name))


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _upper(name: str) -> str:
    return _snake(name).upper()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
