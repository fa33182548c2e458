"""Numbers of x87's are told as the shortest text that leads back to them; numpy's own is the oracle."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.api.long_doubles import LONG_DOUBLE_BITS, long_double_text

_LEADING_ONE = 1 << 63


def _bits(value: np.longdouble) -> int:
    return int.from_bytes(np.array([value]).tobytes()[: LONG_DOUBLE_BITS // 8], "little")


def _number(bits: int) -> np.longdouble:
    return np.longdouble(np.frombuffer(bits.to_bytes(16, "little"), np.longdouble)[0])


def _digits(text: str) -> int:
    mantissa = re.sub(r"e.*|[-.]", "", text).lstrip("0")
    return len(mantissa.rstrip("0")) if "e" not in text else len(mantissa)


@settings(max_examples=50)
@given(st.integers(0, _LEADING_ONE - 1), st.integers(1, 0x7FFE), st.booleans())
def test_the_shortest_text_that_leads_back(fraction: int, exponent: int, is_negative: bool) -> None:
    bits = is_negative << 79 | exponent << 64 | _LEADING_ONE | fraction
    told = long_double_text(bits)
    number = _number(bits)
    assert np.longdouble(told) == number
    assert _digits(told) == _digits(np.format_float_scientific(number, unique=True, trim="-"))


@pytest.mark.filterwarnings("ignore:overflow")
@settings(max_examples=20)
@given(st.integers(1, _LEADING_ONE - 1))
def test_numbers_without_a_leading_one(mantissa: int) -> None:
    assert np.longdouble(long_double_text(mantissa)) == _number(mantissa)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("0", "0.0"),
        ("-0", "-0.0"),
        ("1", "1.0"),
        ("-1.5", "-1.5"),
        ("100", "100.0"),
        ("0.1", "0.1"),
        ("1e15", "1000000000000000.0"),
        ("1e16", "1e+16"),
        ("1.25e-7", "1.25e-07"),
        ("0.0001", "0.0001"),
        ("1e4932", "1e+4932"),
        ("inf", "inf"),
        ("-inf", "-inf"),
        ("nan", "nan"),
    ],
)
def test_forms(value: str, told: str) -> None:
    assert long_double_text(_bits(np.longdouble(value))) == told


def test_a_double_is_told_by_what_it_is_here() -> None:
    assert long_double_text(_bits(np.longdouble(0.1))) == "0.10000000000000000555"


@pytest.mark.parametrize("bits", [1 << 64, 0x3FFF << 64 | 5, 0x7FFF << 64, _LEADING_ONE])
def test_what_is_no_number_is_told_in_hexadecimal(bits: int) -> None:
    assert long_double_text(bits) == f"{bits:#x}"
