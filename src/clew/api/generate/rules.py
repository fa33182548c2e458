"""What a C type and the name of an argument say of a system call's: its raw type, and which way it goes.

Runs on a developer's machine. Rules for all calls alike; what holds for single calls is in `sources/hints.json`. Those
that hold for libraries too are in `clew.api.c_types`.
"""

from __future__ import annotations

from typing import Any

from clew.api.c_types import ENTITIES, count_of, raw_type_of
from clew.api.generate.sources import Argument

__all__ = ["describe_argument"]


def describe_argument(arguments: list[Argument], index: int) -> dict[str, Any]:
    """A parameter as a description file has it, as far as the rules say something of it."""
    argument = arguments[index]
    raw_type = raw_type_of(argument.c_type, argument.name)
    described: dict[str, Any] = {"Index": index, "Name": argument.name, "CType": argument.c_type, "RawType": raw_type}
    kind, entity = ENTITIES.get(raw_type, ("Info", None))
    if kind != "Info":
        described["Type"] = kind
    if entity:
        described["EntityType"] = entity
    # What the kernel may change, it mostly fills.
    if "*" in argument.c_type and "const" not in argument.c_type:
        described["Direction"] = "out"
    return described | count_of([(one.c_type, one.name) for one in arguments], index, raw_type)
