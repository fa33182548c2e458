"""The code that the page is told of: against capstone on the recorded bytes, and against the tables of the trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import capstone
import pytest

from clew.server.app import make_app
from clew.server.security import HostNames
from clew.server.served_trace import ServedTrace
from clew.store.trace import Trace
from tests.unit.server.asking import TOKEN, Answer, ask_well
from tests.unit.small_trace import BASE, MakeTrace, Rows


class Client:
    """Asks an application as a browser would, without a socket."""

    def __init__(self, trace: Trace, page: Path) -> None:
        served = ServedTrace(trace.directory, 0)
        self._app = make_app([served], TOKEN, HostNames(frozenset({"127.0.0.1"})), page=page)

    def ask(self, path: str) -> Answer:
        """The answer about process 0."""
        return ask_well(self._app, f"/api/traces/0/processes/0/{path}")

    def get(self, path: str) -> dict[str, Any]:
        answer = self.ask(path)
        assert answer.status == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
def client(make_trace: MakeTrace, rows: Rows, tmp_path: Path) -> Client:
    return Client(make_trace(rows), tmp_path)


def test_instructions_are_capstones(client: Client, rows: Rows) -> None:
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    content = {hex(row["app_pc"]): row["bytes"] for row in rows["blocks"]}
    listed = client.get("listing?start=0&count=100")["blocks"]
    assert [block["address"] for block in listed] == sorted(content)
    for block in listed:
        expected = [
            (hex(one.address), one.bytes.hex(), f"{one.mnemonic} {one.op_str}".strip())
            for one in decoder.disasm(content[block["address"]], int(block["address"], 16))
        ]
        assert [(one["address"], one["bytes"], one["text"]) for one in block["instructions"]] == expected


def test_counts_are_the_tables(client: Client, rows: Rows) -> None:
    executions = {row["block_id"]: row["executions"] for row in rows["counts"] if row["block_id"] is not None}
    expected = {hex(row["app_pc"]): executions[row["block_id"]] for row in rows["blocks"]}
    listed = client.get("listing?start=0&count=100")["blocks"]
    assert {block["address"]: block["executions"] for block in listed} == expected
    (conditional,) = [block for block in listed if block["exit"] == "conditional"]
    assert (conditional["taken"], conditional["not_taken"]) == (4, 1)
    assert all(block["taken"] is None for block in listed if block["exit"] != "conditional")


def test_function(client: Client) -> None:
    main = client.get("functions/0")
    assert (main["name"], main["image"], main["address"], main["n_blocks"]) == ("main", "/bin/it", "0x400010", 3)
    address = {block["block"]: block["address"] for block in main["blocks"]}
    edges = {
        (address[edge["source"]], address[edge["target"]], edge["kind"]): edge["executions"] for edge in main["edges"]
    }
    assert edges == {
        ("0x400010", "0x400018", "return"): 5,
        ("0x400018", "0x400010", "taken"): 4,
        ("0x400018", "0x40001a", "not_taken"): 1,
    }
    (call,) = main["ways_out"]
    assert (address[call["source"]], call["name"], call["kind"], call["executions"]) == ("0x400010", "f", "call", 5)
    branch = main["blocks"][1]["instructions"][0]
    assert branch["target"] == {"address": "0x400010", "block": main["entry_block"], "function": 0, "name": "main"}


def test_call_of_recursion_is_a_way_out(make_trace: MakeTrace, rows: Rows, tmp_path: Path) -> None:
    rows["edges"][1]["target_block_id"] = 0
    client = Client(make_trace(rows, "again.clew"), tmp_path)
    main = client.get("functions/0")
    assert [(edge["kind"], edge["function"]) for edge in main["ways_out"]] == [("call", 0)]
    assert "call" not in {edge["kind"] for edge in main["edges"]}


def test_unexecuted_target_has_a_name_only_inside_a_function(make_trace: MakeTrace, rows: Rows, tmp_path: Path) -> None:
    # je to main+1, where no block begins; then to far behind everything.
    for displacement, name in ((0x11 - 0x1A, "main+0x1"), (0x60, None)):
        rows["blocks"][1]["bytes"] = bytes([0x74, displacement & 0xFF])
        client = Client(make_trace(rows, f"{displacement}.clew"), tmp_path)
        target = client.get("functions/0")["blocks"][1]["instructions"][0]["target"]
        assert (target["address"], target["name"]) == (hex(BASE + 0x1A + displacement), name)
        assert target["block"] is None


def test_bytes_that_are_no_code(make_trace: MakeTrace, rows: Rows, tmp_path: Path) -> None:
    rows["blocks"][1]["bytes"] = b"\x06\x06"
    client = Client(make_trace(rows), tmp_path)
    instructions = client.get("functions/0")["blocks"][1]["instructions"]
    assert instructions == [{"address": "0x400018", "bytes": "0606", "text": "(bad)"}]


def test_listing_index(client: Client, rows: Rows) -> None:
    _, arrays = client.ask("listing-index").arrays()
    listed = client.get("listing?start=0&count=100")["blocks"]
    assert arrays["block"].tolist() == [block["block"] for block in listed]
    # main at 0x10 to 0x1d, labelled by no branch but that to its start; f at 0x40.
    assert arrays["gap_bytes"].tolist() == [0, 0, 0, 0x40 - 0x1D]
    assert arrays["flags"].tolist() == [3, 0, 0, 2]
    assert arrays["n_rows"].tolist() == [row["n_instructions"] for row in rows["blocks"]]


def test_references(client: Client) -> None:
    entry = client.get("functions/0")["entry_block"]
    found = client.get(f"references?block={entry}")
    assert [(row["kind"], row["executions"], row["from"] and row["from"]["address"]) for row in found["in"]] == [
        ("taken", 4, "0x400018"),
        ("start", 1, None),
    ]
    assert [(row["kind"], row["to"]["name"], row["callee"] and row["callee"]["name"]) for row in found["out"]] == [
        ("call", "f", None),
        ("return", "main", "f"),
    ]
    assert found["out"][1]["to"]["function_offset"] == 8


def test_threads(client: Client) -> None:
    assert {block["executions"] for block in client.get("listing?start=0&count=9&threads=7")["blocks"]} == {5, 1}
    assert {block["executions"] for block in client.get("listing?start=0&count=9&threads=8")["blocks"]} == {0}


@pytest.mark.parametrize("path", ["functions/0/lines", "listing/lines?start=0&count=4"])
def test_lines_of_a_file_that_is_not_there(client: Client, path: str) -> None:
    assert client.get(path) == {"files": [], "lines": {}}


@pytest.mark.parametrize(
    "path",
    [
        "functions/2",
        "functions/99999999999999999999",
        "functions/2/lines",
        "listing?start=5&count=1",
        "listing?start=-1&count=1",
        "listing?start=0&count=0",
        "listing?start=0&count=1025",
        "listing?start=0",
        "listing?start=x&count=1",
        "listing/lines?start=9&count=1",
        "references?block=4",
        "references?block=-1",
        "references",
        "references?block=0&threads=a",
    ],
)
def test_what_names_nothing_is_refused(client: Client, path: str) -> None:
    answer = client.ask(path)
    assert answer.status == 400
    assert answer.json()["error"]
