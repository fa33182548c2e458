"""What strace 6.1 and `clew api` write otherwise since one of both does not know, or does not tell, what is there.

Runs on the machine that tests. Who finds a rule here that is about a form can describe that form instead.
"""

from __future__ import annotations

from typing import Final

from clew.api.reading import load_built_in
from tests.e2e.strace_rules import TEXT, Kind, Rule

__all__ = ["NOT_KNOWN", "NOT_READ", "NOT_TOLD"]

FIRST_NEWER: Final = 0x1C3
"""strace 6.1 has no name for this number and those behind it."""
CALLS: Final = load_built_in().system_calls
NEWER: Final = [
    call.name for number, call in CALLS.items() if number >= FIRST_NEWER or call.name in ("uprobe", "uretprobe")
]
NOT_DESCRIBED: Final = [call.name for call in CALLS.values() if call.parameters is None and call.name not in NEWER]

NOT_KNOWN: Final = Kind(
    "what strace 6.1 does not know",
    "Names that are newer than it, and forms that it has not.",
    (
        Rule(
            "|".join(NEWER),
            ".+",
            "",
            "the call",
            "mseal(0x7, 0x8, 0, 0x1, 0x2, 0x3) = 0",
            "mseal(0x7, 8, 0) = 0",
            "arguments",
        ),
        Rule(
            "io_uring_setup",
            r"\|(IORING_FEAT_(REG_REG_RING|RECVSEND_BUNDLE|MIN_TIMEOUT|RW_ATTR|NO_IOWAIT)|0x[0-9a-f]+)\b",
            "",
            "newer names",
            "io_uring_setup(1, {features=IORING_FEAT_NODROP|0x4000}) = 3",
            "io_uring_setup(1, {features=IORING_FEAT_NODROP|IORING_FEAT_RECVSEND_BUNDLE}) = 3",
        ),
        Rule(
            "rseq",
            r"\bRSEQ_FLAG_UNREGISTER\b",
            "0x1",
            "its flags",
            "rseq(0x7, 0x20, 0x1, 0x1) = 0",
            "rseq(0x7, 0x20, RSEQ_FLAG_UNREGISTER, 0x1) = 0",
        ),
        Rule(
            "setsockopt",
            r"SO_RCVTIMEO_OLD, .*",
            "SO_RCVTIMEO_OLD",
            "the structure",
            r'setsockopt(3, SOL_SOCKET, SO_RCVTIMEO_OLD, "\1\0\0"..., 16) = 0',
            "setsockopt(3, SOL_SOCKET, SO_RCVTIMEO_OLD, {tv_sec=1, tv_usec=0}, 16) = 0",
        ),
        Rule(
            "setsockopt",
            r"TCP_CONGESTION, .*",
            "TCP_CONGESTION",
            "that it is a name, which may end before its size",
            r'setsockopt(3, SOL_TCP, TCP_CONGESTION, "reno\0", 5) = 0',
            'setsockopt(3, SOL_TCP, TCP_CONGESTION, "reno", 5) = 0',
        ),
        Rule(
            "prctl",
            r'(PR_SET_NAME, "[^"]{15}")\.\.\.',
            r"\1",
            "whether the longest name ends where it ends",
            'prctl(PR_SET_NAME, "abcdefghijklmno"...) = 0',
            'prctl(PR_SET_NAME, "abcdefghijklmno") = 0',
        ),
        Rule(
            "ioctl",
            r"\b\w+ or (?=\w+,)",
            "",
            "whose request it is, of several devices'",
            "ioctl(3, SNDCTL_TMR_STOP or TCSETSW, {c_iflag=0, ...}) = 0",
            "ioctl(3, TCSETSW, {c_iflag=0, ...}) = 0",
        ),
    ),
)
NOT_TOLD: Final = Kind(
    "what clew does not tell",
    "Secrets, calls that no kernel has any longer, and forms that its descriptions have not.",
    (
        Rule(
            "add_key",
            rf"({TEXT}|\[redacted\]|P)(, \d+, -?\w+)$",
            r"SECRET\2",
            "keys",
            r'add_key("user", "x", "the key", 7, 0) = 1',
            r'add_key("user", "x", [redacted], 7, 0) = 1',
        ),
        Rule(
            "|".join(NOT_DESCRIBED),
            ".*",
            "",
            "how many arguments there were",
            "nfsservctl(0, 0, 0) = -1 ENOSYS (Function not implemented)",
            "nfsservctl(0x0, 0x0, 0x0, 0x0, 0x0, 0x0) = -1 ENOSYS (Function not implemented)",
            "arguments",
        ),
        Rule(
            "mincore",
            r"\[[\d, ]+\]$",
            "P",
            "arrays of which a quotient is the size",
            "mincore(0x7f0000000000, 8, [0]) = 0",
            "mincore(0x7f0000000000, 8, 0x7f0000000000) = 0",
        ),
        Rule(
            "modify_ldt",
            r"^(4294967274) EINVAL.*",
            r"\1",
            "errors of the call whose result has half a register",
            "modify_ldt(1, NULL, 1) = 4294967274 EINVAL (Invalid argument)",
            "modify_ldt(1, NULL, 1) = 4294967274",
        ),
        Rule(
            "writev",
            r"(iov_base=)(?:P|\"x\")(, iov_len=1\})(?=, \{|, \.\.\.)",
            r"\1B\2",
            "what elements behind the first eight lead to",
            'writev(1, [{iov_base="x", iov_len=1}, {iov_base=0x7f0000000000, iov_len=1}], 2) = 1',
            "writev(1, [{iov_base=0x7f0000000010, iov_len=1}, {iov_base=0x7f0000000000, iov_len=1}], 2) = 1",
        ),
    ),
)
NOT_READ: Final = Kind(
    "where there is nothing to read",
    "Each has its own way to tell what is too short, can't be read, or was not written.",
    (
        Rule(
            "epoll_pwait2?",
            r"(?<=, )(\{[^}]*\}|\[\])(?=, )",
            "P",
            "when a call has failed strace does not read what it asks for at the end",
            "epoll_pwait(3, 0x7f0000000000, 1, 1, 0x7f0000000010, 8) = -1 EINVAL (Invalid argument)",
            "epoll_pwait(3, 0x7f0000000000, 1, 1, [], 8) = -1 EINVAL (Invalid argument)",
        ),
        Rule(
            "clock_adjtime",
            r"(?<=^CLOCK_MONOTONIC, ){.*}$",
            "P",
            "the same of what is read and written",
            "clock_adjtime(CLOCK_MONOTONIC, 0x7f0000000000) = -1 EOPNOTSUPP (Operation not supported)",
            "clock_adjtime(CLOCK_MONOTONIC, {status=0}) = -1 EOPNOTSUPP (Operation not supported)",
        ),
        Rule(
            "select|pselect6",
            r"^0, \[\], \[\], \[\]",
            "0, P, P, P",
            "no bits",
            "select(0, 0x7f0000000000, 0x7f0000000000, 0x7f0000000000, NULL) = 0",
            "select(0, [], [], [], NULL) = 0",
        ),
        Rule(
            "openat2|mount_setattr|bpf|landlock_create_ruleset",
            r"\{\w+=\w+(, key=NULL, value=NULL|, \.\.\.)?\}",
            "P",
            "structures that are longer than the call says",
            'openat2(3, "", 0x7f0000000000, 8) = -1 EINVAL (Invalid argument)',
            'openat2(3, "", {flags=O_RDONLY, ...}, 8) = -1 EINVAL (Invalid argument)',
        ),
        Rule(
            "rt_sigqueueinfo|rt_tgsigqueueinfo|pidfd_send_signal",
            r"\{(si_signo=0[^}]*)?\}",
            "{}",
            "no signal",
            "rt_sigqueueinfo(5, SIGUSR1, {}) = 0",
            "rt_sigqueueinfo(5, SIGUSR1, {si_signo=0, si_code=SI_USER, si_pid=0, si_uid=0}) = 0",
        ),
        Rule(
            "setsockopt",
            r', ""(?=, 0$)',
            ", P",
            "no bytes",
            'setsockopt(3, SOL_IP, 0, "", 0) = 0',
            "setsockopt(3, SOL_IP, 0, 0x7f0000000000, 0) = 0",
        ),
        Rule(
            "fsconfig",
            r'""(?=, \d+$)',
            "P",
            "no characters, in a string that some commands have",
            'fsconfig(3, FSCONFIG_SET_STRING, "", "", 1) = 0',
            'fsconfig(3, FSCONFIG_SET_STRING, "", 0x7f0000000000, 1) = 0',
        ),
        Rule(
            "[lf]?setxattr",
            r'(\\0)+(?=", \d+, \w+$)',
            "",
            "the zero that ends a value",
            r'setxattr("x", "user.x", "1", 2, 0) = 0',
            r'setxattr("x", "user.x", "1\0", 2, 0) = 0',
        ),
    ),
)
