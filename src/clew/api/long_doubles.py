"""Numbers of the x87 format, `long double`, which have ten bytes: as the shortest text that tells one from all others.

Runs in the controller. Pure.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

__all__ = ["LONG_DOUBLE_BITS", "long_double_text"]

LONG_DOUBLE_BITS: Final = 80

_MANTISSA_BITS: Final = 64
_BIAS: Final = 16383
_MOST_DIGITS: Final = 21
"""So many tell each of these numbers from all others."""


def long_double_text(value: int) -> str:
    """The number that 80 bits are; the bits where they are none, as processors since the 80387 have it."""
    mantissa, exponent = value & (1 << _MANTISSA_BITS) - 1, value >> _MANTISSA_BITS & 0x7FFF
    sign = "-" if value >> LONG_DOUBLE_BITS - 1 & 1 else ""
    is_normal = bool(mantissa >> _MANTISSA_BITS - 1)
    if (exponent and not is_normal) or (not exponent and is_normal):
        return f"{value & (1 << LONG_DOUBLE_BITS) - 1:#x}"
    if exponent == 0x7FFF:
        return f"{sign}inf" if mantissa == 1 << _MANTISSA_BITS - 1 else f"{sign}nan"
    if not mantissa:
        return f"{sign}0.0"
    shift = max(exponent, 1) - _BIAS - (_MANTISSA_BITS - 1)
    number = Fraction(mantissa) * Fraction(2) ** shift
    # Half of what there is between it and the next ones; a power of two is nearer to the one below.
    half = Fraction(2) ** (shift - 1)
    below = half / 2 if mantissa == 1 << _MANTISSA_BITS - 1 and exponent > 1 else half
    return sign + _shortest(number, below, half)


def _shortest(number: Fraction, below: Fraction, above: Fraction) -> str:
    """With as few digits as lead back to it."""
    ten = _exponent_of(number)
    for n_digits in range(1, _MOST_DIGITS + 1):
        unit = Fraction(10) ** (ten - n_digits + 1)
        digits = round(number / unit)
        if -below < digits * unit - number < above:
            break
    text = str(digits)
    ten += len(text) - n_digits
    text = text.rstrip("0") or "0"
    if -5 < ten < 16:
        if ten < 0:
            return f"0.{'0' * (-ten - 1)}{text}"
        padded = text.ljust(ten + 1, "0")
        return f"{padded[: ten + 1]}.{padded[ten + 1 :] or '0'}"
    return f"{text[0]}{'.' + text[1:] if text[1:] else ''}e{ten:+03d}"


def _exponent_of(number: Fraction) -> int:
    """Which power of ten its first digit is."""
    ten = (number.numerator.bit_length() - number.denominator.bit_length()) * 30103 // 100000
    while Fraction(10) ** (ten + 1) <= number:
        ten += 1
    while Fraction(10) ** ten > number:
        ten -= 1
    return ten
