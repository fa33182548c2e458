"""The kinds of difference between lines of strace and of `clew api`: there are few, and each rule is needed."""

from __future__ import annotations

import pytest

from tests.e2e.strace_kinds import KINDS
from tests.e2e.strace_lines import RULES, read_both, split
from tests.e2e.strace_rules import Rule

MOST_KINDS = 10


def test_there_are_at_most_ten_kinds_each_with_a_reason() -> None:
    assert len(KINDS) <= MOST_KINDS
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert all(kind.reason.endswith(".") and kind.rules for kind in KINDS)
    # A rule of a kind that needs no more words has none.
    assert all(rule.why or len(kind.rules) == 1 for kind in KINDS for rule in kind.rules)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.names:.20}: {rule.why}")
def test_two_lines_are_the_same_by_each_rule_and_differ_without_it(rule: Rule) -> None:
    assert split(rule.theirs) == split(rule.ours)
    others = [one for one in RULES if one is not rule]
    assert split(rule.theirs, others) != split(rule.ours, others)


def test_calls_for_which_strace_has_no_name_are_told_by_that_of_their_number() -> None:
    theirs = "7 1.5 syscall_0x1ce(0x7f0000000000, 0x8, 0, 0, 0, 0) = 0 <0.1>\n"
    (told,), (ours,) = read_both(theirs, "7 2.5 mseal(0x7f1000000000, 8, 0) = 0 <0.2>\n")
    assert told == ours == [("mseal", "", "0")]


def test_what_no_rule_names_differs() -> None:
    assert split('openat(AT_FDCWD, "x", O_RDONLY) = 3') != split('openat(AT_FDCWD, "y", O_RDONLY) = 3')
    assert split("close(3) = 0") != split("close(3) = -1 EBADF (Bad file descriptor)")


def test_what_is_measured_may_be_a_threads_number_by_chance() -> None:
    line = "getrusage(RUSAGE_SELF, {ru_utime={tv_sec=0, tv_usec=%s}, ru_stime={tv_sec=0, tv_usec=2}, ...}) = 0"
    assert len({str(read_both(f"71 1.5 {line % n}\n", "71 2.5 close(3) = 0\n")[0]) for n in (71, 12)}) == 1
    (theirs,), (ours,) = read_both("71 1.5 tkill(71, 0) = 0 <0.1>\n", "72 1.5 tkill(72, 0) = 0 <0.1>\n")
    assert theirs == ours
