"""Enumerations are as the standard library's."""

from __future__ import annotations

import copy
import enum
import json
import pickle
from typing import Any

import numpy as np
import pytest

from clew.enumeration import IntEnum


class Metal(IntEnum):
    """What is dug."""

    IRON = 0
    TIN = 3
    _HIDDEN = "no member"

    @property
    def is_soft(self) -> bool:
        return self is Metal.TIN


class Standard(enum.IntEnum):
    IRON = 0
    TIN = 3


def test_it_is_not_the_standard_library_s() -> None:
    assert not isinstance(Metal, enum.EnumMeta)


@pytest.mark.parametrize("kind", [Metal, Standard])
def test_members_are_numbers_with_names(kind: Any) -> None:
    tin = kind.TIN
    assert [(member.name, member.value) for member in kind] == [("IRON", 0), ("TIN", 3)]
    assert tin == 3 and tin > kind.IRON and hash(tin) == hash(3) and not kind.IRON
    assert kind(3) is kind["TIN"] is kind(np.uint8(3)) is tin and isinstance(tin, int)
    assert len(kind) == 2 and max(kind) is tin and sorted(kind)[0] is kind.IRON and tin in kind
    assert (str(tin), f"{tin:02}", repr(tin)) == ("3", "03", f"<{kind.__name__}.TIN: 3>")
    assert json.dumps({"metal": tin}) == '{"metal": 3}' and np.array([tin]).dtype == np.int64
    assert copy.deepcopy([tin])[0] is tin and pickle.loads(pickle.dumps(tin)) is tin
    assert list(kind.__members__) == ["IRON", "TIN"] and (tin | 4, type(tin + 1)) == (7, int)
    match tin:
        case kind.IRON:
            raise AssertionError
        case kind.TIN:
            pass


@pytest.mark.parametrize("kind", [Metal, Standard])
@pytest.mark.parametrize("value", [1, "TIN", None, [3]])
def test_what_is_no_member_is_refused(kind: Any, value: object) -> None:
    with pytest.raises(ValueError, match="is not a valid"):
        kind(value)
    with pytest.raises(KeyError):
        kind["tin"]


def test_classes_keep_what_else_they_have() -> None:
    assert Metal.__doc__ == "What is dug." and Metal.TIN.is_soft and not Metal.IRON.is_soft
