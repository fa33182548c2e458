"""Where a jump can lead whose distance has bytes that are not free."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.probing.x86_64.jump_bytes import ANY, JUMP_SIZE, TRAPS, JumpBytes, iter_trampolines

ADDRESS = 0x7F00_0000_1234
BYTES = st.one_of(st.just(ANY), st.just(TRAPS), st.integers(0, 255).map(lambda byte: (byte,)))
ALLOWED = st.tuples(BYTES, BYTES, BYTES, BYTES)
HALF = 1 << 31


@given(
    st.tuples(BYTES, BYTES, BYTES, BYTES), st.integers(-HALF, HALF - 1), st.integers(1, 1 << 33), st.integers(1, 300)
)
def test_what_is_found_fits(allowed: tuple[tuple[int, ...], ...], distance: int, length: int, size_bytes: int) -> None:
    jump = JumpBytes(ADDRESS, allowed)
    free = (ADDRESS + distance, ADDRESS + distance + length)
    for found in islice(iter_trampolines(jump, [free], size_bytes), 200):
        for place in (found.start, found.stop - 1):
            assert free[0] <= place <= free[1] - size_bytes
            code = jump.encode(place)
            assert code[0] == 0xE9
            assert ADDRESS + JUMP_SIZE + int.from_bytes(code[1:], "little", signed=True) == place
            assert all(not values or byte in values for byte, values in zip(code[1:], allowed, strict=True))


@given(ALLOWED, st.integers(-HALF, HALF - 1), st.integers(0, 255))
def test_all_that_fits_is_found(allowed: tuple[tuple[int, ...], ...], distance: int, spread: int) -> None:
    jump = JumpBytes(ADDRESS, allowed)
    start = ADDRESS + JUMP_SIZE + distance
    found = [place for places in iter_trampolines(jump, [(start, start + spread + 1)], 1) for place in places]
    assert sorted(found) == [place for place in range(start, start + spread + 1) if jump.fits(place)]
    assert len(found) == len(set(found))


@given(ALLOWED, st.integers(0, (1 << 32) - 1))
def test_number_of_choices(allowed: tuple[tuple[int, ...], ...], fill: int) -> None:
    # One that fits by construction is found when it alone is free.
    picks = fill.to_bytes(4, "little")
    chosen = bytes(values[pick % len(values)] if values else pick for values, pick in zip(allowed, picks, strict=True))
    place = ADDRESS + JUMP_SIZE + int.from_bytes(chosen, "little", signed=True)
    jump = JumpBytes(ADDRESS, allowed)
    assert jump.fits(place) and jump.encode(place)[1:] == chosen
    assert [list(found) for found in iter_trampolines(jump, [(place, place + 7)], 7)] == [[place]]


def test_traps_by_int3_come_first() -> None:
    jump = JumpBytes(ADDRESS, (ANY, TRAPS, ANY, TRAPS))
    first = next(iter_trampolines(jump, [(ADDRESS - HALF, ADDRESS + HALF)], 64))
    code = jump.encode(first.start)
    assert (code[2], code[4]) == (0xCC, 0xCC)


@pytest.mark.parametrize("seed", range(200))
def test_next_fit_is_the_lowest_that_fits(seed: int) -> None:
    """As many addresses as two bytes of the distance have are tried one by one."""
    chosen = random.Random(seed)
    allowed = tuple(chosen.choice((ANY, TRAPS, (chosen.randrange(256),))) for _ in range(2))
    high = chosen.randrange(-(1 << 15), 1 << 15) % (1 << 16)
    jump = JumpBytes(ADDRESS, (*allowed, (high & 0xFF,), (high >> 8,)))
    first = ADDRESS + JUMP_SIZE + ((high ^ 0x8000) << 16) - HALF
    start = first + chosen.randrange(-100, (1 << 16) + 100)
    fitting = next((place for place in range(max(start, first), first + (1 << 16)) if jump.fits(place)), None)
    assert jump.next_fit(start) == fitting
