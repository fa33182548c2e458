"""How much of what programs call clew's own descriptions know: counts that hold, and the kernel's own lists."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from clew.api.description import Case, Function, Variants
from clew.api.prototypes import Prototypes
from clew.api.reading import load_built_in
from clew.api.vocabulary import FILTERS

DESCRIBED = load_built_in()
CALLS = {function.name: function for function in DESCRIBED.system_calls.values()}
GONE = """_sysctl create_module get_kernel_syms query_module nfsservctl getpmsg putpmsg afs_syscall tuxcall security
set_thread_area get_thread_area lookup_dcookie epoll_ctl_old epoll_wait_old vserver"""
"""Calls that x86-64 kernels had once, or never; what their arguments are no kernel tells."""

LATER = {"listns", "rseq_slice_yield"}
"""Calls of kernels that are newer than that which was captured."""

OTHER_NAMES = {
    "newstat": "stat",
    "newfstat": "fstat",
    "newlstat": "lstat",
    "newuname": "uname",
    "umount": "umount2",
} | {
    "sendfile64": "sendfile",
    "ni_syscall": None,
}


OTHERS = re.compile(
    r".*32|.*16|.*_old|old.*|ia32.*|compat.*|(l|f)?stat64|fstatat64|f?truncate64|f?statfs64|fcntl64|fadvise64_64|llseek"
    r"|ipc|socketcall|signal|sgetmask|ssetmask|sigsuspend|sigprocmask|sigpending|waitpid|nice|stime|bdflush|send|recv"
    r"|gethostname|mmap_pgoff|sync_file_range2|spu_.*|pciconfig.*"
)
"""What 32-bit programs call, and what only other architectures have."""


def _cases(variants: Variants | None) -> list[Case]:
    own = [] if variants is None else list(variants.cases)
    return [*own, *(inner for case in own for inner in _cases(case.variants))]


def has_effects(function: Function) -> bool:
    return bool(function.effects) or any(case.effects for case in _cases(function.variants))


def every_function() -> list[Function]:
    return [*DESCRIBED.functions.values(), *DESCRIBED.system_calls.values()]


def test_all_system_calls_have_arguments_with_types() -> None:
    assert len(CALLS) >= 380
    unknown = {name for name, function in CALLS.items() if function.parameters is None}
    assert unknown == set(GONE.split()) | LATER
    for number, name in (
        (335, "uretprobe"),
        (336, "uprobe"),
        (467, "open_tree_attr"),
        (468, "file_getattr"),
        (469, "file_setattr"),
    ):
        assert DESCRIBED.system_calls[number].name == name
        assert DESCRIBED.system_calls[number].parameters is not None


def test_the_running_kernel_has_no_other_call() -> None:
    try:
        symbols = Path("/proc/kallsyms").read_text()
    except OSError:
        pytest.skip("the kernel's symbols can't be read")
    own = set(re.findall(r" T __x64_sys_(\w+)", symbols))
    if not own:
        pytest.skip("the kernel tells no symbols")
    names = {OTHER_NAMES.get(name, name) for name in own} - {None}
    others = {name for name in names if OTHERS.fullmatch(str(name))}
    assert not {name for name in names - others if name not in CALLS}


def test_requests_options_and_commands_have_names() -> None:
    def n(name: str) -> int:
        table = DESCRIBED.flag_table(name)
        assert table is not None
        return len({flag.value for flag in table.flags})

    assert n("requests") >= 1_000
    options = [name for name in DESCRIBED.flag_tables if re.fullmatch(r"\w+_options", name)]
    levels = "socket tcp udp internet internet6 netlink packet sctp vsock can tls alg xdp"
    assert {f"{level}_options" for level in levels.split()} <= set(options)
    assert sum(n(f"{level}_options") for level in levels.split()) >= 300
    assert n("process_options") >= 60
    assert n("bpf_commands") >= 37
    assert n("key_commands") >= 32
    assert n("trace_requests") >= 35
    assert n("fcntl_commands") >= 30
    assert n("curl_options") >= 280


def test_thousands_of_functions_have_names_and_types() -> None:
    prototypes = Prototypes()
    by_name = {name for names in prototypes.names().values() for name in names}
    assert len(by_name) >= 15_000
    described = {name for _, name in DESCRIBED.functions}
    assert len(by_name - described) >= 15_000


def test_effects_are_of_all_kinds() -> None:
    of_kind = Counter(function.filter for function in every_function() if has_effects(function))
    assert of_kind.total() >= 430
    wanted = set(FILTERS) - {"Other", "Signal"}
    assert {kind for kind, count in of_kind.items() if count} >= wanted
    # Of libraries alone, too.
    libraries: dict[str, set[str]] = defaultdict(set)
    for (pattern, _), function in DESCRIBED.functions.items():
        if has_effects(function):
            libraries[pattern].add(function.filter)
    assert set().union(*libraries.values()) >= wanted
    assert libraries.keys() >= {"libc.so*", "libssl.so*", "libcrypto.so*", "libz.so*", "libsqlite3.so*", "libcurl*.so*"}


def test_commands_choose_arguments() -> None:
    wanted = {"ioctl": 38, "fcntl": 18, "prctl": 20, "futex": 5, "bpf": 8, "keyctl": 15, "ptrace": 15, "quotactl": 4}
    wanted |= {"msgctl": 2, "semctl": 3, "shmctl": 2, "setsockopt": 12, "getsockopt": 12, "seccomp": 3}
    for name, n in wanted.items():
        assert len(_cases(CALLS[name].variants)) >= n, name


def test_functions_of_libraries_are_what_their_headers_declare() -> None:
    """Whom a description by hand names has as many arguments, and writes to nothing that is constant."""
    prototypes = Prototypes()
    held = 0
    for pattern, name in DESCRIBED.functions:
        known = prototypes.find(pattern.replace("*", ".0"), name)
        function = DESCRIBED.find_function(pattern.replace("*", ".0"), name)
        if known is None or function is None:
            continue
        held += 1
        # Of functions without end some are named.
        assert len(function.arguments) >= len(known.arguments), name
        for own, one in zip(function.arguments, known.arguments, strict=False):
            if one.c_type.startswith("const ") and one.c_type.count("*") == 1 and not own.entity_type:
                # The memory to which pieces lead is written to, and not they.
                assert own.direction == "in" or (own.struct or "").startswith("iovec"), f"{name}: {own.name}"
            assert own.is_pointer == one.is_pointer or own.type == "Reference", f"{name}: {own.name}"
    assert held > 180
