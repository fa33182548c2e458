"""`clew api --trace`: every use of a thing is on that thing, by whatever number, process, thread or library."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import clew
from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain

Row = dict[str, Any]


def record(folder: Path, words: list[str], *arguments: str) -> clew.Trace:
    """A trace of what a program does in a folder of its own."""
    files = folder / "files"
    files.mkdir()
    command = [sys.executable, "-m", "clew", "api", *arguments, "--trace", str(folder / "it.clew")]
    command += ["-o", str(folder / "told"), "--", *words]
    done = subprocess.run(command, env=runs.environment(), cwd=files, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    trace = clew.Trace(folder / "it.clew")
    assert not trace.verify()
    return trace


class Tables:
    """Calls, entities and references of a trace, by their numbers."""

    def __init__(self, trace: clew.Trace) -> None:
        self.calls: dict[int, Row] = {row["call_id"]: row for row in trace.read("calls").to_pylist()}
        self.entities: dict[int, Row] = {row["entity_id"]: row for row in trace.read("entities").to_pylist()}
        self.references: list[Row] = trace.read("references").to_pylist()

    def named(self, name: str) -> Row:
        """The only entity of that name."""
        (found,) = [row for row in self.entities.values() if row["name"] == name]
        return found

    def uses(self, entity: Row, by: str = "process_id") -> dict[Any, list[tuple[str, str]]]:
        """Which calls did what with it, in the order of time, by process or thread."""
        found = [row for row in self.references if row["entity_id"] == entity["entity_id"]]
        found.sort(key=lambda row: self.calls[row["call_id"]]["time_ns"])
        uses = defaultdict(list)
        for row in found:
            call = self.calls[row["call_id"]]
            uses[call[by]].append((call["name"], row["role"]))
        return dict(uses)


def test_every_use_is_on_the_right_file(tmp_path: Path) -> None:
    program = build_plain(SOURCES / "api" / "shared_file.c", "-O1", "-pthread")
    names = ("fdopen", "rewind", "fread", "fwrite", "fflush", "fclose", "tmpfile", "fileno")
    options = [word for name in names for word in ("--function", f"libc.so*:{name}")]
    kinds = [word for name in ("file", "network", "process", "thread") for word in ("--filter", name)]
    trace = record(tmp_path, [str(program)], *options, *kinds)
    tables = Tables(trace)
    processes = trace.processes.to_pylist()
    parent, child, executed = (row["process_id"] for row in sorted(processes, key=lambda row: row["process_id"]))
    shared = tables.named(f"{tmp_path}/files/shared")
    # By whatever number, and under its new name; what the C library asks about it besides are uses of it.
    uses = {who: [use for use in found if use[1] != "subject"] for who, found in tables.uses(shared).items()}
    assert uses[parent] == [
        *[("openat", "opened"), ("dup", "duplicated"), ("fcntl", "duplicated"), ("write", "written")],
        *[("write", "written"), ("sendmsg", "passed"), ("close", "closed"), ("pread64", "read")],
        *[("rename", "renamed"), ("fdopen", "duplicated"), ("fread", "read"), ("read", "read")],
        *[("fclose", "closed"), ("close", "closed"), ("openat", "opened"), ("read", "read")],
    ]
    assert uses[child] == [("recvmsg", "inherited"), ("pread64", "read"), ("close", "closed")]
    assert uses[executed] == [("write", "written"), ("close", "closed")]
    # The other one had its number.
    assert tables.uses(tables.named(f"{tmp_path}/files/other")) == {
        parent: [("openat", "opened"), ("write", "written")]
    }
    # What a stream is for, and what its descriptor is for, are one; of one without a name, too.
    (unnamed,) = [row for row in tables.entities.values() if row["kind"] == "file" and row["name"] == "file"]
    found = [use for use in tables.uses(unnamed)[parent] if use[1] not in ("subject", "duplicated")]
    assert found[:2] == [("tmpfile", "created"), ("openat", "created")]
    assert found[2:] == [
        *[("fwrite", "written"), ("write", "written"), ("pread64", "read"), ("fclose", "closed"), ("close", "closed")]
    ]
    # A thread is a thing of its own, of its process.
    (thread,) = [row for row in tables.entities.values() if row["kind"] == "thread"]
    whose = tables.entities[thread["parent_entity_id"]]
    assert (whose["kind"], whose["process_id"], thread["process_id"]) == ("process", parent, parent)
    (reading,) = [call for call in tables.calls.values() if call["tid"] == thread["tid"] and call["name"] == "pread64"]
    assert reading["pid"] == thread["pid"] != thread["tid"]
    ((maker, *others),) = tables.uses(thread).values()
    assert maker[0] in ("clone", "clone3") and maker[1] == "started"
    assert others[-1] == ("exit", "ended")


def test_handles_of_libraries(tmp_path: Path) -> None:
    words = [sys.executable, "-S", "-E", str(SOURCES / "api" / "handles.py")]
    names = ("libssl*:SSL_*", "libsqlite3*:sqlite3_*", "libz*:*")
    options = [word for name in names for word in ("--function", name)]
    tables = Tables(record(tmp_path, words, *options, "--filter", "network", "--filter", "file"))
    seen = {call["name"] for call in tables.calls.values()}
    for name in ("SSL_new", "sqlite3_step", "deflate"):
        if name not in seen:
            pytest.skip(f"{name} is not in a library of its own here")
    by_kind = defaultdict(list)
    for row in tables.entities.values():
        by_kind[row["kind"]].append(row)
    connections = {row["entity_id"] for row in by_kind["connection"]}
    assert len(connections) == 2
    assert {row["parent_entity_id"] for row in by_kind["connection"]} <= {
        row["entity_id"] for row in by_kind["context"]
    }
    # What is said of a connection is said of its socket, each in the thread of its own.
    secured = [uses for row in by_kind["socket"] if "SSL_set_fd" in str(uses := tables.uses(row, "tid"))]
    assert len(secured) == 2
    whose = set()
    for uses in secured:
        ((tid, found),) = uses.items()
        whose.add(tid)
        assert {"SSL_set_fd", "SSL_do_handshake", "SSL_write_ex", "SSL_read_ex", "SSL_free"} <= {
            name for name, _ in found
        }
        # The calls that do it are within.
        assert {("write", "written"), ("read", "read"), ("close", "closed")} <= set(found)
    assert len(whose) == 2
    database = tables.named(f"{tmp_path}/files/one.db")
    names_used = {name for name, _ in next(iter(tables.uses(database).values()))}
    assert {"sqlite3_open_v2", "openat", "sqlite3_prepare_v2", "pwrite64", "sqlite3_close_v2"} <= names_used
    statements = by_kind["statement"]
    assert statements and {row["parent_entity_id"] for row in statements} == {database["entity_id"]}
    bound = [uses for row in statements if "sqlite3_bind_text" in str(uses := tables.uses(row))]
    assert [sum(name == "sqlite3_bind_text" for name, _ in found) for uses in bound for found in uses.values()] == [2]
    packing, unpacking = ([name for name, _ in next(iter(tables.uses(row).values()))] for row in by_kind["stream"])
    assert packing == ["deflateInit2_", "deflate", "deflate", "deflateEnd"]
    assert unpacking == ["inflateInit2_", "inflate", "inflate", "inflateEnd"]
