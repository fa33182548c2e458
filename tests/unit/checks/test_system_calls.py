"""The list of system calls says of each whether the runtime has a part in it."""

from __future__ import annotations

import dataclasses

from checks.system_calls import Lists, iter_undeclared, parse_header, read_lists

LISTS = Lists({"read": 0, "mmap": 9}, ("mmap",), {"mmap": 9}, {"read": "writes to what it is given"})


def told(lists: Lists) -> list[str]:
    return [violation.message for violation in iter_undeclared(lists)]


def test_every_call_is_declared() -> None:
    lists = read_lists()
    assert told(lists) == []
    # The kernel's list, up to what was known when this was written, has no hole that nobody looked at.
    assert set(range(337)) | set(range(424, 472)) <= set(lists.kernel.values())


def test_what_is_new_is_told() -> None:
    assert told(LISTS) == []
    new = dataclasses.replace(LISTS, kernel={**LISTS.kernel, "remap_code": 900})
    assert told(new) == ["remap_code (900) is neither handled nor declared harmless"]
    both = dataclasses.replace(LISTS, harmless={**LISTS.harmless, "mmap": "no"})
    assert told(both) == ["mmap (9) is handled, and declared harmless as well"]


def test_numbers_are_the_kernels() -> None:
    assert told(dataclasses.replace(LISTS, numbers={"mmap": 8})) == ["mmap is 9, not 8"]
    assert told(dataclasses.replace(LISTS, numbers={})) == ["mmap has no number"]
    assert parse_header("#define __NR_read 0\n#define __NR_mmap 9\n#define OTHER 3\n") == {"read": 0, "mmap": 9}
