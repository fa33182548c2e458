"""Enumerations that cost next to nothing to make: `IntEnum`, as the standard library has it.

Runs in the controller. The standard library takes ten microseconds for each member, and a recording needs two hundred.
Type checkers see the standard library's own. Not here: aliases, `auto`, members that are no plain numbers, `_missing_`.
"""

from __future__ import annotations

# Not from `typing`, which takes longer to import than this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import IntEnum
    from typing import Any

__all__ = ["IntEnum"]


class _Enumeration(type):
    """A class whose numbers became its members."""

    def __new__(cls, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> Any:
        values = {key: value for key, value in content.items() if value.__class__ is int and key[0] != "_"}
        made: Any = super().__new__(cls, name, bases, {key: content[key] for key in content if key not in values})
        made.__members__ = members = {}
        made._of_value = of_value = {}
        for key, value in values.items():
            member: Any = int.__new__(made, value)
            member.name, member.value = key, value
            members[key] = of_value[value] = member
            setattr(made, key, member)
        return made

    def __call__(cls, value: Any) -> Any:
        try:
            return cls._of_value[value]  # type: ignore[attr-defined]
        except (KeyError, TypeError):
            raise ValueError(f"{value!r} is not a valid {cls.__qualname__}") from None

    def __getitem__(cls, name: str) -> Any:
        return cls.__members__[name]  # type: ignore[attr-defined]

    def __iter__(cls) -> Iterator[Any]:
        return iter(cls.__members__.values())  # type: ignore[attr-defined]

    def __len__(cls) -> int:
        return len(cls.__members__)  # type: ignore[attr-defined]

    def __contains__(cls, value: object) -> bool:
        return value in cls._of_value  # type: ignore[attr-defined]


def _repr(self: Any) -> str:
    return f"<{self.__class__.__qualname__}.{self.name}: {self.value}>"


def _reduce(self: Any, protocol: int) -> tuple[Any, ...]:
    return self.__class__, (self.value,)


if not TYPE_CHECKING:
    IntEnum = _Enumeration(
        "IntEnum",
        (int,),
        {"__repr__": _repr, "__str__": int.__repr__, "__format__": int.__format__, "__reduce_ex__": _reduce},
    )
