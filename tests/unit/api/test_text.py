"""Calls as text. The lines are what strace(1) printed of these calls, but for the padding in front of the result."""

from __future__ import annotations

import struct
from random import Random

import pytest

from clew.api.description import Function, Parameter
from clew.api.descriptions import Descriptions
from clew.api.reading import load_built_in
from clew.api.text import Pointed, Value, argument_text, call_text, result_text
from clew.api.values import escaped

ADDRESS = 0x7FFD28C6E620
AT_FDCWD = 0xFFFFFF9C
INTERNET = struct.pack("<H", 2) + bytes([0, 80, 127, 0, 0, 1]) + bytes(8)
THREAD = struct.pack("<4Q", 0x100100, 0, 0, ADDRESS) + bytes(56)
"""Arguments of clone3."""
HANDLE = struct.pack("<Ii", 2, 1) + b"\5\x40"
UNIX = struct.pack("<H", 1) + b"/run/x\0"


@pytest.fixture(scope="module")
def descriptions() -> Descriptions:
    return load_built_in()


def failed(errno: int) -> int:
    """What a register holds behind a system call that failed."""
    return 2**64 - errno


def at(data: bytes | None, address: int = ADDRESS, *, is_cut: bool = False) -> Pointed:
    return Pointed(address, data, is_cut)


def parameter(raw_type: str, c_type: str = "int", flags: str | None = None) -> Parameter:
    return Parameter(0, "it", c_type, raw_type, flags=flags)


@pytest.mark.parametrize(
    ("name", "values", "result", "line"),
    [
        (
            "openat",
            [AT_FDCWD, at(b"/etc/hostname\0"), 0x80000, 0],
            3,
            'openat(AT_FDCWD, "/etc/hostname", O_RDONLY|O_CLOEXEC) = 3',
        ),
        (
            "openat",
            [AT_FDCWD, at(b"x\0"), 0x80241, 0o644],
            4,
            'openat(AT_FDCWD, "x", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0644) = 4',
        ),
        (
            "openat",
            [AT_FDCWD, at(b"/nonexistent\0"), 0x80002, 0],
            failed(2),
            'openat(AT_FDCWD, "/nonexistent", O_RDWR|O_CLOEXEC) = -1 ENOENT (No such file or directory)',
        ),
        (
            "clone",
            [0x1200011, 0, 0, ADDRESS, 0],
            27546,
            "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, "
            "child_tidptr=0x7ffd28c6e620) = 27546",
        ),
        ("preadv", [3, at(b""), 0, 7, 0], 0, "preadv(3, [], 0, 7) = 0"),
        (
            "mknod",
            [at(b"x\0"), 0o20666, 0x103, 0],
            failed(1),
            'mknod("x", S_IFCHR|0666, makedev(0x1, 0x3)) = -1 EPERM (Operation not permitted)',
        ),
        ("mknod", [at(b"x\0"), 0o644, 0x103, 0], 0, 'mknod("x", 0644) = 0'),
        (
            "reboot",
            [0xFEE1DEAD, 672274793, 0, ADDRESS],
            failed(1),
            "reboot(LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_CAD_OFF) = "
            "-1 EPERM (Operation not permitted)",
        ),
        ("setgroups", [0, ADDRESS], 0, "setgroups(0, []) = 0"),
        ("msgget", [0, 0], 1, "msgget(IPC_PRIVATE, 000) = 1"),
        (
            "mmap",
            [0, 8, 0, 0, 3, 0],
            failed(22),
            "mmap(NULL, 8, PROT_NONE, MAP_FILE, 3, 0) = -1 EINVAL (Invalid argument)",
        ),
        ("personality", [0xFFFFFFFF], 0x40000, "personality(0xffffffff) = 0x40000 (flags PER_LINUX|ADDR_NO_RANDOMIZE)"),
        (
            "msgsnd",
            [5, at(b"\1" + bytes(7) + b"hello"), 5, 0],
            0,
            'msgsnd(5, {mtype=1, mtext="hello"}, 5, 0) = 0',
        ),
        (
            "clone3",
            [Pointed(ADDRESS, THREAD, before=THREAD, inner={("parent_tid",): b"\7\0\0\0"}), 88],
            7,
            "clone3({flags=CLONE_VM|CLONE_PARENT_SETTID, parent_tid=0x7ffd28c6e620, exit_signal=0, stack=NULL, "
            "stack_size=0} => {parent_tid=[7]}, 88) = 7",
        ),
        (
            "clone3",
            [Pointed(ADDRESS, None, before=THREAD), 88],
            failed(22),
            "clone3({flags=CLONE_VM|CLONE_PARENT_SETTID, parent_tid=0x7ffd28c6e620, exit_signal=0, stack=NULL, "
            "stack_size=0}, 88) = -1 EINVAL (Invalid argument)",
        ),
        (
            "name_to_handle_at",
            [AT_FDCWD, at(b"x\0"), Pointed(ADDRESS, HANDLE, before=b"\x80" + bytes(7)), at(b"\3\0\0\0"), 0],
            0,
            r'name_to_handle_at(AT_FDCWD, "x", {handle_bytes=128 => 2, handle_type=1, f_handle="\x05\x40"}, [3], '
            "0) = 0",
        ),
        ("read", [3, at(b"vm\n"), 5], 3, 'read(3, "vm\\n", 5) = 3'),
        (
            "write",
            [3, at(b'hi\n\0\0011"x' + b"a" * 40), 48],
            48,
            'write(3, "hi\\n\\0\\0011\\"xaaaaaaaaaaaaaaaaaaaaaaaa"..., 48) = 48',
        ),
        ("close", [3], 0, "close(3) = 0"),
        ("close", [0xFFFFFFFF], failed(9), "close(-1) = -1 EBADF (Bad file descriptor)"),
        ("brk", [0], 0x56044E6E0000, "brk(NULL) = 0x56044e6e0000"),
        (
            "mmap",
            [0, 8192, 3, 0x22, 0xFFFFFFFF, 0],
            0x7FA72D58D000,
            "mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7fa72d58d000",
        ),
        (
            "mmap",
            [0x7FA72C8B9000, 8192, 5, 0x812, 3, 0x2000],
            0x7FA72C8B9000,
            "mmap(0x7fa72c8b9000, 8192, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED|MAP_DENYWRITE, 3, 0x2000)"
            " = 0x7fa72c8b9000",
        ),
        (
            "madvise",
            [0x7FA72D584000, 8192, 4],
            0,
            "madvise(0x7fa72d584000, 8192, MADV_DONTNEED) = 0",
        ),
        ("lseek", [3, 0, 1], 0, "lseek(3, 0, SEEK_CUR) = 0"),
        ("lseek", [3, 2**64 - 5, 2], 7, "lseek(3, -5, SEEK_END) = 7"),
        (
            "newfstatat",
            [AT_FDCWD, at(b"/x\0"), ADDRESS, 0],
            failed(2),
            'newfstatat(AT_FDCWD, "/x", 0x7ffd28c6e620, 0) = -1 ENOENT (No such file or directory)',
        ),
        (
            "ioctl",
            [3, 0x5401, ADDRESS],
            failed(25),
            "ioctl(3, TCGETS, 0x7ffd28c6e620) = -1 ENOTTY (Inappropriate ioctl for device)",
        ),
        ("fcntl", [3, 3, 0], 0x8001, "fcntl(3, F_GETFL) = 0x8001 (flags O_WRONLY|O_LARGEFILE)"),
        ("fcntl", [3, 2, 1], 0, "fcntl(3, F_SETFD, FD_CLOEXEC) = 0"),
        ("fcntl", [3, 1030, 10], 11, "fcntl(3, F_DUPFD_CLOEXEC, 10) = 11"),
        ("fchmod", [3, 0o600], 0, "fchmod(3, 0600) = 0"),
        ("umask", [0o22], 0o22, "umask(022) = 022"),
        ("mkdir", [at(b"d\0"), 0o755], 0, 'mkdir("d", 0755) = 0'),
        ("access", [at(b"/etc\0"), 5], 0, 'access("/etc", R_OK|X_OK) = 0'),
        ("access", [at(b"/etc\0"), 0], 0, 'access("/etc", F_OK) = 0'),
        ("socket", [2, 0x80001, 0], 4, "socket(AF_INET, SOCK_STREAM|SOCK_CLOEXEC, IPPROTO_IP) = 4"),
        ("socket", [1, 0x80002, 0], 5, "socket(AF_UNIX, SOCK_DGRAM|SOCK_CLOEXEC, 0) = 5"),
        (
            "connect",
            [4, at(INTERNET), 16],
            failed(111),
            'connect(4, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16)'
            " = -1 ECONNREFUSED (Connection refused)",
        ),
        ("connect", [5, at(UNIX), 9], 0, 'connect(5, {sa_family=AF_UNIX, sun_path="/run/x"}, 9) = 0'),
        ("pipe2", [at(None), 0x80000], 0, "pipe2(0x7ffd28c6e620, O_CLOEXEC) = 0"),
        ("kill", [28122, 0], 0, "kill(28122, 0) = 0"),
        ("kill", [2**64 - 1, 15], failed(3), "kill(-1, SIGTERM) = -1 ESRCH (No such process)"),
        ("getpid", [], 28122, "getpid() = 28122"),
        (
            "clock_nanosleep",
            [1, 1, at(struct.pack("<qq", 81139, 9838372)), 0],
            0,
            "clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, {tv_sec=81139, tv_nsec=9838372}, NULL) = 0",
        ),
        ("getcwd", [at(b"/work\0"), 1024], 6, 'getcwd("/work", 1024) = 6'),
        (
            "readlink",
            [at(b"/proc/self/exe\0"), at(b"/opt/pythons/versions/3.11.7/bin/python3.11"), 4096],
            43,
            'readlink("/proc/self/exe", "/opt/pythons/versions/3.11.7/bin"..., 4096) = 43',
        ),
        (
            "futex",
            [ADDRESS, 0x81, 1, 0, 0, 0],
            0,
            "futex(0x7ffd28c6e620, FUTEX_WAKE_PRIVATE, 1) = 0",
        ),
        (
            "futex",
            [ADDRESS, 0x80, 2, 0, 0, 0],
            failed(11),
            "futex(0x7ffd28c6e620, FUTEX_WAIT_PRIVATE, 2, NULL) = -1 EAGAIN (Resource temporarily unavailable)",
        ),
        ("munmap", [0x7FA72D584000, 8192], 0, "munmap(0x7fa72d584000, 8192) = 0"),
        ("exit_group", [0], None, "exit_group(0) = ?"),
    ],
)
def test_calls_are_written_as_by_strace(
    descriptions: Descriptions, name: str, values: list[Value], result: int | None, line: str
) -> None:
    call = descriptions.find_system_call(name)
    assert call is not None
    assert call_text(call, values, result, descriptions) == line


@pytest.mark.parametrize(
    ("one", "value", "text"),
    [
        (parameter("int"), 0xFFFFFFFF, "-1"),
        (parameter("int", "long"), 0xFFFFFFFF, "4294967295"),
        (parameter("long", "long"), 2**64 - 2, "-2"),
        (parameter("uint", "unsigned int"), 0x1_FFFF_FFFF, "4294967295"),
        (parameter("ulong", "unsigned long"), 2**64 - 1, "18446744073709551615"),
        (parameter("hex", "unsigned long"), 255, "0xff"),
        (parameter("hex", "unsigned long"), 0, "0"),
        (parameter("pointer", "void *"), 0, "NULL"),
        (parameter("pointer", "void *"), -1, "0xffffffffffffffff"),
        (parameter("pointer", "void *"), None, "?"),
        (parameter("fd"), 0xFFFFFF9C, "AT_FDCWD"),
        (parameter("fd"), 0xFFFFFFFF, "-1"),
        (parameter("size", "size_t"), 2**63, "9223372036854775808"),
        (parameter("offset", "off_t"), 2**64 - 1, "-1"),
        (parameter("mode", "umode_t"), 0, "000"),
        (parameter("mode", "umode_t"), 0o100644, "0100644"),
        (parameter("uid", "uid_t"), 0xFFFFFFFF, "-1"),
        (parameter("gid", "gid_t"), 1000, "1000"),
        (parameter("signal"), 9, "SIGKILL"),
        (parameter("signal"), 99, "99"),
        (parameter("clock", "clockid_t"), 0, "CLOCK_REALTIME"),
        (parameter("clock", "clockid_t"), 0xFFFFFFFA, "-6"),
        (parameter("flags", flags="open_flags"), 0x40000241, "O_WRONLY|O_CREAT|O_TRUNC|0x40000000"),
        (parameter("flags", flags="open_flags"), 0x410002, "O_RDWR|O_TMPFILE"),
        (parameter("flags", flags="open_flags"), 0x101000, "O_RDONLY|O_SYNC"),
        (parameter("flags", flags="open_flags"), 3, "0x3"),
        (parameter("flags", flags="protection"), 0, "PROT_NONE"),
        (parameter("flags", flags="message_flags"), 0, "0"),
        (parameter("flags", flags="clone_flags"), 0x1200011, "CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD"),
        (parameter("flags", flags="no such table"), 0x81, "0x81"),
        (parameter("flags"), 0, "0"),
        (parameter("enum", flags="seek_ways"), 2, "SEEK_END"),
        (parameter("enum", flags="seek_ways"), 77, "0x4d"),
        (parameter("enum", flags="usage_of"), 0xFFFFFFFF, "RUSAGE_CHILDREN"),
        (parameter("path", "char *"), b"a\0b", '"a"'),
        (parameter("path", "char *"), at(b"ab", is_cut=True), '"ab"...'),
        (parameter("path", "char *"), at(b"a" * 40 + b"\0"), f'"{"a" * 40}"'),
        (parameter("path", "char *"), at(None), "0x7ffd28c6e620"),
        (parameter("path", "char *"), at(None, 0), "NULL"),
        (parameter("path", "char *"), ADDRESS, "0x7ffd28c6e620"),
        (parameter("string", "char *"), at(b"a" * 33 + b"\0"), f'"{"a" * 32}"...'),
        (
            parameter("string", "char *"),
            b'\t\n\v\f\r"\\\x1b[\x7f\xc3\xa9',
            '"\\t\\n\\v\\f\\r\\"\\\\\\33[\\177\\303\\251"',
        ),
        (parameter("buffer", "void *"), b"\0001\0009\0a", '"\\0001\\0009\\0a"'),
        (parameter("buffer", "void *"), b"", '""'),
        (parameter("buffer", "void *"), at(b"ab", is_cut=True), '"ab"...'),
        (parameter("timespec", "struct timespec *"), struct.pack("<qq", -1, 5), "{tv_sec=-1, tv_nsec=5}"),
        (parameter("timespec", "struct timespec *"), at(b"short"), "0x7ffd28c6e620"),
        (parameter("struct", "struct stat *"), at(b"anything"), "0x7ffd28c6e620"),
        (parameter("sockaddr", "struct sockaddr *"), at(struct.pack("<H", 1)), "{sa_family=AF_UNIX}"),
        (
            parameter("sockaddr", "struct sockaddr *"),
            at(struct.pack("<H", 1) + b"\0abc"),
            '{sa_family=AF_UNIX, sun_path=@"abc"}',
        ),
        (
            parameter("sockaddr", "struct sockaddr *"),
            at(struct.pack("<H", 10) + bytes([0, 53]) + bytes(19) + b"\1" + bytes(4)),
            "{sa_family=AF_INET6, sin6_port=htons(53), sin6_flowinfo=htonl(0),"
            ' inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}',
        ),
        (
            parameter("sockaddr", "struct sockaddr *"),
            at(struct.pack("<H", 16) + b"\1\2"),
            '{sa_family=AF_NETLINK, sa_data="\\1\\2"}',
        ),
        (parameter("sockaddr", "struct sockaddr *"), at(struct.pack("<H", 777)), "{sa_family=0x309}"),
    ],
)
def test_arguments_are_written_by_their_raw_type(
    descriptions: Descriptions, one: Parameter, value: Value, text: str
) -> None:
    assert argument_text(one, value, descriptions) == text


def test_a_limit_is_for_strings_and_buffers_only(descriptions: Descriptions) -> None:
    assert argument_text(parameter("buffer"), b"abcdef", descriptions, limit=2) == '"ab"...'
    assert argument_text(parameter("string"), b"abcdef\0", descriptions, limit=6) == '"abcdef"'
    assert argument_text(parameter("path"), b"abcdef\0", descriptions, limit=2) == '"abcdef"'
    assert argument_text(parameter("buffer"), b"a" * 99, descriptions, limit=None) == f'"{"a" * 99}"'


def function(error: str, c_type: str, raw_type: str) -> Function:
    return Function("f", "Other", (Parameter(-1, "result", c_type, raw_type),), error=error)


@pytest.mark.parametrize(
    ("described", "value", "errno", "text"),
    [
        (function("none", "int", "int"), 2**32 - 1, None, "-1"),
        (function("minus_one_errno", "int", "int"), 2**32 - 1, 13, "-1 EACCES (Permission denied)"),
        (function("minus_one_errno", "int", "int"), 2**32 - 1, None, "-1"),
        (function("minus_one_errno", "int", "int"), 5, 13, "5"),
        (function("null_errno", "void *", "pointer"), 0, 12, "NULL ENOMEM (Cannot allocate memory)"),
        (function("null_errno", "void *", "pointer"), 0, None, "NULL"),
        (function("null_errno", "void *", "pointer"), 4096, 12, "0x1000"),
        (function("negative_errno", "long", "int"), failed(4095), None, "-1 (errno 4095)"),
        (function("negative_errno", "long", "long"), failed(4096), None, "-4096"),
        (function("negative_errno", "long", "pointer"), failed(4096), None, "0xfffffffffffff000"),
        (function("none", "void", "int"), 3, None, "<void>"),
        (function("none", "int", "int"), None, None, "?"),
        (
            Function("f", "Other", None, {"x86_64": 1}, "negative_errno"),
            failed(38),
            None,
            "-1 ENOSYS (Function not implemented)",
        ),
        (Function("f", "Other", None, {"x86_64": 1}, "negative_errno"), 7, None, "7"),
        (Function("f", "Other", ()), 255, None, "0xff"),
    ],
)
def test_results_tell_errors_by_the_functions_convention(
    descriptions: Descriptions, described: Function, value: int | None, errno: int | None, text: str
) -> None:
    assert result_text(described, value, descriptions, errno=errno) == text


def test_errors_have_no_names_without_descriptions() -> None:
    assert result_text(function("negative_errno", "long", "int"), failed(2)) == "-1 (errno 2)"


def test_of_unknown_parameters_all_values_are_told(descriptions: Descriptions) -> None:
    unknown = Function("tuxcall", "Other", None, {"x86_64": 184}, "negative_errno")
    values = [1, -1, None, b"a", at(None)]
    assert call_text(unknown, values, failed(38), descriptions) == (
        'tuxcall(0x1, 0xffffffffffffffff, ?, "a", 0x7ffd28c6e620) = -1 ENOSYS (Function not implemented)'
    )


def test_values_that_are_missing_are_not_known(descriptions: Descriptions) -> None:
    call = descriptions.find_system_call("openat")
    assert call is not None
    assert call_text(call, [3], 4, descriptions) == "openat(3, ?, ?, ?) = 4"


def test_every_call_can_be_written_whatever_its_registers_hold(descriptions: Descriptions) -> None:
    for number in (0, 1, 2**31, 2**64 - 1, -1):
        for call in descriptions.system_calls.values():
            for values in ([number] * 6, [at(b"")] * 6, [at(b"\xff" * 99)] * 6, [b""] * 6, [None] * 6):
                assert call_text(call, list(values), number, descriptions).startswith(f"{call.name}(")


def test_bytes_are_escaped_as_their_numbers_are() -> None:
    random = Random(3)
    for _ in range(2000):
        data = bytes(random.choice([random.randrange(256), *b'09\n"\\A']) for _ in range(random.randrange(12)))
        assert escaped(data) == escaped(list(data)), data
