"""Holds the structures of a description file against the rules: what is wrong, where, and why.

Runs in the controller. Pure functions of JSON values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.api import shapes
from clew.api.checking_values import Found, Tables, check_flag_name, check_object, is_a, items_of, number_of, told
from clew.api.vocabulary import INLINE, POINTERS

__all__ = ["check_structs"]


def check_structs(described: Mapping[str, Any], tables: Tables, known: frozenset[str]) -> Found:
    """What is wrong with the structures of a file, which may name those that are `known`."""
    for name, struct in described.items():
        path = f"Structs.{name}"
        yield from check_object(path, struct, shapes.STRUCT)
        if isinstance(struct, dict):
            yield from _struct(path, struct, tables, known)
            if _is_within(name, described, {name}):
                yield path, "is a part of itself"


def _struct(path: str, struct: dict[str, Any], tables: Tables, known: frozenset[str]) -> Found:
    members: dict[str, list[Any]] = {}
    for _, member in items_of(path, struct, "Members"):
        if isinstance(member, dict) and isinstance(member.get("Name"), str):
            members.setdefault(member["Name"], []).append(member)
    size = number_of(struct.get("Size"))
    for place, member in items_of(path, struct, "Members"):
        yield from check_object(place, member, shapes.MEMBER)
        if isinstance(member, dict):
            # Of what says itself how long it is the end is not known.
            yield from _place(place, member, None if "Length" in struct else size)
            yield from _references(place, member, members, tables, known)
    length = struct.get("Length")
    if isinstance(length, str) and length and length not in members:
        yield f"{path}.Length", f"there is no member {told(length)}"
    if struct.get("Plain") is True and isinstance(struct.get("Members"), list) and len(struct["Members"]) != 1:
        yield f"{path}.Members", "of a plain one there is exactly one"


def _place(path: str, member: dict[str, Any], size: int | None) -> Found:
    offset, own, raw_type = number_of(member.get("Offset")), number_of(member.get("Size")), member.get("RawType")
    leads = member.get("Leads") is True
    if offset is not None and own is not None and size is not None and offset >= 0 and offset + own > size:
        yield path, f"ends at {offset + own}, behind the structure's {size} bytes"
    if not isinstance(raw_type, str):
        return
    is_number = leads or raw_type not in INLINE
    if leads and raw_type not in POINTERS:
        yield f"{path}.Leads", f"what has the raw type {raw_type} leads to nothing"
    if "Bits" in member:
        bits = member["Bits"]
        is_pair = isinstance(bits, list) and len(bits) == 2 and all(is_a(one, int) for one in bits)
        if isinstance(bits, list) and not (is_pair and bits[0] >= 0 and bits[1] > 0):
            yield f"{path}.Bits", "are not the first bit, and how many there are"
        elif is_pair and (not is_number or leads or sum(bits) > 8 * (own or 0)):
            yield f"{path}.Bits", "are not all in the number"
    if is_number and own is not None and own not in (1, 2, 4, 8, 16):
        yield f"{path}.Size", f"{own} bytes are no number"


def _references(
    path: str, member: dict[str, Any], members: Mapping[str, list[Any]], tables: Tables, known: frozenset[str]
) -> Found:
    """What is wrong with what a member names: a table, a structure, other members."""
    table, struct, raw_type = member.get("Flags"), member.get("Struct"), member.get("RawType")
    if isinstance(table, str) and table and table not in tables:
        yield f"{path}.Flags", f"there is no table of flags {told(table)}"
    if isinstance(struct, str) and struct:
        if struct not in known:
            yield f"{path}.Struct", f"there is no structure {told(struct)}"
        if raw_type != "struct":
            yield f"{path}.Struct", "is of use beside the raw type struct only"
    elif raw_type == "struct":
        yield path, "Struct is missing"
    for name in ("Count", "Bytes", "Total"):
        other = member.get(name)
        if isinstance(other, str) and other and other not in members:
            yield f"{path}.{name}", f"there is no member {told(other)}"
    for name in ("Count", "Elements", "Many"):
        if name in member and "Struct" not in member:
            yield f"{path}.{name}", "is of use beside Struct only"
    for place, condition in items_of(path, member, "If"):
        yield from check_object(place, condition, shapes.MEMBER_CONDITION)
        asked = condition.get("Member") if isinstance(condition, dict) else None
        if not isinstance(asked, str) or not asked:
            continue
        if asked not in members:
            yield f"{place}.Member", f"there is no member {told(asked)}"
        for inner, value in items_of(place, condition, "Values"):
            if not is_a(value, int):
                # A member may be told in several ways: in one of them it has that name.
                found = [list(check_flag_name(inner, value, one, tables)) for one in members.get(asked, ())]
                yield from min(found, key=len, default=())


def _is_within(name: str, described: Mapping[str, Any], above: set[str]) -> bool:
    """Whether one of the structures `above` is, at any depth, a part of `name`."""
    inner = {
        str(member["Struct"])
        for _, member in items_of("", described.get(name), "Members")
        if isinstance(member, dict) and member.get("Leads") is not True and isinstance(member.get("Struct"), str)
    }
    return any(one in above or _is_within(one, described, above | {one}) for one in inner if one in described)
