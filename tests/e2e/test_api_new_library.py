"""A library that clew has never heard of, and one JSON file: its calls are decoded, linked, and the viewer's."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import clew
from clew.server.app import make_app
from clew.server.container import decode_container
from clew.server.served_trace import ServedTrace
from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain
from tests.unit.server.asking import LOOPBACK, TOKEN, ask_well

if TYPE_CHECKING:
    from starlette.applications import Starlette

Row = dict[str, Any]
BOX = {"CType": "struct box *", "RawType": "pointer", "Type": "Reference", "EntityType": "Box"}
DESCRIPTION: dict[str, Any] = {
    "FlagTables": {
        "box_ways": {"Kind": "flags", "Values": [["BOX_MAKE", 1], ["BOX_LOCK", 2], ["BOX_KEEP", 4]]},
        "letter_kinds": {"Kind": "enum", "Values": [["TEXT", 1], ["NUMBER", 2]]},
        "box_errors": {"Kind": "enum", "Values": [["BOX_FINE", 0], ["BOX_EMPTY", -7]]},
    },
    "Structs": {
        "letter": {
            "Size": 16,
            "Members": [
                {"Name": "kind", "Offset": 0, "Size": 4, "CType": "int", "RawType": "enum", "Flags": "letter_kinds"},
                {"Name": "size", "Offset": 4, "Size": 4, "CType": "unsigned", "RawType": "uint"},
                {"Name": "text", "Offset": 8, "Size": 8, "CType": "const char *", "RawType": "buffer", "Leads": True}
                | {"Bytes": "size", "If": [{"Member": "kind", "Values": ["TEXT"]}]},
                {"Name": "number", "Offset": 8, "Size": 8, "CType": "long", "RawType": "long"}
                | {"If": [{"Member": "kind", "Values": ["TEXT"], "Not": True}]},
            ],
        },
        "number": {
            "Size": 4,
            "Plain": True,
            "Members": [{"Name": "number", "Offset": 0, "Size": 4, "CType": "int", "RawType": "int"}],
        },
    },
    "Libraries": [
        {
            "Name": "letters.so",
            "Functions": [
                {
                    "Name": "box_open",
                    "Filter": "IPC",
                    "Error": "null_errno",
                    "Parameters": [
                        {"Index": 0, "Name": "path", "CType": "const char *", "RawType": "path"}
                        | {"Type": "Entity", "EntityType": "File"},
                        {"Index": 1, "Name": "how", "CType": "unsigned", "RawType": "flags", "Flags": "box_ways"},
                        {"Index": -1, "Name": "box"} | BOX,
                    ],
                    "Effects": [{"Effect": "LinkReference", "Parameters": [-1, 0], "Role": "opened"}],
                },
                {
                    "Name": "box_share",
                    "Filter": "IPC",
                    "Error": "null_errno",
                    "Parameters": [{"Index": 0, "Name": "box"} | BOX, {"Index": -1, "Name": "other"} | BOX],
                    "Effects": [{"Effect": "LinkReference", "Parameters": [-1, 0], "Role": "duplicated"}],
                },
                {
                    "Name": "box_send",
                    "Filter": "IPC",
                    "Parameters": [
                        {"Index": 0, "Name": "box"} | BOX,
                        {"Index": 1, "Name": "letters", "CType": "const struct letter *", "RawType": "struct"}
                        | {"Struct": "letter", "Count": 2},
                        {"Index": 2, "Name": "n", "CType": "int", "RawType": "int"},
                        {"Index": -1, "Name": "sent", "CType": "long", "RawType": "long"},
                    ],
                    "Effects": [{"Effect": "UseReference", "Parameters": [0], "Role": "written", "Bytes": -1}],
                },
                {
                    "Name": "box_count",
                    "Filter": "IPC",
                    "Parameters": [
                        {"Index": 0, "Name": "box"} | BOX,
                        {"Index": 1, "Name": "n_bytes", "CType": "int *", "RawType": "struct", "Struct": "number"}
                        | {"Direction": "out"},
                        {"Index": -1, "Name": "error", "CType": "int", "RawType": "enum", "Flags": "box_errors"},
                    ],
                    "Effects": [{"Effect": "UseReference", "Parameters": [0]}],
                },
                {
                    "Name": "box_close",
                    "Filter": "IPC",
                    "Parameters": [
                        {"Index": 0, "Name": "box"} | BOX,
                        {"Index": -1, "Name": "nothing", "CType": "void", "RawType": "int"},
                    ],
                    "Effects": [{"Effect": "DestroyReference", "Parameters": [0]}],
                },
            ],
        }
    ],
}
LINES = [
    'box_open("none", 0) = NULL',
    'box_open("inbox", BOX_MAKE|BOX_KEEP) = BOX',
    "box_count(BOX, [0]) = -7 (BOX_EMPTY)",
    "box_share(BOX) = BOX",
    'box_send(BOX, [{kind=TEXT, size=5, text="hello"}, {kind=NUMBER, size=8, number=-3}, '
    "{kind=0x9, size=0, number=4}], 3) = 13",
    "box_close(BOX) = <void>",
    "box_count(BOX, [13]) = 0 (BOX_FINE)",
    "box_close(BOX) = <void>",
]


def run_clew(folder: Path, description: dict[str, Any], program: Path, *options: str) -> list[str]:
    """Lines of the library's calls, with the same word for each address."""
    folder.mkdir(exist_ok=True)
    (folder / "own.json").write_text(json.dumps(description))
    clew_itself = [sys.executable, "-m", "clew", "api"]
    environ = runs.environment()
    subprocess.run([*clew_itself, "check", str(folder / "own.json")], env=environ, check=True, timeout=60)
    command = [*clew_itself, "--api-file", "own.json", "--function", "letters.so:box_*", "-o", "told", *options]
    subprocess.run([*command, "--", str(program)], env=environ, cwd=folder, check=True, timeout=120)
    told = (folder / "told").read_text().splitlines()
    lines = (re.sub(r"^\d+ [\d.]+ | <[\d.]+>$", "", line) for line in told)
    return [re.sub("0x[0-9a-f]{6,}", "BOX", line.removeprefix("letters.so!")) for line in lines if "!" in line]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, beside the library that is built for it."""
    source = SOURCES / "api" / "letters.c"
    library = build_plain(source, "-DLIBRARY", "-O1", "-shared", "-fPIC", name="letters.so")
    return build_plain(
        source, "-O1", "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}", name="letters"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Path:
    """Where it was recorded, with its calls of the system."""
    made = tmp_path_factory.mktemp("letters")
    assert run_clew(made, DESCRIPTION, program, "--filter", "file", "--trace", "it.clew", "--mode", "full") == LINES
    return made


@pytest.fixture(scope="module")
def app(folder: Path) -> Starlette:
    page = folder / "page"
    page.mkdir()
    (page / "index.html").write_text("the page")
    return make_app([ServedTrace(folder / "it.clew", 0)], TOKEN, LOOPBACK, page)


def ask(app: Starlette, what: str) -> dict[str, Any]:
    answer = ask_well(app, f"/api/traces/0/processes/0/{what}")
    assert answer.status == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_calls_are_linked_to_what_they_are_about(folder: Path) -> None:
    trace = clew.Trace(folder / "it.clew")
    assert not trace.verify()
    calls = {row["call_id"]: row for row in trace.read("calls").to_pylist()}
    (box,) = [row for row in trace.read("entities").to_pylist() if row["name"] == f"{folder}/inbox"]
    found = [row for row in trace.read("references").to_pylist() if row["entity_id"] == box["entity_id"]]
    found.sort(key=lambda row: calls[row["call_id"]]["time_ns"])
    told = [(calls[row["call_id"]]["name"], row["role"], row["bytes"]) for row in found]
    # By each handle, and by the descriptors that they are made of.
    assert told == [
        *[("box_open", "opened", None), ("openat", "opened", None), ("box_count", "subject", None)],
        *[("lseek", "subject", None), ("box_share", "duplicated", None), ("dup", "duplicated", None)],
        *[("box_send", "written", 13), ("write", "written", 5), ("write", "written", 8), ("write", "written", 0)],
        *[("box_close", "closed", None), ("close", "closed", None), ("box_count", "subject", None)],
        *[("lseek", "subject", None), ("box_close", "closed", None), ("close", "closed", None)],
    ]
    within = {
        (calls[row["parent_call_id"]]["name"], row["name"])
        for row in calls.values()
        if row["parent_call_id"] is not None
    }
    pairs = {("box_open", "openat"), ("box_share", "dup"), ("box_send", "write"), ("box_close", "close")}
    assert within == {*pairs, ("box_count", "lseek")}


def test_the_viewer_has_them(app: Starlette, folder: Path) -> None:
    rows = ask(app, "calls?count=500&kind=library")["rows"]
    assert Counter(row["name"] for row in rows) == Counter(line.split("(")[0] for line in LINES)
    (sent,) = [row for row in rows if row["name"] == "box_send"]
    assert [(one["name"], one["text"]) for one in sent["arguments"][1:]] == [
        ("letters", LINES[4][len("box_send(BOX, ") : -len(", 3) = 13")]),
        ("n", "3"),
    ]
    (entity,) = [row for row in ask(app, "entities?count=500")["rows"] if row["name"] == f"{folder}/inbox"]
    about = ask(app, f"calls?count=500&entity={entity['entity']}")["rows"]
    assert Counter(row["name"] for row in about)["box_send"] == 1
    # What the chart is drawn of.
    content = ask_well(app, f"/api/traces/0/processes/0/calls/chart?bins=7&entity={entity['entity']}").content
    assert decode_container(content)[2]["calls"].sum() == len(about) == 16


def test_what_is_edited_counts_at_once(program: Path, tmp_path: Path) -> None:
    edited = copy.deepcopy(DESCRIPTION)
    edited["FlagTables"]["letter_kinds"]["Values"].append(["NOTHING", 9])
    edited["Libraries"][0]["Functions"] = edited["Libraries"][0]["Functions"][2:3]
    lines = run_clew(tmp_path / "edited", edited, program)
    assert [line for line in lines if line.startswith("box_send")] == [LINES[4].replace("kind=0x9", "kind=NOTHING")]
    # The others are told as what nobody has described.
    assert any(re.fullmatch(r"box_count\(BOX, BOX(, \w+)*\) = \w+", line) for line in lines), lines
