"""Calls of library functions: found by patterns, decoded by a file of one's own, linked to what they are about."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.api.reading import load_built_in
from clew.server.call_answers import answer_call_summary
from clew.server.query import Query
from clew.server.served_trace import ServedTrace
from clew.sessions.api_calls import ApiLog
from clew.sessions.api_functions import FunctionChoice, parse_pattern
from tests.e2e.api_runs import run_clew, told_lines
from tests.programs.build import SOURCES, build_plain

Row = dict[str, Any]

SHELF = {"CType": "struct shelf *", "RawType": "pointer", "Type": "Reference", "EntityType": "Shelf"}
DESCRIPTION = {
    "FlagTables": {
        "shelf_ways": {"Kind": "flags", "Values": [["S_READ", 1], ["S_WRITE", 2], ["S_NEVER", 4]]},
        "shelf_places": {"Kind": "enum", "Values": [["TOP", 0], ["MIDDLE", 3], ["NOWHERE", 0xFFFFFFFF]]},
    },
    "Libraries": [
        {
            "Name": "libshelf*",
            "Functions": [
                {
                    "Name": "shelf_open",
                    "Filter": "Database",
                    "Error": "null_errno",
                    "Parameters": [
                        {"Index": 0, "Name": "path", "CType": "const char *", "RawType": "path"}
                        | {"Type": "Entity", "EntityType": "File"},
                        {"Index": 1, "Name": "how", "CType": "unsigned", "RawType": "flags", "Flags": "shelf_ways"},
                        {"Index": -1, "Name": "shelf"} | SHELF,
                    ],
                    "Effects": [{"Effect": "LinkReference", "Parameters": [-1, 0], "Role": "opened"}],
                },
                {
                    "Name": "shelf_put",
                    "Filter": "Database",
                    "Parameters": [
                        {"Index": 0, "Name": "shelf"} | SHELF,
                        {"Index": 1, "Name": "bytes", "CType": "const void *", "RawType": "buffer", "Bytes": 2},
                        {"Index": 2, "Name": "size", "CType": "unsigned long", "RawType": "size"},
                        {"Index": 3, "Name": "where", "CType": "int", "RawType": "enum", "Flags": "shelf_places"},
                        {"Index": -1, "Name": "n", "CType": "long", "RawType": "long"},
                    ],
                    "Effects": [{"Effect": "UseReference", "Parameters": [0], "Role": "written", "Bytes": -1}],
                },
                {
                    "Name": "shelf_close",
                    "Filter": "Database",
                    "Parameters": [
                        {"Index": 0, "Name": "shelf"} | SHELF,
                        {"Index": -1, "Name": "nothing", "CType": "void", "RawType": "int"},
                    ],
                    "Effects": [{"Effect": "DestroyReference", "Parameters": [0]}],
                },
            ],
        }
    ],
}


@pytest.fixture(scope="module")
def library() -> Path:
    flags = ("-DLIBRARY", "-O1", "-shared", "-fPIC", "-fno-optimize-sibling-calls")
    return build_plain(SOURCES / "sessions" / "shelf.c", *flags, name="libshelf.so")


@pytest.fixture(scope="module")
def words(library: Path) -> list[str]:
    return [str(build_plain(SOURCES / "sessions" / "shelf.c", "-O1", "-pthread")), str(library)]


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("description") / "shelf.json"
    path.write_text(json.dumps(DESCRIPTION))
    return path


def test_a_new_api_is_one_file(words: list[str], description: Path, tmp_path: Path) -> None:
    trace = tmp_path / "it.clew"
    options: list[str | Path] = [
        "--api-file",
        description,
        "--function",
        "libshelf*:shelf_*",
        "-o",
        tmp_path / "told",
        "--trace",
        trace,
    ]
    done = run_clew(*options, "--", *words)
    assert done.stdout == b"10 10\n"
    lines = Counter(told_lines(tmp_path / "told"))
    described = {line: n for line, n in lines.items() if "shelf_count" not in line}
    assert described == {
        'libshelf.so!shelf_open("/shelf/one", S_READ|S_WRITE) = SHELF': 1,
        'libshelf.so!shelf_open("/shelf/other", S_READ|S_WRITE) = SHELF': 1,
        'libshelf.so!shelf_open("/shelf/none", S_NEVER) = NULL': 1,
        'libshelf.so!shelf_put(SHELF, "one\\0two", 7, MIDDLE) = 7': 2,
        'libshelf.so!shelf_put(SHELF, "lost", 4, NOWHERE) = -1': 2,
        "libshelf.so!shelf_close(SHELF) = <void>": 2,
    }
    # Nobody has described that one: as it calls itself there is one for each depth.
    assert sum(n for line, n in lines.items() if "shelf_count" in line) == 2 * 4
    read = clew.Trace(trace)
    assert not read.verify()
    calls = {row["call_id"]: row for row in read.read("calls").to_pylist()}
    assert len(calls) == lines.total()
    assert {row["library"] for row in calls.values()} == {words[1]}
    # What the view of calls chooses by is what was said of them here.
    query = Query({"trace": 0}, {}, [ServedTrace(trace, 0)])
    told_filters = {one["filter"]: one["calls"] for one in answer_call_summary(query)["filters"]}
    assert told_filters == {"Database": sum(described.values()), "Other": 2 * 4}
    (one,) = [row for row in read.read("entities").to_pylist() if row["name"] == "/shelf/one"]
    found = [row for row in read.read("references").to_pylist() if row["entity_id"] == one["entity_id"]]
    found.sort(key=lambda row: calls[row["call_id"]]["time_ns"])
    roles = [(calls[row["call_id"]]["name"], row["role"], row["bytes"]) for row in found]
    assert roles == [
        ("shelf_open", "opened", None),
        ("shelf_put", "written", 7),
        ("shelf_put", "written", None),
        ("shelf_close", "closed", None),
    ]


def test_calls_within_calls_are_a_tree(words: list[str], tmp_path: Path) -> None:
    run_clew(
        "--function", "libshelf*:shelf_count", "-o", tmp_path / "told", "--trace", tmp_path / "it.clew", "--", *words
    )
    calls = clew.Trace(tmp_path / "it.clew").read("calls").to_pylist()
    by_id = {row["call_id"]: row for row in calls}

    def depth(row: Row) -> int:
        parent = row["parent_call_id"]
        return 0 if parent is None else 1 + depth(by_id[parent])

    assert Counter(map(depth, calls)) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert all(by_id[row["parent_call_id"]]["tid"] == row["tid"] for row in calls if row["parent_call_id"] is not None)
    # The result of a call is one more than that of the one within it.
    for row in calls:
        if row["parent_call_id"] is not None:
            assert by_id[row["parent_call_id"]]["result"] == row["result"] + 1


def test_calls_of_functions_are_where_they_were_made(words: list[str], tmp_path: Path) -> None:
    """In front of the function's first block, in a block that calls, with at most a linker's stub in between."""
    options: list[str | Path] = [
        "--function",
        "libshelf*:shelf_*",
        "--mode",
        "full",
        "-o",
        tmp_path / "told",
        "--trace",
    ]
    run_clew(*options, tmp_path / "it.clew", "--", *words)
    trace = clew.Trace(tmp_path / "it.clew")
    assert not trace.verify()
    symbols = subprocess.run(["nm", "-D", "--defined-only", words[1]], capture_output=True, text=True, check=True)
    starts = {name: int(address, 16) for address, _, name in map(str.split, symbols.stdout.splitlines())}
    blocks = {row["block_id"]: row for row in trace.blocks.to_pylist()}
    calls = trace.read("calls").to_pylist()
    assert {row["name"] for row in calls} == {"shelf_open", "shelf_put", "shelf_close", "shelf_count"}
    for row in calls:
        assert blocks[row["block_id"]]["exit_kind"] in ("call", "indirect_call"), row
        came_to = trace.path(row["tid"], process_id=row["process_id"]).blocks(row["position"], 3).tolist()
        assert came_to[0] == row["block_id"]
        assert starts[row["name"]] in {blocks[one]["offset"] for one in came_to[1:]}
    placed = [(row["process_id"], row["tid"], row["position"]) for row in calls]
    assert len(set(placed)) == len(placed)
    assert placed == sorted(placed)


def test_the_c_library_is_described(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("one\n")
    done = run_clew(
        *("--function", "libc*:fopen*", "--function", "libc*:fclose", "--trace", tmp_path / "it.clew"),
        *("-o", tmp_path / "told", "--", "ls", "/usr"),
    )
    assert b"bin" in done.stdout
    entities = {row["entity_id"]: row["name"] for row in clew.Trace(tmp_path / "it.clew").read("entities").to_pylist()}
    opened = [line for line in told_lines(tmp_path / "told") if "!fopen(" in line]
    assert opened
    for line in opened:
        found = re.fullmatch(r'libc\.so\.6!fopen\("(.*)", "r.*"\) = (NULL|SHELF)', line)
        assert found, line
        assert found[1] in entities.values()


def test_what_headers_say_is_told(tmp_path: Path) -> None:
    run_clew("--function", "libc.so*:str*", "-o", tmp_path / "told", "--", "ls", "/usr")
    lines = told_lines(tmp_path / "told")
    assert any(re.fullmatch(r'libc\.so\.6!strcoll\("\w+", "\w+"\) = -?\d+', line) for line in lines)


CHOSEN = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

// By pointers, so that the compiler calls each as it is written.
static size_t (*volatile length)(const char *) = strlen;
static char *(*volatile find)(const char *, int) = strchr;
static time_t (*volatile now)(time_t *) = time;
static int (*volatile now_exactly)(struct timeval *restrict, void *restrict) = gettimeofday;

int main(int argc, char **argv) {
    struct timeval at;
    if (argc > 1) { puts("ready"); fflush(stdout); getchar(); }
    for (int n = 0; n < 5; n++) {
        length("chosen by a resolver");
        find("chosen", 'n');
    }
    long seconds = now(NULL);
    now_exactly(&at, NULL);
    printf("%ld\n", seconds);
    return 0;
}
"""
CHOSEN_NAMES = ("strlen", "strchr", "time", "gettimeofday")


def choosing(folder: Path, *flags: str) -> Path:
    (folder / "chosen.c").write_text(CHOSEN)
    subprocess.run(["gcc", "-O1", "-fno-builtin", *flags, "chosen.c", "-o", "chosen"], cwd=folder, check=True)
    return folder / "chosen"


@pytest.mark.parametrize(("flags", "image"), [((), "libc.so.6"), (("-static",), "chosen")])
def test_what_is_chosen_when_it_is_bound_is_told(flags: tuple[str, ...], image: str, tmp_path: Path) -> None:
    program = choosing(tmp_path, *flags)
    patterns = [word for name in CHOSEN_NAMES for word in ("--function", f"{image}:{name}")]
    # Executed by another program, which has bound the same before at other places.
    done = run_clew(*patterns, "-o", tmp_path / "told", "--", "sh", "-c", f"{program}; :")
    lines = told_lines(tmp_path / "told")
    assert lines.count(f'{image}!strlen("chosen by a resolver") = 20') == 5
    assert sum(line.startswith(f'{image}!strchr("chosen", 110) = ') for line in lines) == 5
    assert f"{image}!time(NULL) = {done.stdout.decode().strip()}" in lines
    assert sum(line.startswith(f"{image}!gettimeofday(") for line in lines) == 1
    assert b"not seen" not in done.stderr


def test_what_was_chosen_before_is_told(tmp_path: Path) -> None:
    program = choosing(tmp_path)
    with subprocess.Popen([program, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        descriptions = load_built_in()
        choice = FunctionChoice([parse_pattern(f"libc.so.6:{name}") for name in CHOSEN_NAMES], descriptions)
        with clew.attach_session(process.pid) as session:
            log = ApiLog(session, descriptions, None, functions=choice)
            session.resume()
            output = process.communicate(b"\n", timeout=60)[0]
            session.wait(60)
            calls = log.read()
    assert not choice.unchosen
    counts = Counter(call.function.name for call in calls)
    assert counts["strchr"] == 5
    assert counts["strlen"] >= 5
    assert [call.result for call in calls if call.function.name == "time"] == [int(output)]
    assert counts["gettimeofday"] == 1


def test_functions_without_symbols_are_told_by_where_they_are(tmp_path: Path) -> None:
    program = choosing(tmp_path, "-static-pie")
    listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    places = {line.split()[2]: int(line.split()[0], 16) for line in listed.splitlines() if len(line.split()) == 3}
    subprocess.run(["strip", program], check=True)
    at = [word for name in ("puts", "fflush", "time") for word in ("--at", f"{name}=chosen+{places[name]:#x}")]
    done = run_clew(
        *at, "--at", "puts=chosen+0x7fffffff", "-o", tmp_path / "told", "--", "sh", "-c", f"echo | {program} x"
    )
    told = told_lines(tmp_path / "told")
    seconds = done.stdout.split()[-1].decode()
    assert told == ['chosen!puts("ready") = 6', "chosen!fflush(SHELF) = 0", f"chosen!time(NULL) = {seconds}"]
    assert b"in nothing that was loaded: puts=chosen+0x7fffffff" in done.stderr


TYPED = r"""
#include <stddef.h>
#include <sys/types.h>
typedef struct hidden hidden_t;
typedef unsigned int color_number;
typedef color_number color_t;
enum mood { GOOD = 1, BAD };
#define APART __attribute__((noinline))
#define KEPT __asm__ volatile("" ::: "memory")

APART ssize_t fill(void *buf, size_t count) { __builtin_memcpy(buf, "filled", 7); KEPT; return count < 6 ? count : 6; }
APART int greet(const char *who, color_t color, enum mood mood, hidden_t *thing, signed char small, void (*then)(int)) {
    KEPT;
    return -(int)color;
}
extern __typeof(greet) welcome __attribute__((alias("greet")));
APART void nothing(const unsigned char *data, size_t length) { KEPT; }
int main(void) {
    char room[9];
    fill(room, 9);
    welcome("me", 7, BAD, (hidden_t *)0x1000, -3, 0);
    nothing((const unsigned char *)"\1\2", 2);
    return 0;
}
"""


def test_debugging_information_describes_what_no_header_does(tmp_path: Path) -> None:
    (tmp_path / "typed.c").write_text(TYPED)
    subprocess.run(["gcc", "-O1", "-g", "typed.c", "-o", "typed"], cwd=tmp_path, check=True)
    names = ("fill", "welcome", "nothing")
    patterns = [word for name in names for word in ("--function", f"typed:{name}")]
    done = run_clew(*patterns, "-o", tmp_path / "told", "--", tmp_path / "typed")
    # By its address: nothing but the symbol table calls it by that name.
    assert told_lines(tmp_path / "told") == [
        'typed!fill("filled", 9) = 6',
        'typed!welcome("me", 7, 0x2, 0x1000, -3, NULL) = -7',
        'typed!nothing("\\1\\2", 2) = <void>',
    ]
    assert b"without a description" not in done.stderr


def test_functions_are_counted_as_they_are_told(words: list[str], tmp_path: Path) -> None:
    told, counted = tmp_path / "told", tmp_path / "counted"
    options = ("--function", "libshelf*:*", "--function", "libc*:mem*", "--filter", "file")
    run_clew(*options, "--json", "-o", told, "--", *words)
    run_clew(*options, "-c", "-o", counted, "--", *words)
    rows = [json.loads(line) for line in told.read_text().splitlines()]
    expected = Counter(row["name"].rpartition("!")[2] for row in rows)
    found = {line.split()[-1]: int(line.split()[1]) for line in counted.read_text().splitlines()[1:]}
    assert found.pop("total") == len(rows)
    assert found == expected


def test_what_no_image_has_tells_nothing(tmp_path: Path) -> None:
    run_clew("--function", "libnone*:*", "-o", tmp_path / "told", "--", "true")
    assert (tmp_path / "told").read_text() == ""


def test_things_of_the_c_library_are_made_used_and_ended(tmp_path: Path) -> None:
    program = build_plain(SOURCES / "api" / "kinds.c", "-O1", "-pthread")
    names = "pthread_* timer_* getaddrinfo freeaddrinfo getpwnam tcgetattr isatty"
    options = [word for name in names.split() for word in ("--function", f"libc*:{name}")]
    trace = tmp_path / "it.clew"
    run_clew(*options, "-o", tmp_path / "told", "--trace", trace, "--", program)
    read = clew.Trace(trace)
    assert not read.verify()
    calls = {row["call_id"]: row["name"] for row in read.read("calls").to_pylist()}
    kinds = {row["entity_id"]: row["kind"] for row in read.read("entities").to_pylist()}
    told: dict[str, list[tuple[str, str]]] = {}
    for row in sorted(read.read("references").to_pylist(), key=lambda row: row["call_id"]):
        told.setdefault(kinds[row["entity_id"]], []).append((calls[row["call_id"]], row["role"]))
    # The C library itself may make calls of these functions, too.
    assert [one for one in told["thread"] if one[0] != "pthread_self"] == [
        ("pthread_create", "created"),
        ("pthread_setname_np", "changed"),
        ("pthread_join", "joined"),
    ]
    assert told["timer"][-3:] == [("timer_create", "created"), ("timer_settime", "changed"), ("timer_delete", "closed")]
    assert told["addresses"] == [("getaddrinfo", "created"), ("freeaddrinfo", "closed")]
    assert ("getpwnam", "created") in told["user"]


TALK = """
import ssl, sys
certificate = sys.argv[1]
server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
server.load_cert_chain(certificate)
client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
ways = ssl.MemoryBIO(), ssl.MemoryBIO()
ends = client.wrap_bio(*ways), server.wrap_bio(*ways[::-1], server_side=True)
for _ in range(3):
    for end in ends:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            pass
ends[0].write(b"GET /the/page")
assert ends[1].read(100) == b"GET /the/page"
try:
    ends[1].read(100)
except ssl.SSLWantReadError:
    pass
"""


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no program that makes certificates")
def test_what_goes_through_tls_is_told_in_the_clear(tmp_path: Path) -> None:
    made = tmp_path / "both.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=here", "-days", "2"]
    subprocess.run([*words, "-keyout", made, "-out", tmp_path / "certificate"], check=True, capture_output=True)
    made.write_text(made.read_text() + (tmp_path / "certificate").read_text())
    options = ("--function", "libssl*:SSL_write*", "--function", "libssl*:SSL_read*", "-o", tmp_path / "told")
    run_clew(*options, "--", sys.executable, "-S", "-E", "-c", TALK, made)
    lines = [re.sub(r"0x[0-9a-f]+", "ADDRESS", line) for line in told_lines(tmp_path / "told")]
    lines = [line.partition("!")[2] for line in lines if "_ex(" in line]
    assert lines[:2] == [
        'SSL_write_ex(SHELF, "GET /the/page", 13, SHELF) = 1',
        'SSL_read_ex(SHELF, "GET /the/page", 100, SHELF) = 1',
    ]
