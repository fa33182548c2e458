"""Words of the runtime become tags (mode region), wherever they are cut, and whatever they say."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.protocol._generated import REGION_KIND_SHIFT, RegionWord
from clew.recording.assembly.region import tags as tags_module
from clew.recording.assembly.region.tags import NOT_THERE, TAG_KINDS, TagDecoder

START_PC = np.arange(8, dtype=np.uint64) * np.uint64(16) + np.uint64(0x1000)

Said = tuple[RegionWord, int, list[int]]


def streams(said: list[Said]) -> tuple[np.ndarray, np.ndarray]:
    words = [kind << REGION_KIND_SHIFT | value for kind, value, _ in said]
    return np.array(words, np.uint32), np.array([one for *_, numbers in said for one in numbers], np.uint64)


def rows(words: np.ndarray, numbers: np.ndarray, cuts: tuple[tuple[int, int], ...] = ()) -> list[tuple[int, ...]]:
    """The tags of what comes in pieces, which end at `cuts`: so many words, and so many numbers."""
    found = []
    decoder = TagDecoder(START_PC)
    first_word = first_number = 0
    for n_words, n_numbers in [*cuts, (len(words), len(numbers))]:
        for tags in decoder.take(words[first_word:n_words], numbers[first_number:n_numbers]):
            found += list(zip(*(column.tolist() for column in astuple(tags)), strict=True))
        first_word, first_number = n_words, n_numbers
    for tags in decoder.finish(is_end=True):
        found += list(zip(*(column.tolist() for column in astuple(tags)), strict=True))
    return found


def kind(word: RegionWord) -> int:
    return TAG_KINDS.index(word)


def test_a_busy_stretch() -> None:
    n = NOT_THERE
    said: list[Said] = [
        (RegionWord.EXECUTED, 1, []),
        (RegionWord.EXECUTED, 2, []),
        (RegionWord.BECAME_BUSY, 1, [50, 7]),
        (RegionWord.COUNTS, 1, [10]),
        (RegionWord.COUNTS_TARGET, 0, [0x1020, 6]),
        (RegionWord.COUNTS_TARGET, 0, [0x1030, 3]),
        (RegionWord.LEFT_BUSY, 0, [60]),
        (RegionWord.EXECUTED, 3, []),
        (RegionWord.SYSCALL, 0, [70, 39]),
        (RegionWord.SIGNAL, 10, [80, 0x1040]),
        (RegionWord.END, 0, [90, 0]),
    ]
    assert rows(*streams(said)) == [
        (0, kind(RegionWord.EXECUTED), 1, 2, n, n, n, n),
        (1, kind(RegionWord.EXECUTED), 2, 1, n, n, n, n),
        (2, kind(RegionWord.BECAME_BUSY), 1, n, n, n, n, 50),
        (3, kind(RegionWord.COUNTS), 1, n, n, 1, n, n),
        (3, kind(RegionWord.COUNTS), 1, n, 0x1020, 6, n, n),
        (3, kind(RegionWord.COUNTS), 1, n, 0x1030, 3, n, n),
        (4, kind(RegionWord.LEFT_BUSY), n, n, n, n, n, 60),
        (5, kind(RegionWord.EXECUTED), 3, n, 0x1040, n, n, n),
        (6, kind(RegionWord.SYSCALL), n, n, n, n, 39, 70),
        (7, kind(RegionWord.SIGNAL), n, n, n, n, 10, 80),
    ]


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_what_a_thread_is_busy_with(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks whose counts it did not come to write, with their executions before."""
    monkeypatch.setattr(tags_module, "_WORDS_AT_ONCE", at_once)
    said: list[Said] = [
        (RegionWord.BECAME_BUSY, 1, [50, 7]),
        (RegionWord.COUNTS, 1, [10]),
        (RegionWord.LEFT_BUSY, 0, [60]),
        (RegionWord.BECAME_BUSY, 3, [70, 8]),
        (RegionWord.BECAME_BUSY, 1, [80, 19]),
        (RegionWord.BECAME_BUSY, 2, [90, 4]),
        (RegionWord.COUNTS, 3, [10]),
        (RegionWord.COUNTS_TARGET, 0, [0x1020, 6]),
    ]
    for is_end, busy in ((True, {1: 19, 2: 4}), (False, {})):
        decoder = TagDecoder(START_PC)
        list(decoder.take(*streams(said)))
        list(decoder.finish(is_end=is_end))
        assert list(decoder.busy.items()) == list(busy.items())


def test_what_did_not_run_is_no_tag() -> None:
    said: list[Said] = [
        (RegionWord.EXECUTED, 1, []),
        (RegionWord.STOPPED, 0, [0x1010]),
        (RegionWord.FAULT, 11, [5, 0x1010]),
        (RegionWord.EXECUTED, 2, []),
        (RegionWord.STOPPED, 0, [0x1024]),
    ]
    assert [row[:4] for row in rows(*streams(said))] == [
        (0, kind(RegionWord.FAULT), NOT_THERE, NOT_THERE),
        (1, kind(RegionWord.EXECUTED), 2, NOT_THERE),
    ]


SAID = st.lists(
    st.sampled_from([word for word in RegionWord if word != RegionWord.COUNTS_TARGET]).flatmap(
        lambda word: st.tuples(
            st.just(word),
            st.integers(0, 9),
            st.lists(
                st.integers(0, 1 << 40),
                min_size=tags_module._N_NUMBERS[word],
                max_size=tags_module._N_NUMBERS[word],
            ),
        )
    ),
    max_size=60,
)


@given(SAID, st.integers(1, 7))
def test_it_does_not_matter_where_words_are_cut(said: list[Said], at_once: int) -> None:
    words, numbers = streams(said)
    whole = rows(words, numbers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tags_module, "_WORDS_AT_ONCE", at_once)
        assert rows(words, numbers) == whole


@given(SAID, st.lists(st.tuples(st.integers(0, 70), st.integers(0, 150)), max_size=4), st.integers(1, 7))
def test_it_does_not_matter_in_which_pieces_they_come(
    said: list[Said], cuts: list[tuple[int, int]], at_once: int
) -> None:
    words, numbers = streams(said)
    n_words, n_numbers = sorted(cut[0] for cut in cuts), sorted(cut[1] for cut in cuts)
    with pytest.MonkeyPatch.context() as patch:
        whole = rows(words, numbers)
        patch.setattr(tags_module, "_WORDS_AT_ONCE", at_once)
        patch.setattr(tags_module, "_WORDS_AHEAD", 64)
        assert rows(words, numbers, tuple(zip(n_words, n_numbers, strict=True))) == whole


def test_words_whose_numbers_never_come_do_not_wait_for_ever() -> None:
    decoder = TagDecoder(START_PC)
    words = np.full(1 << 18, RegionWord.LEFT_BUSY << REGION_KIND_SHIFT, np.uint32)
    nothing = np.zeros(0, np.uint64)
    for _ in range(8):
        assert list(decoder.take(words, nothing)) == []
    assert len(decoder._words) <= tags_module._MOST_WORDS_WAITING + len(words)
    assert list(decoder.finish(is_end=True)) == []


@given(st.lists(st.integers(0, (1 << 32) - 1), max_size=40), st.lists(st.integers(0, (1 << 64) - 1), max_size=40))
def test_any_words_are_read(words: list[int], numbers: list[int]) -> None:
    found = rows(np.array(words, np.uint32), np.array(numbers, np.uint64))
    assert [row[0] for row in found] == sorted(row[0] for row in found)
