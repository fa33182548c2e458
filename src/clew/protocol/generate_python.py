"""What of the schema is Python: the controller's side, with and without numpy; the path codec's tables; words.

Runs on a developer's machine. Pure.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator

from clew.protocol.generated_text import ORIGIN, WIDTH, upper_case
from clew.protocol.schema import EnumDefinition, Field, Schema, StructDefinition

__all__ = ["emit_codec", "emit_codec_layouts", "emit_constants", "emit_dtypes", "emit_words", "struct_format"]

CTYPES = {"u8": "c_uint8", "u16": "c_uint16", "u32": "c_uint32", "u64": "c_uint64"}


def emit_constants(schema: Schema) -> str:
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
        "",
    ]
    for limit in (*schema.page, *schema.limits):
        lines += [f"{limit.name.upper()}: Final = {limit.value}", *_doc(limit.doc, "")]
    lines += ["", "ARCHITECTURES: Final = {", *_architectures(schema), "}"]
    lines += _doc("The architectures by name.", "")
    lines.append("")
    lines += _enums((*schema.enums, *schema.page_enums))
    lines += [""] + [f"{upper_case(struct.name)}_BYTES: Final = {struct.size_bytes}" for struct in schema.structs]
    lines += ["", "LAYOUTS: Final[dict[str, tuple[int, dict[str, tuple[int, str]]]]] = {"]
    for struct in schema.structs:
        lines += [f'    "{struct.name}": (', f"        {struct.size_bytes},", "        {"]
        lines += [f'            "{field.name}": ({field.offset}, "{struct_format(field)}"),' for field in struct.fields]
        lines += ["        },", "    ),"]
    lines += ["}", *_doc("Of each struct: its size, and of each field its offset and `struct` format.", "")]
    return "\n".join(lines) + "\n"


def emit_dtypes(schema: Schema) -> str:
    """The controller's side with numpy: one dtype for each struct, and everything of the constants again."""
    names = ["ARCHITECTURES", "LAYOUTS", "MAGIC", "NOTE_NAME", "NOTE_TYPE", "SCHEMA_HASH", "VERSION"]
    names += [limit.name.upper() for limit in (*schema.page, *schema.limits)]
    names += [enum.name for enum in (*schema.enums, *schema.page_enums)]
    names += [f"{upper_case(struct.name)}_BYTES" for struct in schema.structs]
    dtypes = [upper_case(struct.name) for struct in schema.structs]
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
        *_all([*names, *dtypes, "RECORD_DTYPES"]),
    ]
    for struct in schema.structs:
        lines += ["", *_dtype(struct), *_doc(struct.doc, "")]
    lines += ["", "RECORD_DTYPES: Final[dict[RecordKind, np.dtype[np.void]]] = {"]
    lines += [
        f"    RecordKind.{struct.record.upper()}: {upper_case(struct.name)},"
        for struct in schema.structs
        if struct.record
    ]
    lines += ["}", *_doc("The dtype of each kind of record.", "")]
    return "\n".join(lines) + "\n"


def emit_codec(schema: Schema) -> str:
    """What the path codec and the controller share, without numpy: numbers and enums."""
    names = [limit.name.upper() for limit in schema.codec.limits] + [enum.name for enum in schema.codec.enums]
    lines = [
        f'"""{ORIGIN}',
        "",
        "Numbers and enums that the path codec and the controller share, cheap to import. The layouts are in",
        "`clew.protocol.codec_layouts`.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        "from clew.enumeration import IntEnum",
        "",
        *_all(names),
        "",
    ]
    for limit in schema.codec.limits:
        lines += [f"{limit.name.upper()}: Final = {limit.value:#x}", *_doc(limit.doc, "")]
    lines += ["", *_enums(schema.codec.enums)]
    return "\n".join(lines).rstrip() + "\n"


def emit_codec_layouts(schema: Schema) -> str:
    """What the controller hands the path codec: tables as numpy dtypes, single structs as ctypes has them."""
    structs = schema.codec.structs
    lines = [
        f'"""{ORIGIN}',
        "",
        "What the controller hands the path codec: numpy dtypes of tables, structs for calls.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "import ctypes",
        "from typing import Final",
        "",
        "import numpy as np",
        "",
        *_all([upper_case(struct.name) if struct.has_rows else struct.name for struct in structs]),
        "",
    ]
    for struct in structs:
        if struct.has_rows:
            lines += ["", *_dtype(struct, "V"), *_doc(_doc_of_rows(struct), ""), ""]
        else:
            lines += _structure(struct)
    return "\n".join(lines).rstrip() + "\n"


def emit_words(schema: Schema) -> str:
    """What traces and answers have as text: a type and a tuple of each kind."""
    types = [words.name for words in schema.words]
    lines = [
        f'"""{ORIGIN}',
        "",
        "Words of tables of traces and of answers: of each kind a type, and all of them in the order of their numbers.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final, Literal, TypeAlias",
        "",
        *_all([*types, *(f"{upper_case(name)}S" for name in types)]),
    ]
    for words in schema.words:
        plural, values = f"{upper_case(words.name)}S", [_quoted(value) for value in words.values]
        lines += ["", *_listed(f"{words.name}: TypeAlias = Literal[", values, "]"), *_doc(words.doc, "")]
        lines += _listed(f"{plural}: Final[tuple[{words.name}, ...]] = (", values, ",)" if len(values) == 1 else ")")
        lines += _doc(f"Every {words.name}, in the order of the numbers.", "")
    return "\n".join(lines) + "\n"


def _all(names: list[str]) -> list[str]:
    return ["__all__ = [", *(f'    "{name}",' for name in _isort_order(names)), "]"]


def _listed(start: str, values: list[str], end: str) -> list[str]:
    """Several values, on one line if they fit."""
    one_line = f"{start}{', '.join(values)}{end}"
    return [one_line] if len(one_line) <= WIDTH else [start, *(f"    {value}," for value in values), end]


def _enums(enums: Iterable[EnumDefinition]) -> Iterator[str]:
    for enum in enums:
        yield from ("", f"class {enum.name}(IntEnum):", *_doc(enum.doc, "    "), "")
        yield from (f"    {name.upper()} = {value}" for name, value in enum.values)
        yield ""


def _architectures(schema: Schema) -> Iterator[str]:
    for architecture in schema.architectures:
        yield f'    "{architecture.name}": ArchitectureDefinition('
        for value in (architecture.name, architecture.doc, architecture.title):
            yield f"        {_quoted(value)},"
        yield f"        {architecture.machine},"
        yield f"        {architecture.page_bytes},"
        yield from _words(architecture.registers, "        ", "")
        yield from _words(architecture.held_registers, "        ", "")
        yield f"        {_quoted(architecture.program_counter)},"
        yield f"        {_quoted(architecture.stack_pointer)},"
        yield "        {"
        for struct, names in architecture.own_fields.items():
            yield from _words(names, "            ", f"{_quoted(struct)}: ")
        yield "        },"
        yield "    ),"


def _words(words: tuple[str, ...], indent: str, start: str) -> list[str]:
    """A tuple of strings, wrapped as ruff does."""
    one_line = f"{indent}{start}({', '.join(map(_quoted, words))}{',' if len(words) == 1 else ''}),"
    if len(one_line) <= WIDTH:
        return [one_line]
    return [f"{indent}{start}(", *(f"{indent}    {_quoted(word)}," for word in words), f"{indent}),"]


def _quoted(text: str) -> str:
    return json.dumps(text)


def _dtype(struct: StructDefinition, padding: str = "") -> Iterator[str]:
    """A dtype; `padding` is the format of what is reserved, without its length, if that is to be another one."""
    yield f"{upper_case(struct.name)}: Final[np.dtype[np.void]] = np.dtype("
    yield "    {"
    fields = [*_flat_fields(struct)]
    for key, values in (
        ("names", [f'"{field.name}"' for _, field in fields]),
        ("formats", [_numpy_format(field, padding) for _, field in fields]),
        ("offsets", [str(offset) for offset, _ in fields]),
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


def _flat_fields(struct: StructDefinition, base: int = 0) -> Iterator[tuple[int, Field]]:
    """Fields with their offsets: of a struct in it, that one's."""
    for field in struct.fields:
        if field.inner is not None:
            yield from _flat_fields(field.inner, base + field.offset)
        else:
            yield base + field.offset, field


def _doc_of_rows(struct: StructDefinition) -> str:
    return f"{struct.doc} {'; '.join(f'{field.name}: {field.doc}' for _, field in _flat_fields(struct))}."


def _structure(struct: StructDefinition) -> Iterator[str]:
    """A struct as ctypes has it."""
    yield from ("", f"class {struct.name}(ctypes.Structure):", *_doc(struct.doc, "    "), "")
    for field in struct.fields:
        yield f"    {field.name}: {'int' if field.inner is None else field.inner.name}"
        yield from _doc(field.doc, "    ")
    yield "    _fields_ = ("
    yield from (f'        ("{field.name}", {_ctype(field)}),' for field in struct.fields)
    yield from ("    )", "")


def _ctype(field: Field) -> str:
    if field.inner is not None:
        return field.inner.name
    scalar = f"ctypes.{'c_void_p' if field.pointer else CTYPES[field.scalar]}"
    return scalar if field.length is None else f"{scalar} * {field.length}"


def _numpy_format(field: Field, padding: str) -> str:
    if padding and field.name == "reserved":
        return f'"{padding}{field.size_bytes}"'
    scalar = f'"<{field.scalar[0]}{int(field.scalar[1:]) // 8}"'
    return scalar if field.length is None else f"({scalar}, ({field.length},))"


def struct_format(field: Field) -> str:
    """A field as the module `struct` has it."""
    code = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}[field.scalar]
    if field.length is None:
        return f"<{code}"
    return f"<{field.length}s" if field.scalar == "u8" else f"<{field.length}{code}"


def _doc(doc: str, indent: str) -> list[str]:
    text = doc.replace("\\", "\\\\")
    if len(indent) + len(text) + 6 <= WIDTH:
        return [f'{indent}"""{text}"""']
    wrapped = textwrap.wrap(text, WIDTH - len(indent) - 3)
    return [f'{indent}"""{wrapped[0]}', *(f"{indent}{line}" for line in wrapped[1:]), f'{indent}"""']


def _isort_order(names: list[str]) -> list[str]:
    """Constants, then classes, as ruff sorts them."""
    return sorted(names, key=lambda name: (0 if name.isupper() else 1, name))
