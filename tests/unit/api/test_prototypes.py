"""Prototypes of libraries' functions: what lines say, what is made of them, and whether a compiler agrees."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.api.c_prototypes import Access, Prototype, parse_prototype
from clew.api.description import FlagTable, Function
from clew.api.descriptions import Descriptions
from clew.api.generate.prototypes_capture import format_sections
from clew.api.header_cursors import Section, declarator
from clew.api.library_types import LibraryTypes, describe_arguments
from clew.api.prototypes import PROTOTYPES, Prototypes
from clew.api.reading import load_built_in
from clew.api.text import call_text, result_text
from clew.api.vocabulary import POINTERS, RAW_TYPES

ALL = Prototypes()
HEADERS = (
    *(
        "stdio.h",
        "stdlib.h",
        "string.h",
        "unistd.h",
        "fcntl.h",
        "time.h",
        "wchar.h",
        "wctype.h",
        "ctype.h",
        "pthread.h",
    ),
    *("signal.h", "dirent.h", "pwd.h", "grp.h", "netdb.h", "locale.h", "search.h", "sched.h", "semaphore.h", "poll.h"),
    *("sys/stat.h", "sys/mman.h", "sys/wait.h", "sys/time.h", "sys/uio.h", "sys/epoll.h", "sys/ipc.h", "sys/shm.h"),
    *(
        "arpa/inet.h",
        "regex.h",
        "glob.h",
        "ftw.h",
        "syslog.h",
        "termios.h",
        "argz.h",
        "envz.h",
        "spawn.h",
        "langinfo.h",
    ),
)
"""Of the C library, with what a compiler is asked."""


def find(library: str, name: str) -> Function:
    found = ALL.find(library, name)
    assert found is not None, name
    return found


def shown(function: Function) -> list[tuple[str, str, str]]:
    return [(one.name, one.c_type, one.raw_type) for one in function.parameters or ()]


def names_of_functions() -> list[tuple[str, str]]:
    return [(pattern, name) for pattern, names in ALL.names().items() for name in names]


def test_there_are_thousands_of_functions_of_dozens_of_libraries() -> None:
    names = ALL.names()
    assert len({name for library in names.values() for name in library}) >= 15_000
    assert len(names) >= 40
    assert len(names["libc.so*"]) >= 1_500
    assert len(names["libcrypto.so*"]) >= 4_000


@pytest.mark.parametrize(
    ("library", "name", "parameters"),
    [
        (
            "libz.so.1.2.13",
            "deflate",
            [("strm", "z_streamp", "pointer"), ("flush", "int", "int"), ("result", "int", "int")],
        ),
        (
            "libz.so.1",
            "compressBound",
            [("sourceLen", "unsigned long", "ulong"), ("result", "unsigned long", "ulong")],
        ),
        (
            "libc.so.6",
            "fopen",
            [
                ("filename", "const char *", "path"),
                ("modes", "const char *", "string"),
                ("result", "FILE *", "pointer"),
            ],
        ),
        (
            "libc.so.6",
            "read",
            [
                ("fd", "int", "fd"),
                ("buf", "void *", "buffer"),
                ("nbytes", "size_t", "size"),
                ("result", "ssize_t", "long"),
            ],
        ),
        ("libc.so.6", "getenv", [("name", "const char *", "string"), ("result", "char *", "string")]),
        ("libc.so.6", "free", [("ptr", "void *", "pointer"), ("result", "void", "hex")]),
        ("libc.so.6", "exit", [("status", "int", "int")]),
        ("libc.so.6", "printf", [("format", "const char *", "string"), ("result", "int", "int")]),
        (
            "libc.so.6",
            "bind",
            [
                ("fd", "int", "fd"),
                ("addr", "__CONST_SOCKADDR_ARG", "sockaddr"),
                ("len", "socklen_t", "uint"),
                ("result", "int", "int"),
            ],
        ),
        (
            "libc.so.6",
            "execv",
            [("path", "const char *", "path"), ("argv", "char *const *", "pointer"), ("result", "int", "int")],
        ),
        ("libm.so.6", "ldexp", [("x", "double", "float"), ("exponent", "int", "int"), ("result", "double", "float")]),
        (
            "libssl.so.3",
            "SSL_write",
            [
                ("ssl", "SSL *", "pointer"),
                ("buf", "const void *", "buffer"),
                ("num", "int", "int"),
                ("result", "int", "int"),
            ],
        ),
        (
            "libcrypto.so.3",
            "BIO_meth_get_write",
            [
                ("biom", "const BIO_METHOD *", "pointer"),
                ("result", "int (*)(BIO *, const char *, int)", "pointer"),
            ],
        ),
        (
            "libsqlite3.so.0.8.6",
            "sqlite3_open",
            [("filename", "const char *", "path"), ("ppDb", "sqlite3 **", "pointer"), ("result", "int", "int")],
        ),
        ("libcurl.so.4", "curl_easy_init", [("result", "CURL *", "pointer")]),
        ("libglib-2.0.so.0", "g_strdup", [("str", "const gchar *", "string"), ("result", "gchar *", "string")]),
    ],
)
def test_functions_are_what_their_headers_say(library: str, name: str, parameters: list[tuple[str, str, str]]) -> None:
    assert shown(find(library, name)) == parameters


@pytest.mark.parametrize(
    ("library", "name", "index", "entity"),
    [
        ("libc.so.6", "fclose", 0, "FILE"),
        ("libssl.so.3", "SSL_read", 0, "SSL"),
        ("libsqlite3.so.0", "sqlite3_close", 0, "sqlite3"),
        ("libcurl.so.4", "curl_easy_perform", 0, "CURL"),
        ("libz.so.1", "gzclose", 0, "gzFile"),
        ("libevent-2.1.so.7", "event_base_free", 0, "event_base"),
        ("libc.so.6", "close", 0, "File"),
        ("libX11.so.6", "XOpenDisplay", -1, "Display"),
    ],
)
def test_handles_stand_for_things(library: str, name: str, index: int, entity: str) -> None:
    parameter = next(one for one in find(library, name).parameters or () if one.index == index)
    assert (parameter.type, parameter.entity_type) == ("Reference", entity)


def test_libraries_choose_filters_and_other_libraries_have_no_such_function() -> None:
    assert find("libcrypto.so.3", "EVP_DigestUpdate").filter == "Crypto"
    assert find("libz.so.1", "inflate").filter == "Compression"
    assert find("libsqlite3.so.0", "sqlite3_step").filter == "Database"
    assert find("libcurl.so.4", "curl_easy_setopt").filter == "Network"
    assert find("libc.so.6", "puts").filter == "Other"
    assert find("libc.so.6", "puts").error == "none"
    assert ALL.find("libz.so.1", "puts") is None
    assert ALL.find("libnothing.so.1", "puts") is None
    assert ALL.find_anywhere("puts") is find("libc.so.6", "puts")
    assert ALL.find_anywhere("there_is_no_such_function") is None


def test_calls_are_written_by_prototypes() -> None:
    nothing = Descriptions()
    opened = call_text(find("libc.so.6", "fopen"), [b"/etc/hosts\0", b"r\0"], 0x5000, nothing)
    assert opened == 'fopen("/etc/hosts", "r") = 0x5000'
    assert result_text(find("libc.so.6", "free"), 7, nothing) == "<void>"
    assert call_text(find("libz.so.1", "compressBound"), [1 << 40], 1 << 41, nothing) == (
        f"compressBound({1 << 40}) = {1 << 41}"
    )


def test_buffers_have_the_bytes_that_are_said_behind_them() -> None:
    read = find("libc.so.6", "read").arguments[1]
    assert (read.direction, read.when, read.size_index, read.room_index) == ("out", "exit", -1, 2)
    write = find("libc.so.6", "write").arguments[1]
    assert (write.direction, write.when, write.size_index) == ("in", "entry", 2)
    # A size of one element is not the buffer's.
    assert find("libc.so.6", "fwrite").arguments[0].size_index is None


def argument(library: str, name: str, own: str) -> tuple[object, ...]:
    one = next(one for one in find(library, name).arguments if one.name == own)
    return one.raw_type, one.direction, one.struct, one.size_index, one.count


@pytest.mark.parametrize(
    ("name", "own", "said"),
    [
        # Text that ends by itself, of which no more is written.
        ("gethostname", "buf", ("string", "out", None, None, None)),
        ("fgets", "s", ("string", "out", None, None, None)),
        # The result is how much there is.
        ("readlink", "buf", ("buffer", "out", None, -1, None)),
        ("getxattr", "value", ("buffer", "out", None, -1, None)),
        ("setxattr", "value", ("buffer", "in", None, 3, None)),
        ("getentropy", "buffer", ("buffer", "out", None, 1, None)),
        # Arrays have so many elements.
        ("getgroups", "list", ("struct", "out", "gid", None, 0)),
        ("poll", "fds", ("struct", "out", "pollfd", None, 1)),
        # Structures that clew's descriptions have, too.
        ("stat", "buf", ("struct", "inout", "stat", None, None)),
        ("sendmsg", "message", ("struct", "in", "msghdr", None, None)),
        # What is laid out otherwise than the kernel has it is another one.
        ("sigaction", "act", ("struct", "in", None, None, None)),
    ],
)
def test_attributes_and_layouts_say_what_arguments_lead_to(name: str, own: str, said: tuple[object, ...]) -> None:
    assert argument("libc.so.6", name, own) == said


def _said_by_hand() -> Iterator[tuple[str, Function]]:
    """Functions, and system calls that are functions of the C library, by its arguments."""
    described = load_built_in()
    own = (key for key, function in described.functions.items() if function.call is None)
    yield from ((pattern, described.functions[pattern, name]) for pattern, name in own)
    yield from (("libc.so*", function) for function in described.system_calls.values() if function.parameters)


def test_what_is_written_by_hand_does_not_contradict_attributes() -> None:
    held = []
    for pattern, function in _said_by_hand():
        if function.name not in ALL.names().get(pattern, ()):
            continue
        prototype = parse_prototype(ALL.line(pattern, function.name))
        by_index = {one.index: one for one in function.arguments}
        if len(prototype.arguments) != len(by_index):
            # The kernel's has others than its function in the library.
            continue
        for access in prototype.accesses:
            own = by_index[access.index]
            where = f"{function.name}: {own.name}"
            held.append(where)
            # Who reads and writes may have said that it writes.
            assert own.direction in (access.direction, "inout"), where
            sizes = {own.size_index, own.room_index, own.count} - {None, -1}
            assert access.size_index is None or not sizes or sizes == {access.size_index}, where
    assert len(held) >= 20


def test_enumerations_have_names() -> None:
    tables: dict[str, FlagTable] = {}
    own = Prototypes(add_table=lambda table: tables.update({table.name: table}))
    function = own.find("libcurl.so.4", "curl_easy_setopt")
    assert function is not None
    table = tables[function.arguments[1].flags or ""]
    assert table.kind == "enum"
    assert next(flag.name for flag in table.flags if flag.value == 10002) == "CURLOPT_URL"
    assert own.find("libgio-2.0.so.0", "g_application_new") is not None
    assert tables["libgio-2.0.so* GApplicationFlags"].kind == "flags"
    for one in tables.values():
        assert len({flag.name for flag in one.flags}) == len(one.flags)


def test_every_line_parses_and_makes_a_function() -> None:
    for pattern, name in names_of_functions():
        line = ALL.line(pattern, name)
        prototype = parse_prototype(line)
        assert prototype.name == name, line
        # Words of a type are no name, and a name is none of its type.
        assert all(
            re.fullmatch(r"\w*", own) and c_type.count("(") == c_type.count(")") for c_type, own in prototype.arguments
        )
        assert not any(re.search(r"[])] *\w+$", c_type) for c_type, _ in prototype.arguments), line
        function = find(pattern.replace("*", ".0"), name)
        assert [one.index for one in function.arguments] == list(range(len(prototype.arguments)))
        for one in function.parameters or ():
            assert one.raw_type in RAW_TYPES
            assert one.name and one.c_type
            assert one.type == "Info" or one.entity_type or one.raw_type == "mode"
            assert one.size_index is None or one.raw_type in POINTERS


@pytest.mark.parametrize(
    ("line", "prototype"),
    [
        ("int f(void)", Prototype("f", (), "int")),
        ("char *f(unsigned int, const char *)", Prototype("f", (("unsigned int", ""), ("const char *", "")), "char *")),
        ("void f(struct s, struct s own)", Prototype("f", (("struct s", ""), ("struct s", "own")), "void")),
        ("int f(const own, const own *)", Prototype("f", (("const own", ""), ("const own *", "")), "int")),
        ("int f(const char *format, ...)", Prototype("f", (("const char *", "format"),), "int", True)),
        ("_Noreturn void f(int code)", Prototype("f", (("int", "code"),), None)),
        ("int f(int pair[2], char *const v[])", Prototype("f", (("int *", "pair"), ("char *const *", "v")), "int")),
        ("int f(int grid[2][3])", Prototype("f", (("int (*)[3]", "grid"),), "int")),
        ("int f(int (*grid)[3])", Prototype("f", (("int (*)[3]", "grid"),), "int")),
        ("void f(int (*g)(int, char *), int n)", Prototype("f", (("int (*)(int, char *)", "g"), ("int", "n")), "void")),
        ("void f(int (*const g)(char))", Prototype("f", (("int (*const)(char)", "g"),), "void")),
        ("void f(int (*constant)(char))", Prototype("f", (("int (*)(char)", "constant"),), "void")),
        ("int (*f(long n))(char)", Prototype("f", (("long", "n"),), "int (*)(char)")),
        ("void (*f(void (*)(int)))(int)", Prototype("f", (("void (*)(int)", ""),), "void (*)(int)")),
        (
            "int f(char *p, int n, long *q) // write_only 1 2, read_write 3",
            Prototype(
                "f",
                (("char *", "p"), ("int", "n"), ("long *", "q")),
                "int",
                accesses=(Access(0, "out", 1), Access(2, "inout")),
            ),
        ),
    ],
)
def test_lines_of_all_forms_parse(line: str, prototype: Prototype) -> None:
    assert parse_prototype(line) == prototype


@pytest.mark.parametrize(
    "line", ["", "int f", "int f(int", "f()", "int f(int, )", "int f(int) // reads 1", "int f(int) // read_only 2"]
)
def test_what_is_no_prototype_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        parse_prototype(line)


@given(st.text(alphabet="abt_1 *(),.[]", max_size=40))
def test_any_text_is_a_prototype_or_refused(text: str) -> None:
    try:
        prototype = parse_prototype(text)
    except ValueError:
        return
    assert prototype.name in text


@pytest.mark.parametrize(
    ("c_type", "declared"),
    [
        ("int", "int own"),
        ("char *", "char *own"),
        ("char *const", "char *const own"),
        ("struct s *[]", "struct s *own[]"),
        ("int[2][3]", "int own[2][3]"),
        ("int (*)(char *)", "int (*own)(char *)"),
        ("int (*const)(char *)", "int (*const own)(char *)"),
        ("int (*)[3]", "int (*own)[3]"),
    ],
)
def test_types_with_names_are_as_c_has_them(c_type: str, declared: str) -> None:
    assert declarator(c_type, "own") == declared
    assert declarator(c_type, "") == c_type


def test_what_is_captured_is_read_again(tmp_path: Path) -> None:
    section = Section({"f": "int f(handle h, word w)"}, {"handle": "struct s *", "word": "unsigned long"}, {"struct s"})
    path = tmp_path / "prototypes.txt"
    path.write_text(format_sections({"libown.so*": section}, "here"), encoding="ascii")
    function = Prototypes(path).find("libown.so.2", "f")
    assert function is not None
    assert shown(function) == [("h", "handle", "pointer"), ("w", "unsigned long", "ulong"), ("result", "int", "int")]
    assert function.arguments[0].entity_type == "handle"


def test_typedefs_in_a_circle_end() -> None:
    types = LibraryTypes({"a": "b", "b": "a"})
    (parameter,) = describe_arguments(parse_prototype("int f(a x)"), types)
    assert parameter.raw_type == "raw"


def _pointer_to(prototype: Prototype, pointer: str) -> str:
    """A declaration of `pointer`, which leads to such a function."""
    arguments = [c_type for c_type, _ in prototype.arguments] + ["..."] * prototype.is_variadic
    inner = f"(*{pointer})({', '.join(arguments) or 'void'})"
    result = prototype.result or "void"
    return result.replace("(*", f"(*{inner}", 1) if "(*" in result else f"{result} {inner}"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler")
def test_a_compiler_agrees(tmp_path: Path) -> None:
    includes = "".join(f"#include <{header}>\n" for header in HEADERS)
    command = ["gcc", "-D_GNU_SOURCE", "-std=gnu11", "-fno-builtin", "-x", "c", "-"]
    told = subprocess.run([*command, "-E", "-P"], input=includes, capture_output=True, text=True, check=True).stdout
    declared = sorted(set(re.findall(r"\b(\w+) ?\(", told)) & set(ALL.names()["libc.so*"]))
    assert len(declared) > 800
    sample = random.Random(1).sample(declared, 700)
    assigned = [
        f"{_pointer_to(parse_prototype(ALL.line('libc.so*', name)), f'own_{name}')} = {name};" for name in sample
    ]
    # Arguments that gcc wants never to be null, and old names, are no matter of types.
    strict = ["-fsyntax-only", "-Werror=incompatible-pointer-types", "-Wno-deprecated-declarations"]
    source = "\n".join([includes, *assigned, ""])
    answer = subprocess.run([*command, *strict], input=source, capture_output=True, text=True, check=False)
    wrong = [line for line in answer.stderr.splitlines() if "error:" in line]
    assert answer.returncode == 0, "\n".join(wrong)
    # The compiler does see what is wrong.
    source += "int (*own_wrong)(char **) = puts;\n"
    assert subprocess.run([*command, *strict], input=source, capture_output=True, text=True, check=False).returncode


def test_looking_for_a_function_is_fast() -> None:
    spent = []
    for _ in range(5):
        begin = time.process_time()
        fresh = Prototypes()
        assert fresh.find("libz.so.1", "deflate") and fresh.find_anywhere("uv_run")
        spent.append(time.process_time() - begin)
    # Alone it takes a tenth of that.
    assert min(spent) < 0.3


def test_nothing_is_read_when_the_module_is_imported() -> None:
    code = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "import clew.api.prototypes as module; made = module.Prototypes()\n"
        "print(any(name.endswith('prototypes.txt') for name in opened), 'clang' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROTOTYPES.parents[2]
    )
    assert told.stdout.split() == ["False", "False"]
