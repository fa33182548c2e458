"""Makes the structures of clew's own description files out of captured layouts and of what was written by hand.

Runs on a developer's machine, and in tests. Pure.

By hand (`sources/structs.json`) is said which members are told, in which order, and how: `NAME WORD`, where the word is
a raw type or a table of flags, a minus in front for what is a detail; or an object with keys of a member, where `As`
has the word and `At` the path in the layout, if that is another than the name. `Plain` is a single value of a C type.
Members that are `Bits` say themselves where they are.
In conditions `As` is the beginning of the names of a table that are meant, as `SI` of those of signal_codes.
"""

from __future__ import annotations

from typing import Any, Final

from clew.api.generate.sources import Layout, LayoutMember, Sources
from clew.api.vocabulary import INLINE, POINTERS, RAW_TYPES

__all__ = ["StructError", "structs_content"]

SCHEMA: Final = "schema.json"
_PLAIN_BYTES: Final = {
    "signed char": 1,
    "unsigned char": 1,
    "short": 2,
    "float": 4,
    "double": 8,
    "long double": 16,
    "int": 4,
    "unsigned int": 4,
    "unsigned short": 2,
    "long": 8,
    "unsigned long": 8,
    "void *": 8,
    "char *": 8,
}
_CONDITION_TABLES: Final = {"SI": "signal_codes"}
_BY_NAME: Final = ("fd", "pid", "uid", "gid")


class StructError(ValueError):
    """A structure has not what was written of it."""


def structs_content(sources: Sources) -> dict[str, Any]:
    """The file of structures. Raises StructError."""
    kinds = {name: table["kind"] for name, table in sources.flag_tables.items()}
    structs = {}
    for name, said in sources.structs.items():
        if "Plain" in said:
            structs[name] = _plain(said, kinds)
            continue
        layout = sources.layouts.get(said.get("Layout", name))
        if layout is None:
            raise StructError(f"{name}: there is no layout")
        members = [_member(name, one, layout, sources, kinds) for one in said["Members"]]
        rest = {key: value for key, value in said.items() if key not in ("Layout", "Members")}
        structs[name] = {"Size": layout.size, **rest, "Members": members}
    return {"$schema": SCHEMA, "Structs": structs}


def _plain(said: dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    c_type = said["Plain"]
    size = _PLAIN_BYTES[c_type]
    member = {"Name": "value", "Offset": 0, "Size": size, "CType": c_type} | _own_keys(said["As"], kinds)
    return {"Size": size, "Plain": True, "Members": [member]}


def _own_keys(word: str | dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    """What a word says of a member: its raw type, or its table."""
    if isinstance(word, dict):
        return word
    if word in RAW_TYPES:
        return {"RawType": word}
    if word not in kinds:
        raise StructError(f"{word} is neither a raw type nor a table")
    return {"RawType": kinds[word], "Flags": word}


def _member(
    struct: str, said: str | dict[str, Any], layout: Layout, sources: Sources, kinds: dict[str, str]
) -> dict[str, Any]:
    if isinstance(said, str):
        name, _, word = said.removeprefix("-").partition(" ")
        own: dict[str, Any] = _own_keys(word or (name if name in _BY_NAME else "int"), kinds)
        if said.startswith("-"):
            own = own | {"Detail": True}
        path = name
    else:
        own = {key: value for key, value in said.items() if key not in ("Name", "As", "At", "If")}
        own = (_own_keys(said["As"], kinds) if "As" in said else {}) | own
        name, path = said["Name"], said.get("At", said["Name"])
        if "If" in said:
            own["If"] = [_condition(one, sources) for one in said["If"]]
    found = layout.members.get(path)
    if "Bits" in own:
        # Layouts have none of these.
        return {"Name": name} | own
    if found is None:
        raise StructError(f"{struct}: there is no member {path}")
    if _leads(found, own["RawType"]):
        own["Leads"] = True
    return {"Name": name, "Offset": found.offset, "Size": found.size, "CType": found.c_type} | own


def _leads(member: LayoutMember, raw_type: str) -> bool:
    is_address = "*" in member.c_type and not member.c_type.endswith("]")
    return is_address and raw_type in POINTERS and raw_type in INLINE


def _condition(said: dict[str, Any], sources: Sources) -> dict[str, Any]:
    if "As" not in said:
        return said
    rest = {key: value for key, value in said.items() if key != "As"}
    names = sources.flag_values[_CONDITION_TABLES[said["As"]]]
    return rest | {"Values": [value for _, value in names]}
