"""How sessions of probes are shown: what programs call themselves drives no terminal."""

from __future__ import annotations

from typing import Any

from clew.cli.session_text import iter_lines

EVENT: dict[str, Any] = {
    "name": "a",
    "kind": "probe",
    "where": "main",
    "pid": 7,
    "path": None,
    "contexts": ["regs"],
    "returned": [],
    "filter": "rdi > 2",
    "inline": False,
    "is_enabled": True,
    "events": 1234,
    "places": 3,
    "backends": {"trap": 1, "jump": 2},
    "techniques": {"jump": 2, "trap": 1},
    "reasons": {"trap: no room": 1},
    "missing": "",
}
SESSION: dict[str, Any] = {
    "session": "default",
    "is_active": True,
    "output": "/tmp/x",
    "format": "ctf",
    "processes": [{"pid": 7, "name": "p", "executable": "/bin/p\x1b[2J", "is_probed": True}],
    "events": [EVENT],
    "lost": 0,
    "remarks": [],
}


def test_a_session_is_shown_with_what_it_has() -> None:
    assert list(iter_lines(SESSION)) == [
        "session default: active, ctf in /tmp/x",
        "  process 7 (/bin/p\\x1b[2J)",
        "  event a: probe main in process 7",
        "    contexts regs",
        "    filter rdi > 2",
        "    1,234 events",
        "    at 3 places: 2 by jump, 1 by trap",
        "      1 trap: no room",
    ]


def test_what_is_not_there_is_said() -> None:
    other = EVENT | {"pid": None, "path": "/bin/q", "places": 0, "contexts": [], "filter": None, "missing": "why\r"}
    gone = {"pid": 9, "name": "n\n", "executable": "", "is_probed": False}
    session = SESSION | {"events": [other], "processes": [gone], "lost": 1000, "remarks": ["no\x07"]}
    assert list(iter_lines(session)) == [
        "session default: active, ctf in /tmp/x",
        "  process 9 (n\\n) not probed",
        "  event a: probe main in /bin/q",
        "    1,234 events",
        "    at no place: why\\r",
        "  1,000 events lost",
        "  no\\x07",
    ]


def test_of_one_that_is_stopped_no_places_are_told() -> None:
    disabled = EVENT | {"events": 1, "is_enabled": False, "returned": ["retval"]}
    session = SESSION | {"is_active": False, "output": None, "format": None, "processes": [], "events": [disabled]}
    assert list(iter_lines(session)) == [
        "session default: inactive",
        "  event a: probe main in process 7, disabled",
        "    contexts regs",
        "    of returns retval",
        "    filter rdi > 2",
        "    1 event",
    ]
