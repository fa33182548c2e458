"""Writes what is generated from protocol/schema.toml: `python -m clew.protocol.generate [--check]`.

Runs on a developer's machine, from the repository. With --check it writes nothing and fails if a file is not up to
date. What the runtime and the controller do with the definitions is not known here.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path

from clew.errors import ClewError
from clew.protocol.generate_python import emit_codec, emit_codec_layouts, emit_constants, emit_dtypes, emit_words
from clew.protocol.generate_rust import emit_codec_rust, emit_rust
from clew.protocol.generated_text import ORIGIN, WIDTH, upper_case
from clew.protocol.schema import Schema, load_schema

__all__ = ["generated_files", "main"]

PAGE_ENUMS = ("ExitKind", "EdgeKind")


def generated_files(schema: Schema) -> dict[str, str]:
    """Text of every generated file, by its path in the repository."""
    return {
        "runtime/src/protocol.rs": emit_rust(schema),
        "pathcodec/src/protocol.rs": emit_codec_rust(schema),
        "src/clew/protocol/_constants.py": emit_constants(schema),
        "src/clew/protocol/_generated.py": emit_dtypes(schema),
        "src/clew/protocol/codec.py": emit_codec(schema),
        "src/clew/protocol/codec_layouts.py": emit_codec_layouts(schema),
        "src/clew/protocol/words.py": emit_words(schema),
        "docs/format/protocol.md": emit_markdown(schema),
        "web/src/protocol/generated.ts": emit_typescript(schema),
    }


def emit_typescript(schema: Schema) -> str:
    """The page's side: its own numbers and enums, and the enums of which tables have the words, by their numbers."""
    lines = [f"// {ORIGIN}", ""]
    for limit in schema.page:
        lines += [f"// {line}" for line in textwrap.wrap(limit.doc, WIDTH - 3)]
        value = f"{limit.value:#x}n" if limit.value >> 53 else str(limit.value)
        lines.append(f"export const {limit.name.upper()} = {value};")
    for enum in (*(enum for enum in schema.enums if enum.name in PAGE_ENUMS), *schema.page_enums):
        lines += ["", *(f"// {line}" for line in textwrap.wrap(enum.doc, WIDTH - 3))]
        lines.append(f"export const {upper_case(enum.name)} = {{")
        lines += [f"  {name}: {value}," for name, value in enum.values]
        lines.append("} as const;")
    for words in schema.words:
        if words.is_of_page:
            lines += ["", *(f"// {line}" for line in textwrap.wrap(words.doc, WIDTH - 3))]
            lines.append(f"export type {words.name} = {' | '.join(map(json.dumps, words.values))};")
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
        "| name | ELF machine | page | registers | held registers besides | meaning |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| `{one.name}` | {one.machine} | {one.page_bytes} | {' '.join(one.registers)} "
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


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
