"""Dataclasses that cost next to nothing to make: `dataclass`, `field` and `replace`, as the standard library has them.

Runs in the controller. The standard library writes the text of half a dozen methods for each class and compiles it:
that is half a millisecond, and a recording needs fifty classes. Here all classes share a few methods that look up the
fields. Type checkers see the standard library's own. What else that tells of classes (`asdict`, `fields`) is worked out
when somebody asks.

Not here: fields that are inherited, left out of comparisons or of the constructor, `__post_init__`, options but
`frozen`. Who needs them, or is not needed where a recording starts or ends, takes the standard library's.
"""

from __future__ import annotations

# Not from `typing`, which takes longer to import than this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass, field, replace
    from typing import Any, NoReturn

__all__ = ["dataclass", "field", "replace"]


class _Factory:
    """What `field` gives: the field's default is what `make` makes."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


class _Fields:
    """The fields of a class: their `names` in order, and `defaults` of the last of them."""

    def __init__(self, names: tuple[str, ...], defaults: dict[str, Any]) -> None:
        self.names, self.known, self.defaults = names, frozenset(names), defaults

    def bind(self, values: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """The fields' values by the arguments of the constructor. Raises TypeError where they don't fit."""
        if not values and named.keys() == self.known:
            # Who names one names nearly always all.
            return [named[name] for name in self.names]
        bound, rest = list(values), self.names[len(values) :]
        for name in rest:
            if name in named:
                bound.append(named.pop(name))
            elif name in self.defaults:
                default = self.defaults[name]
                bound.append(default.make() if default.__class__ is _Factory else default)
            else:
                raise TypeError(f"missing argument {name!r}")
        if named:
            raise TypeError(f"unexpected argument, or one given twice: {next(iter(named))!r}")
        if len(bound) > len(self.names):
            raise TypeError(f"takes {len(self.names)} arguments but {len(values)} were given")
        return bound


class _Told:
    """`__dataclass_fields__` or `__dataclass_params__`, made by the standard library when asked for."""

    def __init__(self, name: str, *, frozen: bool) -> None:
        self._name, self._frozen = name, frozen

    def __get__(self, instance: object, owner: type) -> Any:
        import dataclasses

        # The class that was decorated, of which `owner` may be a subclass.
        cls = next(one for one in owner.__mro__ if one.__dict__.get(self._name) is self)
        content = {
            name: dataclasses.field(default_factory=default.make) if default.__class__ is _Factory else default
            for name, default in cls._dataclass.defaults.items()  # type: ignore[attr-defined]
        }
        content |= {"__annotations__": cls.__annotations__, "__module__": cls.__module__}
        twin: Any = dataclasses.dataclass(frozen=self._frozen)(type(cls.__name__, (), content))
        setattr(cls, self._name, getattr(twin, self._name))
        return getattr(cls, self._name)


def _init(self: Any, /, *values: Any, **named: Any) -> None:
    own = self._dataclass
    if named or len(values) != len(own.names):
        try:
            values = own.bind(values, named)
        except TypeError as error:
            raise TypeError(f"{self.__class__.__qualname__}(): {error}") from None
    # As many as there are names: `bind` saw to it. At once, past `__setattr__`.
    self.__dict__.update(zip(own.names, values, strict=True))


def _values(instance: Any) -> tuple[Any, ...]:
    return tuple([getattr(instance, name) for name in instance._dataclass.names])


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    fields = zip(self._dataclass.names, _values(self), strict=True)
    return f"{self.__class__.__qualname__}({', '.join(f'{name}={value!r}' for name, value in fields)})"


def _refuse(self: Any, name: str, value: object = None) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot change field {name!r}")


_SHARED = {"__init__": _init, "__eq__": _eq, "__hash__": None, "__repr__": _repr}
_FROZEN = {"__hash__": _hash, "__setattr__": _refuse, "__delattr__": _refuse}


def _make(cls: type, *, frozen: bool) -> type:
    content = cls.__dict__
    names = tuple(cls.__annotations__)
    defaults = {name: content[name] for name in names if name in content}
    for name, default in defaults.items():
        if default.__class__ is _Factory:
            delattr(cls, name)
    for name, method in (_SHARED | _FROZEN if frozen else _SHARED).items():
        if name not in content:
            setattr(cls, name, method)
    told = {name: _Told(name, frozen=frozen) for name in ("__dataclass_fields__", "__dataclass_params__")}
    for name, value in ({"_dataclass": _Fields(names, defaults), "__match_args__": names} | told).items():
        setattr(cls, name, value)
    return cls


if not TYPE_CHECKING:

    def dataclass(cls=None, /, *, frozen=False):
        """As `dataclasses.dataclass`."""
        return _make(cls, frozen=frozen) if cls is not None else lambda cls: _make(cls, frozen=frozen)

    def field(*, default_factory):
        """As `dataclasses.field`."""
        return _Factory(default_factory)

    def replace(instance, /, **changes):
        """As `dataclasses.replace`."""
        own, fields = instance.__dict__, instance._dataclass
        unknown = changes.keys() - fields.known
        if unknown:
            raise TypeError(f"unexpected argument: {min(unknown)!r}")
        new = object.__new__(instance.__class__)
        new.__dict__.update({name: own[name] for name in fields.names} | changes)
        return new
