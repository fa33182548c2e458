"""How what is generated from the schema is written: its first line, its width, names in the ways of each language.

Runs on a developer's machine. Pure.
"""

from __future__ import annotations

import re

__all__ = ["ORIGIN", "WIDTH", "snake_case", "upper_case"]

ORIGIN = "Generated from protocol/schema.toml by `make generate`; do not edit."
WIDTH = 120


def snake_case(name: str) -> str:
    """`ThreadSlot` as `thread_slot`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def upper_case(name: str) -> str:
    """`ThreadSlot` as `THREAD_SLOT`."""
    return snake_case(name).upper()
