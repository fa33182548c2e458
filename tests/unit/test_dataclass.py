"""Dataclasses that cost nothing to make behave as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from clew import dataclass as lean


@lean.dataclass(frozen=True)
class Pair:
    first: int
    second: int = 2


@lean.dataclass
class Bag:
    content: list[int] = lean.field(default_factory=list)
    name: str = "bag"

    def __repr__(self) -> str:
        return "a bag"


def _make(library: Any, *, frozen: bool) -> Any:
    @library.dataclass(frozen=frozen)
    class Point:
        x: int
        y: Any = 2
        names: list[str] = library.field(default_factory=list)

    return Point


def _outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except (TypeError, AttributeError) as error:
        return AttributeError if isinstance(error, AttributeError) else TypeError


def _ask(library: Any, *, frozen: bool) -> dict[str, Any]:
    """What a class of `library` does, by what is done."""
    point = _make(library, frozen=frozen)
    one, same, other = point(1), point(1, 2), point(1, y=3)

    def change() -> Any:
        one.x = 7
        return one.x

    def remove() -> Any:
        del one.x
        return _outcome(lambda: one.x)

    match other:
        case point(x, y, names):
            matched: Any = x, y, names
        case _:
            matched = None
    return {
        "repr": repr(one).rpartition(".")[2],
        "values": (one.x, one.y, one.names, other.y),
        "no list is shared": one.names is not same.names,
        "equal": (one == same, one == other, one != other, one == (1, 2, [])),
        "hash": _outcome(lambda: hash(point(1, 2, ())) == hash((1, 2, ()))),
        "missing": _outcome(point),
        "too many": _outcome(lambda: point(1, 2, [], 4)),
        "twice": _outcome(lambda: point(1, x=1)),
        "unknown": _outcome(lambda: point(1, z=1)),
        "named": vars(point(names=["a"], x=1)),
        "replaced": vars(library.replace(other, x=5, names=["b"])),
        "replaced by the standard library": vars(dataclasses.replace(other, x=5)),
        "replaced, unknown": _outcome(lambda: library.replace(other, z=5)),
        "as dict": dataclasses.asdict(other),
        "fields": [(field.name, field.type) for field in dataclasses.fields(point)],
        "is one": (dataclasses.is_dataclass(point), dataclasses.is_dataclass(one)),
        "copied": copy.deepcopy(one) == one,
        "matched": matched,
        "class attributes": (point.y, hasattr(point, "names")),
        "change": _outcome(change),
        "remove": _outcome(remove),
    }


@pytest.mark.parametrize("frozen", [False, True])
def test_it_does_what_the_standard_library_does(frozen: bool) -> None:
    assert _ask(lean, frozen=frozen) == _ask(dataclasses, frozen=frozen)


def test_frozen_refuses_with_the_standard_librarys_error() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Pair(1).first = 2  # type: ignore[misc]


def test_own_methods_stay() -> None:
    assert repr(Bag()) == "a bag"
    assert Bag() == Bag([], "bag")


def test_a_subclass_is_another_class_with_the_same_fields() -> None:
    class Sub(Pair):
        pass

    assert Sub(1) == Sub(1, 2)
    assert Sub(1) != Pair(1)
    assert dataclasses.asdict(Sub(1)) == {"first": 1, "second": 2}


def test_instances_can_be_sent() -> None:
    assert pickle.loads(pickle.dumps(Pair(3, 4))) == Pair(3, 4)


def test_errors_name_class_and_argument() -> None:
    with pytest.raises(TypeError, match=r"Pair\(\): missing argument 'first'"):
        Pair()  # type: ignore[call-arg]


def test_making_one_does_not_import_the_standard_librarys() -> None:
    program = "import sys, clew.dataclass as d; d.dataclass(type('A', (), {})); sys.exit('dataclasses' in sys.modules)"
    assert subprocess.run([sys.executable, "-I", "-c", program], check=False, timeout=60).returncode == 0
