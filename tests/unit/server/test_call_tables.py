"""Tables of calls as files: each row is what the page is told, in the order and of the choice that were asked for."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.unit.server.asking import ask_well
from tests.web.made_up_calls import HOSTILE_FILE

if TYPE_CHECKING:
    from starlette.applications import Starlette

COUNTS, FULL, REGION, CALLS = range(4)


def ask(app: Starlette, trace: int, what: str) -> dict[str, Any]:
    answer = ask_well(app, f"/api/traces/{trace}/processes/0/{what}")
    assert answer.status == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def take(app: Starlette, trace: int, of: str, words: str = "") -> list[dict[str, Any]]:
    """The rows of the Arrow file; the CSV has as many, which say the same."""
    target = f"/api/traces/{trace}/processes/0/table?of={of}&{words}"
    answer = ask_well(app, f"{target}&as=arrow")
    assert answer.status == 200, answer.content
    table = pa.ipc.open_file(pa.BufferReader(answer.content)).read_all()
    found: list[dict[str, Any]] = table.to_pylist()
    written = list(csv.DictReader(io.StringIO(ask_well(app, f"{target}&as=csv").content.decode())))
    assert [row.keys() for row in written] == [row.keys() for row in found]
    for text, row in zip(written, found, strict=True):
        for name, value in row.items():
            # No formula for a spreadsheet.
            safe = f"'{value}" if isinstance(value, str) and value[:1] == "-" else value
            assert text[name] == ("" if safe is None else str(safe))
    return found


def names_of(app: Starlette, trace: int) -> list[str]:
    _, arrays = ask_well(app, f"/api/traces/{trace}/processes/0/functions").arrays()
    texts, start = bytes(arrays["name.bytes"]), 0
    names = []
    for end in arrays["name.ends"].tolist():
        names.append(texts[start:end].decode())
        start = end
    return names


@pytest.mark.parametrize("trace", [FULL, REGION, CALLS])
@pytest.mark.parametrize(
    "words",
    [
        "",
        "sort=name&descending=1",
        "sort=duration",
        "text=ope&sort=thread",
        "name=read&from=100000",
        "threads=1",
        "filter=File",
    ],
)
def test_calls_are_those_of_the_pages(
    every_mode: Starlette, monkeypatch: pytest.MonkeyPatch, trace: int, words: str
) -> None:
    monkeypatch.setattr("clew.server.call_tables._AT_ONCE", 37)
    told: list[dict[str, Any]] = []
    while len(told) < (page := ask(every_mode, trace, f"calls?offset={len(told)}&count=500&{words}"))["total"]:
        told += page["rows"]
    names = names_of(every_mode, trace)
    processes = ask_well(every_mode, f"/api/traces/{trace}").json()["processes"]
    pids = {one["process_id"]: one["pid"] for one in processes}
    wanted = [
        {
            "process_id": row["process"],
            "pid": pids[row["process"]],
            **{name: row[name] for name in ("call", "tid", "kind", "filter", "name", "library", "result", "error")},
            "injected": ",".join(row["injected"]) or None,
            "time_ns": row["time"],
            "duration_ns": row["duration"],
            "arguments": ", ".join(f"{one['name']}={one.get('text', one['value'])}" for one in row["arguments"]),
            "block": None if row["block"] < 0 else row["block"],
            "function": None if row["function"] < 0 else names[row["function"]],
        }
        for row in told
    ]
    assert take(every_mode, trace, "calls", words) == wanted
    assert wanted or "name" in words or "threads" in words or "text" in words


def test_places_are_those_of_the_page(every_mode: Starlette) -> None:
    for trace in (COUNTS, FULL, CALLS):
        names = names_of(every_mode, trace)
        for words in ("", "name=read", "text=O"):
            rows = ask(every_mode, trace, f"calls/places?{words}")["rows"]
            assert take(every_mode, trace, "places", words) == [
                {
                    "block": None if row["block"] < 0 else row["block"],
                    "function": None if row["function"] < 0 else names[row["function"]],
                    "name": row["name"],
                    "calls": row["calls"],
                }
                for row in rows
            ]


def test_entities_are_those_of_the_page(every_mode: Starlette) -> None:
    for trace, words in ((CALLS, ""), (CALLS, "own=1&kind=file"), (CALLS, "text=ETC"), (FULL, "own=1"), (COUNTS, "")):
        rows = ask(every_mode, trace, f"entities?count=500&{words}")["rows"]
        assert rows
        assert take(every_mode, trace, "entities", words) == [
            {
                **{name: row[name] for name in ("kind", "name", "tid", "calls", "all_calls", "bytes")},
                "entity_id": row["entity"],
                "process_id": row["process"],
                "parent_entity_id": row["parent"],
                "first_ns": row["from"],
                "last_ns": row["to"],
                "details": ", ".join(f"{name}={value}" for name, value in row["details"]),
            }
            for row in rows
        ]
    assert HOSTILE_FILE in [row["name"] for row in take(every_mode, CALLS, "entities")]


def test_touches_are_those_of_the_page(every_mode: Starlette) -> None:
    rows = ask(every_mode, CALLS, "touches?limit=1000")["rows"]
    processes = ask_well(every_mode, f"/api/traces/{CALLS}").json()["processes"]
    pids = {one["process_id"]: one["pid"] for one in processes}
    assert take(every_mode, CALLS, "touches") == [
        {
            **{name: row[name] for name in ("kind", "name", "calls", "bytes_read", "bytes_written")},
            "process_id": row["process"],
            "pid": pids[row["process"]],
            "entity_id": row["entity"],
            "roles": ", ".join(f"{role} {n}" for role, n in row["roles"]),
        }
        for row in rows
    ]
    assert take(every_mode, FULL, "touches") == []


def test_what_there_is_not_is_refused(every_mode: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal(trace: int, words: str, process: int = 0) -> str:
        answer = ask_well(every_mode, f"/api/traces/{trace}/processes/{process}/table?as=csv&{words}")
        assert answer.status == 400
        return str(answer.json()["error"])

    assert "no calls with a time" in refusal(COUNTS, "of=calls")
    assert "sort" in refusal(CALLS, "of=calls&sort=paper")
    assert "no entity 77" in refusal(CALLS, "of=calls&entity=77")
    assert "process" in refusal(CALLS, "of=touches", 9)
    assert "process" in refusal(CALLS, "of=entities", 9)
    n = {of: len(take(every_mode, CALLS, of)) for of in ("calls", "places", "entities", "touches")}
    for of, n_rows in n.items():
        monkeypatch.setattr("clew.server.table_files.MAX_ROWS", n_rows - 1)
        assert f"{n_rows} " in refusal(CALLS, f"of={of}") and f"more than {n_rows - 1}" in refusal(CALLS, f"of={of}")
        monkeypatch.setattr("clew.server.table_files.MAX_ROWS", n_rows)
        assert len(take(every_mode, CALLS, of)) == n_rows
