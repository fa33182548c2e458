"""Privileges that stand against tracing: what clew may trace, and which programs would give a thread more rights.

Runs in the controller. The kernel gives a program no privileges that its tracer does not have
(cap_bprm_creds_from_file, security/commoncap.c).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Final

from clew.process.identity import read_status

__all__ = ["explain_privileges", "has_ptrace_capability"]

_CAP_SYS_PTRACE: Final = 19


def has_ptrace_capability() -> bool:
    """Whether this process may trace what it is not the owner of (CAP_SYS_PTRACE, capabilities(7))."""
    status = read_status("self") or {}
    return bool(int(status.get("CapEff", "0"), 16) >> _CAP_SYS_PTRACE & 1)


def explain_privileges(status: Mapping[str, str], fd: int) -> str:
    """What would give the program of file `fd` more rights than a thread has, by its `status` as /proc has it; empty if
    nothing. The descriptor may be of a path alone (O_PATH). Raises OSError.
    """
    uid, euid = _first_numbers(status.get("Uid", ""))
    gid, egid = _first_numbers(status.get("Gid", ""))
    facts = os.fstat(fd)
    if not (os.fstatvfs(fd).f_flag & os.ST_NOSUID or status.get("NoNewPrivs") == "1"):
        if facts.st_mode & stat.S_ISUID:
            euid = facts.st_uid
        if facts.st_mode & stat.S_ISGID and facts.st_mode & stat.S_IXGRP:
            egid = facts.st_gid
        try:
            # A descriptor of a path alone has no attributes, its name in /proc does.
            if euid != 0 and "security.capability" in os.listxattr(f"/proc/self/fd/{fd}"):
                return "privileged by file capabilities"
        except OSError:
            pass  # A file system without attributes.
    # The real id, not the effective one, is what the kernel compares with.
    return "set-uid" if euid != uid else "set-gid" if egid != gid else ""


def _first_numbers(text: str) -> tuple[int, int]:
    """The real and the effective id of a line of /proc/TID/status."""
    words = text.split()
    return (int(words[0]), int(words[1])) if len(words) > 1 else (-1, -1)
