"""Lines of strace -f -ttt -T and of `clew api`, brought to what both have: calls of each thread, without what differs.

Runs on the machine that tests. Each kind of difference is named here, with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Set

__all__ = ["DIFFERENT", "UNEQUAL", "VOLATILE", "WRITTEN_OTHERWISE", "Call", "read", "read_both"]

Call = tuple[str, str, str]
"""Name, arguments and result, as far as two runs have the same."""

DIFFERENT = {
    "clone": "strace tells its arguments by name, in another order",
    "getrandom": "its bytes",
    "rt_sigreturn": "strace tells the mask, and what the register has afterwards",
}
"""Whose arguments are not compared, and why."""

UNEQUAL = ("rt_sigreturn",)
"""Calls whose results are not compared either."""

VOLATILE = {
    r"gettimeofday|clock_gettime|getrusage|wait4|clock_adjtime|adjtimex|getitimer|timer(fd)?_gettime|clock_getres": (
        r"\b(tv_u?n?sec|\w+)=-?\d+",
        r"\1=N",
        "what clocks have",
    ),
    r"sysinfo|times|waitid": (r"=-?\d+|\[[\d, ]+\]", "=N", "what the machine and the kernel have counted"),
    r"time": (r"\[\d+\s*\]", "[N]", "what clocks have"),
    r"getcpu": (r"\[\d\]", "[N]", "on which processor it runs"),
    r"select|pselect6|ppoll": (r"left \{[^}]*\}", "left", "how long it took"),
    r"statfs|fstatfs": (r"f_(b|f)(locks|free|avail|files|free)=\d+", "", "what others do to the file system"),
    r"getsockname|getpeername|connect|accept4?|sendto|recvfrom": (
        r"htons\(\d+\)",
        "htons(N)",
        "the port is the kernel's choice",
    ),
    r"ioctl": (r"TIOCGPTN, \[\d+\]", "TIOCGPTN", "the number is the kernel's choice"),
    r"statx|newfstatat|stat|fstat|lstat": (r"(st_size|stx_size)=\d+", r"\1=N", "what others do to the file"),
}
"""By names of calls: what differs from run to run, what stands for it, and why."""

WRITTEN_OTHERWISE = [
    (r".*", r" ?/\*.*?\*/", "", "strace's comments"),
    (r".*", r"0x[0-9a-f]{6,16}(?![0-9a-f])", "P", "addresses"),
    (r"recvmsg", r"(.*MSG_DONTWAIT.*)", "", "of one that fails strace tells the length of the name only"),
    (r"ioctl", r"\b\w+ or (?=\w+,)", "", "strace knows other devices' requests of the same number"),
    (r"preadv|pwritev", r", 0, 0$", ", 0", "the upper half of the offset, of which the kernel makes nothing"),
    (r"name_to_handle_at", r'f_handle="[^"]*"', "f_handle", "strace writes these bytes in hexadecimal"),
    (r"clone3", r" => \{[^}]*\}", "", "strace tells what was written to parent_tid"),
    (r"setsockopt", r"SO_RCVTIMEO_OLD, .*", "SO_RCVTIMEO_OLD", "strace has no structure for it"),
    (r"setsockopt", r"TCP_CONGESTION, .*", "TCP_CONGESTION", "strace takes it for bytes without an end"),
    (
        r"writev",
        r"(iov_base=)(?:P|\"x\")(, iov_len=1\})(?=, \{|, \.\.\.)",
        r"\1B\2",
        "of the later ones only addresses are told",
    ),
    (r"prctl", r'(PR_SET_NAME, "[^"]{15}")\.\.\.', r"\1", "strace does not look whether the longest name ends there"),
    (
        r"io_uring_setup",
        r"(\|(IORING_FEAT_(REG_REG_RING|RECVSEND_BUNDLE|MIN_TIMEOUT|RW_ATTR|NO_IOWAIT)|0x[0-9a-f]+))+(?=,)",
        "",
        "strace is too old for the newer names",
    ),
    (r"timer_create", r"\[\d+\]", "[N]", "the number is the kernel's choice"),
]
"""By names of calls: what both write otherwise, what stands for it, and why."""


def read_both(theirs: str, ours: str) -> tuple[list[list[Call]], list[list[Call]]]:
    """As `read`, of two runs: a number that is a thread in one of them is told as that in both."""
    numbers = {line.split(maxsplit=1)[0] for line in (*theirs.splitlines(), *ours.splitlines())}
    return read(theirs, numbers), read(ours, numbers)


def read(text: str, others: Set[str] = frozenset()) -> list[list[Call]]:
    """The calls of each thread, threads in the order of their first call, of strace -f -ttt -T's lines or clew's.

    Numbers of its threads, and `others`, are all told as one.
    """
    threads: dict[str, list[str]] = {}
    pending: dict[str, str] = {}
    for line in text.splitlines():
        found = re.fullmatch(r"(\d+) +\d+\.\d+ (.*?)(?: <\d+\.\d+>)?", line)
        assert found, line
        tid, call = found[1], found[2]
        if call.startswith(("+++", "---")):
            continue
        if call.endswith("<unfinished ...>"):
            pending[tid] = call.removesuffix("<unfinished ...>").rstrip()
            continue
        resumed = re.fullmatch(r"<\.\.\. \w+ resumed>(.*)", call)
        if resumed:
            # strace leaves the blank out behind a comma.
            begun = pending.pop(tid)
            call = f"{begun} {resumed[1].lstrip()}" if begun.endswith(",") else begun + resumed[1]
        own = threads.setdefault(tid, [])
        # Who is traced is interrupted by what it ignores, too: its call goes on, and is told again.
        if own and " = ? ERESTARTSYS" in own[-1] and own[-1].split("(")[0] == call.split("(")[0]:
            own.pop()
        own.append(call)
    for tid in pending:
        threads.setdefault(tid, []).append(pending[tid] + " = ?")
    numbers = re.compile(r"\b(" + "|".join(sorted(others | threads.keys())) + r")\b")
    told = [[split(numbers.sub("PID", call)) for call in calls] for calls in threads.values()]
    # What a signal's end leaves open is told by strace alone.
    for calls in told:
        if calls[-1][2] == "?" and not calls[-1][0].startswith("exit"):
            calls.pop()
    return told


def split(call: str) -> Call:
    """A line's name, arguments and result."""
    # A call that a signal has interrupted, and that may be made again, has another error inside of the kernel.
    call = re.sub(r"= \? ERESTART\w+ \(.*\)", "= -1 EINTR (Interrupted system call)", call)
    found = re.fullmatch(r"(\w+)\((.*)\) += (-?\w+|\?)(?: \((?:flags )?([^()]*)\))?(.*)", call)
    assert found, call
    name, behind = found[1], found[4] or ""
    # The shell's parent is who looks at it.
    result = "PARENT" if name == "getppid" else re.sub(r"0x[0-9a-f]{6,}", "P", found[3])
    if name == "times" or name == "time":
        result, behind = "N", ""
    arguments = "" if name in DIFFERENT else plain(name, found[2])
    return name, arguments, " ".join(plain(name, part) for part in (result, behind, found[5]) if part).strip()


def plain(name: str, text: str) -> str:
    """Text without what differs from run to run, or is written otherwise."""
    volatile = [(names, *rest) for names, rest in VOLATILE.items()]
    for names, pattern, other, _ in [*WRITTEN_OTHERWISE, *volatile]:
        if re.fullmatch(names, name):
            text = re.sub(pattern, other, text)
    text = re.sub(r"[A-Z_0-9x]+(?:\|[A-Za-z_0-9]+)+", lambda flags: "|".join(sorted(flags[0].split("|"))), text)
    return re.sub(r"\s*,\s*", ", ", text).strip()
