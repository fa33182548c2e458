"""Whatever is asked for, in whatever words: an answer, or whose fault it is; never a failure, and never too much."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.server.answers import ANSWERS
from tests.unit.server.asking import Answer, ask_well

if TYPE_CHECKING:
    from starlette.applications import Starlette

MOST_BYTES: Final = 64 << 20
MOST_SECONDS: Final = 10.0
ROUTES: Final = ("/api/traces", *(f"/api/traces/{{trace:index}}{path}" for path in ANSWERS))

_COMPARED: Final = "compared/{other:index}/{other_process:index}"

# The words that each answer knows, and what each may be so that what is asked is answered.
KNOWN: Final = {
    "": "",
    "functions": "",
    "blocks": "functions=0-1",
    "counts": "threads=all blocks=1 owners=1",
    "functions/{function:index}": "threads=all",
    "functions/{function:index}/lines": "",
    "listing-index": "",
    "listing": "start=0 count=5 threads=all",
    "listing/lines": "start=0 count=5",
    "references": "block=1 threads=all",
    "thread-functions": "",
    "search": "by=text query=mov limit=10",
    "timeline": "from=0 to=1000000 bins=100 threads=all",
    "events": "from=0 to=1000000",
    "calls": "offset=3 count=5 sort=name descending=1 name=read text=a threads=all kind=system_call failed=1 from=0"
    " to=900000000 entity=5 call=1",
    "calls/summary": "text=o threads=all kind=library failed=0 from=0 to=900000000 entity=5 name=read",
    "calls/chart": "by=thread bins=7 series=3 text=o threads=all from=0 to=900000000",
    "calls/places": "name=read text=a threads=all",
    "calls/tree": "by=name parent=0 sort=total descending=1 offset=0 count=5 text=o threads=all thread=1",
    "calls/lanes": "from=0 to=900000000 bins=100 threads=all text=o",
    "calls/{call:index}": "",
    "entities": "offset=0 count=5 sort=bytes kind=file text=a own=1",
    "entities/{entity:index}": "",
    "touches": "limit=5 own=1",
    "table": "of=edges as=csv function=1 text=m hide_stubs=1 hide_images=0 threads=all",
    "calls-near": "position=30 count=5",
    "next-call": "position=30 back=1",
    "replay": "position=30",
    "seek": "position=30 what=syscall back=1 block=1 step=-3 time=5000",
    "path": "start=30 count=5",
    "frames": "start=30 stride=3 frames=4",
    # Of all processes.
    "/calls": "offset=3 count=5 sort=process descending=1 text=a failed=1 from=0 entity=5 call=1 process=0",
    "/calls/summary": "text=o kind=library failed=0 from=0 to=900000000 entity=5 name=read",
    "/calls/chart": "by=process bins=7 series=3 text=o from=0 to=900000000",
    "/calls/tree": "by=name text=o entity=5",
    "/entities": "offset=0 count=5 sort=bytes kind=file text=a",
    "/entities/{entity:index}": "",
    "/table": "of=calls as=csv sort=process text=m",
    f"{_COMPARED}": "",
    f"{_COMPARED}/functions": "",
    f"{_COMPARED}/blocks": "",
    f"{_COMPARED}/comparison": "",
    f"{_COMPARED}/functions/{{function:index}}": "",
    f"{_COMPARED}/order": "partings=3",
}
_BORDERS: Final = [0, 1, 100, 1 << 14, 1 << 31, 1 << 53, 1 << 62, 1 << 63, 1 << 64, 10**400]
NUMBERS: Final = st.sampled_from(_BORDERS).flatmap(lambda n: st.sampled_from([n, n - 1, n + 1, -n, -n - 1])).map(str)
# No number of Python's is read of so many digits.
LONG: Final = st.sampled_from([4299, 4300, 4301, 9000]).map(lambda n: "9" * n)
ODD: Final = st.sampled_from(
    [
        *("", " ", "\0", "1\0", "1.5", "1e3", "nan", "-", "0x", "0x1f", "1_0", "+1", "\u0661", "\u00b2", "\uff11"),
        *("1,2", "1,,2", ",", "0-1", "1-0", "0-", "-1-1", "call", "signal", "address", "bytes", "text", "48 8b", "??"),
        *("ff", "all", "true", "x" * 5000, "mov " * 13, "<b>", "../..", "%", "&", "\u00e9", "\U0001f9f5"),
    ]
)
RANGES: Final = (NUMBERS | LONG).map(lambda n: f"0-{n}")
# Most are meant to be numbers.
TEXTS: Final = NUMBERS | NUMBERS | NUMBERS | LONG | RANGES | ODD | st.text(max_size=8)
VALUES: Final = TEXTS.map(str.encode) | st.binary(max_size=6)


@cache
def tid_of(app: Starlette, trace: int) -> int:
    found: int = ask_well(app, f"/api/traces/{trace}").json()["processes"][0]["threads"][0]["tid"]
    return found


def fill(route: str, **places: object) -> str:
    """The path of a route with its places filled."""
    return re.sub(r"\{(\w+):index\}", lambda found: str(places[found[1]]), route)


def route_of(what: str) -> str:
    """What ANSWERS has behind a trace's number."""
    if what.startswith("/"):
        return what
    of_thread = what in ("calls-near", "next-call", "replay", "seek", "path", "frames")
    return f"/processes/{{process:index}}{'/threads/{tid:index}' * of_thread}/{what}" if what else ""


def path_of(app: Starlette, trace: int, what: str) -> str:
    route = f"/api/traces/{trace}{route_of(what)}"
    return fill(route, process=0, function=0, call=0, entity=0, tid=tid_of(app, trace), other=0, other_process=0)


def check(answer: Answer, asked: str) -> None:
    assert answer.status == 200 or 400 <= answer.status < 500, asked
    if answer.status != 200:
        assert list(answer.json()) == ["error"], asked
    assert len(answer.content) <= MOST_BYTES, asked


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What is written to the log meanwhile, from warnings on."""
    lines: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    yield lines
    logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize("what", KNOWN)
def test_good_words_are_answered(every_mode: Starlette, what: str) -> None:
    is_of_recorded = what.startswith(("entities/", "/"))
    for trace in (3,) if is_of_recorded else (1, 2, 3) if "call" in what and what != "next-call" else (1, 2):
        answer = ask_well(every_mode, f"{path_of(every_mode, trace, what)}?{KNOWN[what].replace(' ', '&')}")
        assert answer.status == 200, answer.content


@pytest.mark.parametrize("what", [what for what, words in KNOWN.items() if words])
def test_any_words_are_answered_or_refused(every_mode: Starlette, said: list[str], what: str) -> None:
    good = [(name, value.encode()) for name, value in (word.split("=") for word in KNOWN[what].split())]
    names = st.sampled_from([name for name, _ in good])
    paths = [path_of(every_mode, trace, what) for trace in range(4)]

    # Few words are not what they should be: of several only the first would be looked at.
    @settings(max_examples=40)
    @given(
        path=st.sampled_from(paths),
        words=st.lists(st.tuples(names, VALUES), min_size=1, max_size=2),
        missing=st.sets(names, max_size=2),
    )
    def search(path: str, words: list[tuple[str, bytes]], missing: set[str]) -> None:
        left = missing | {name for name, _ in words}
        asked = [*(word for word in good if word[0] not in left), *words]
        target = f"{path}?{'&'.join(f'{name}={quote_from_bytes(value)}' for name, value in asked)}"
        start = time.monotonic()
        check(ask_well(every_mode, target), target)
        assert time.monotonic() - start < MOST_SECONDS, target
        assert not said, target

    search()


def test_each_route_is_known_here() -> None:
    assert {route_of(what) for what in KNOWN} == set(ANSWERS)


PLACES: Final = st.integers(0, 3).map(str) | NUMBERS | LONG | ODD


@settings(max_examples=200)
@given(route=st.sampled_from(ROUTES), data=st.data())
def test_any_places_are_answered_or_refused(every_mode: Starlette, route: str, data: st.DataObject) -> None:
    names = ("trace", "process", "function", "tid", "call", "entity", "other", "other_process")
    places = {name: data.draw(PLACES) for name in names}
    path = fill(route, **places)
    check(ask_well(every_mode, f"{path.replace('?', '').replace('#', '')}?start=0&count=1&block=0"), path)


@pytest.mark.parametrize(
    "path", ["/nothing", "/api", "/api/", "/api/nothing", "/\0", "/..%2f..", "/" + "a" * 5000, "/\ud7ff"]
)
def test_what_is_not_there_is_told_as_json(every_mode: Starlette, path: str) -> None:
    answer = ask_well(every_mode, path)
    assert (answer.status, list(answer.json())) == (404, ["error"])
