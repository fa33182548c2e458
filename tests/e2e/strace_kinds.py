"""In what lines of strace 6.1 and of `clew api` differ: at most ten kinds of difference, each with its reason.

Runs on the machine that tests. What two runs of one program have otherwise under whatever looks on is here, what both
write otherwise in `strace_forms.py`.
"""

from __future__ import annotations

from re import Match
from typing import Final

from tests.e2e.strace_forms import NOT_KNOWN, NOT_READ, NOT_TOLD
from tests.e2e.strace_rules import TEXT, Kind, Rule

__all__ = ["KINDS"]


def _sorted(flags: Match[str]) -> str:
    return "|".join(sorted(flags[0].split("|")))


KINDS: Final = (
    Kind(
        "comments",
        "strace adds them, clew has none.",
        (Rule(".*", r" ?/\*.*?\*/", "", "", "close(0x7 /* ??? */) = 0", "close(0x7) = 0"),),
    ),
    Kind(
        "addresses",
        "Who is traced by another has its memory elsewhere.",
        (
            Rule(
                ".*",
                r"0x[0-9a-f]{6,16}(?![0-9a-f])",
                "P",
                "each run has its own",
                "brk(NULL) = 0x55d0c8a2f000",
                "brk(NULL) = 0x5581ab3d1000",
            ),
        ),
    ),
    Kind(
        "clocks and counters",
        "What time it is, how long something took, what the machine has counted, and what others do to it.",
        (
            Rule(
                "gettimeofday|clock_gettime|getrusage|wait4|clock_adjtime|adjtimex|getitimer|timer(fd)?_gettime"
                "|clock_getres",
                r"\b(tv_u?n?sec|\w+)=-?\d+",
                r"\1=N",
                "what clocks have",
                "clock_gettime(CLOCK_REALTIME, {tv_sec=1, tv_nsec=2}) = 0",
                "clock_gettime(CLOCK_REALTIME, {tv_sec=3, tv_nsec=4}) = 0",
            ),
            Rule(
                "sysinfo|times|waitid",
                r"=-?\d+|=\[[\d, ]+\]",
                "=N",
                "what the kernel has counted",
                "times({tms_utime=1, tms_stime=0, tms_cutime=0, tms_cstime=0}) = 7",
                "times({tms_utime=2, tms_stime=1, tms_cutime=0, tms_cstime=0}) = 7",
            ),
            Rule("times|time", r"^-?\d+\b.*|\[\d+\s*\]", "N", "what clocks have", "time([5]) = 5", "time([6]) = 6"),
            Rule(
                "getcpu",
                r"\[\d+\]",
                "[N]",
                "on which processor it runs",
                "getcpu([0], [0], NULL) = 0",
                "getcpu([1], [0], NULL) = 0",
            ),
            Rule(
                "select|pselect6|ppoll",
                r"left \{[^}]*\}",
                "left",
                "how long it took",
                "select(0, NULL, NULL, NULL, {tv_sec=1, tv_usec=0}) = 1 (left {tv_sec=0, tv_usec=8})",
                "select(0, NULL, NULL, NULL, {tv_sec=1, tv_usec=0}) = 1 (left {tv_sec=0, tv_usec=9})",
            ),
            Rule(
                "statfs|fstatfs",
                r"f_(b|f)(locks|free|avail|files|free)=\d+",
                "",
                "what others do to the file system",
                'statfs("/", {f_bfree=1}) = 0',
                'statfs("/", {f_bfree=2}) = 0',
            ),
            Rule(
                "statx|newfstatat|stat|fstat|lstat",
                r"(st_size|stx_size)=\d+",
                r"\1=N",
                "what others do to the file",
                'stat("x", {st_size=1, ...}) = 0',
                'stat("x", {st_size=2, ...}) = 0',
            ),
        ),
    ),
    Kind(
        "numbers that the kernel chooses",
        "Where a program asks for any, it gets another one each time.",
        (
            Rule(
                "getsockname|getpeername|connect|accept4?|sendto|recvfrom",
                r"htons\(\d+\)",
                "htons(N)",
                "ports",
                'connect(3, {sa_family=AF_INET, sin_port=htons(40001), sin_addr=inet_addr("127.0.0.1")}, 16) = 0',
                'connect(3, {sa_family=AF_INET, sin_port=htons(40002), sin_addr=inet_addr("127.0.0.1")}, 16) = 0',
            ),
            Rule(
                "ioctl",
                r"TIOCGPTN, \[\d+\]",
                "TIOCGPTN",
                "terminals",
                "ioctl(3, TIOCGPTN, [1]) = 0",
                "ioctl(3, TIOCGPTN, [2]) = 0",
            ),
            Rule(
                "timer_create",
                r"\[\d+\]",
                "[N]",
                "timers",
                "timer_create(CLOCK_REALTIME, NULL, [0]) = 0",
                "timer_create(CLOCK_REALTIME, NULL, [1]) = 0",
            ),
        ),
    ),
    Kind(
        "random bytes",
        "Nobody has the same twice.",
        (
            Rule(
                "getrandom", TEXT, "BYTES", "its bytes", r'getrandom("\1\2", 2, 0) = 2', r'getrandom("\3\4", 2, 0) = 2'
            ),
        ),
    ),
    Kind(
        "who looks on",
        "strace sees what the kernel tells who traces, clew what the program is told.",
        (
            Rule("getppid", r"\d+", "PARENT", "who began the program", "getppid() = 17", "getppid() = 18"),
            Rule(
                ".*",
                r"^\? ERESTART.*",
                "-1 EINTR (Interrupted system call)",
                "a call that is interrupted has another error inside of the kernel",
                "pause() = ? ERESTARTNOHAND (To be restarted if no handler)",
                "pause() = -1 EINTR (Interrupted system call)",
            ),
            Rule(
                "rt_sigreturn",
                ".+",
                "",
                "strace tells what the registers have afterwards, and the mask",
                "rt_sigreturn({mask=[]}) = 5",
                "rt_sigreturn() = ?",
            ),
            Rule(
                "restart_syscall",
                "<.*>",
                "",
                "strace knows which call of this thread was in front",
                "restart_syscall(<... resuming interrupted poll ...>) = 0",
                "restart_syscall() = 0",
            ),
        ),
    ),
    NOT_KNOWN,
    NOT_TOLD,
    NOT_READ,
    Kind(
        "the order of flags",
        "Each has a list of its own, in which names are told in their order.",
        (
            Rule(
                ".*",
                r"[A-Z_0-9x]+(?:\|[A-Za-z_0-9]+)+",
                _sorted,
                "",
                'open("x", O_RDONLY|O_CLOEXEC|O_NONBLOCK) = 3',
                'open("x", O_RDONLY|O_NONBLOCK|O_CLOEXEC) = 3',
            ),
        ),
    ),
)
