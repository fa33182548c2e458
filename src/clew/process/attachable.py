"""Whether a running process can be attached to, and why not: a look at /proc before anything is touched.

Runs in the controller. Changes nothing in the process.
"""

from __future__ import annotations

import functools
import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Final

from clew.address import Pid, Tid
from clew.errors import AttachError
from clew.process.freezer import is_frozen
from clew.process.identity import find_holder, iter_threads, read_stat, read_status, read_status_line
from clew.process.maps import read_maps
from clew.process.privileges import has_ptrace_capability

__all__ = [
    "check_attachable",
    "explain_refusal",
    "find_living_task",
    "has_own_filter",
    "has_own_namespace",
    "read_ptrace_scope",
    "tid_inside",
]

_PF_KTHREAD: Final = 0x200000
_ELF_CLASS_32: Final = b"\x7fELF\x01"
_SECCOMP_STRICT, _SECCOMP_FILTER = 1, 2


def read_ptrace_scope() -> str:
    """The setting kernel.yama.ptrace_scope; empty where the kernel has no Yama."""
    try:
        return Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
    except OSError:
        return ""


def check_attachable(pid: Pid, *, is_probed: bool = False) -> None:
    """Raise AttachError, with the reason and the way out, if `pid` is no process that clew can attach to. `is_probed`:
    its own code has probes, which are taken out for that."""
    if pid == os.getpid():
        raise AttachError(pid, f"process {pid}: is this clew itself, which can't be attached to")
    status = read_status(pid)
    if status is None:
        raise AttachError(pid, f"process {pid}: no such process")
    if status["Tgid"] != str(pid):
        raise AttachError(pid, f"process {pid}: is a thread of process {status['Tgid']}; attach to that")
    if status["State"].startswith(("Z", "X")) and status.get("Threads", "1") == "1":
        raise AttachError(pid, f"process {pid}: has ended; only its parent has not noticed yet (a zombie)")
    if _is_kernel_thread(pid):
        raise AttachError(pid, f"process {pid}: is a kernel thread ({status['Name']}); clew follows programs")
    tracer = status.get("TracerPid", "0")
    if tracer != "0":
        raise AttachError(
            pid, f"process {pid}: is traced already, by {_name_of(tracer)} (process {tracer}); let that detach first"
        )
    task = find_living_task(pid)
    try:
        mappings = read_maps(task)
        with open(f"/proc/{task}/exe", "rb") as file:
            head = file.read(len(_ELF_CLASS_32))
    except OSError as error:
        raise AttachError(pid, explain_refusal(pid, error)) from error
    if head == _ELF_CLASS_32:
        raise AttachError(pid, f"process {pid}: a 32-bit program; clew follows 64-bit programs")
    holder = None if is_probed else find_holder(mappings)
    if holder is not None:
        raise AttachError(pid, f"process {pid}: is recorded by clew already (process {holder}); end that first")
    if is_frozen(task):
        raise AttachError(pid, f"process {pid}: is frozen (its control group is); thaw that first")
    _check_seccomp(pid, status)


def find_living_task(pid: Pid) -> Pid:
    """A thread of `pid` that has not ended, by whose id /proc tells of the process: its first one may be gone."""
    if _is_living(pid):
        return pid
    try:
        tids = sorted(iter_threads(pid))
    except OSError:
        return pid
    return Pid(next(filter(_is_living, tids), pid))


def _is_living(task: Pid | Tid) -> bool:
    state = read_status_line(task, "State")
    return state is not None and not state.startswith(("Z", "X"))


def has_own_namespace(pid: Pid) -> bool:
    """Whether process `pid` sees other process ids than this one does."""
    try:
        return os.readlink(f"/proc/{find_living_task(pid)}/ns/pid") != _read_own_namespace()
    except OSError:
        return False


@functools.cache
def _read_own_namespace() -> str:
    """A process stays in its pid namespace, whatever it does (pid_namespaces(7))."""
    return os.readlink("/proc/self/ns/pid")


def tid_inside(tid: Tid) -> Tid:
    """What a thread is called in its own pid namespace; `tid` itself if it is gone."""
    numbers = read_status_line(tid, "NSpid")
    return Tid(int(numbers.split()[-1])) if numbers else tid


def explain_refusal(
    pid: Pid, error: OSError, *, read_scope: Callable[[], str] = read_ptrace_scope, uid: int | None = None
) -> str:
    """Why the kernel did not let this process attach to `pid`, and the way out. `uid`: this process's user."""
    status = read_status(pid)
    if status is None:
        return f"process {pid}: no such process"
    uid = os.geteuid() if uid is None else uid
    owner = int(status["Uid"].split()[1])
    scope = read_scope()
    if not has_ptrace_capability():
        if owner != uid:
            way_out = "give clew CAP_SYS_PTRACE" if uid == 0 else f"run clew as {_user(owner)}, or as root"
            return f"process {pid}: belongs to {_user(owner)}; {way_out}{_CONTAINERS if uid == 0 else ''}"
        if scope == "1":
            return (
                f"process {pid}: only its own parent may attach, as kernel.yama.ptrace_scope is 1; run clew as root, "
                "or set it to 0: sysctl kernel.yama.ptrace_scope=0"
            )
        if scope == "2":
            return f"process {pid}: kernel.yama.ptrace_scope is 2: only root may attach; run clew as root"
        if _is_guarded(pid, owner):
            return (
                f"process {pid}: does not let itself be read (it is set-uid, or not dumpable: prctl PR_SET_DUMPABLE); "
                "run clew as root"
            )
    if scope == "3":
        return f"process {pid}: kernel.yama.ptrace_scope is 3: nobody may attach; it needs a reboot to lower"
    return f"process {pid}: can't be attached to ({error.strerror}){_CONTAINERS}"


_CONTAINERS: Final = "; a container or a security module may forbid it; for Docker, add --cap-add=SYS_PTRACE"


def _is_kernel_thread(pid: Pid) -> bool:
    fields = read_stat(pid)
    return bool(fields and int(fields[6]) & _PF_KTHREAD)


def _name_of(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "a debugger"


def _check_seccomp(pid: Pid, status: dict[str, str]) -> None:
    """A filter that clew is not under itself may kill the process for a system call of the runtime's."""
    if int(status.get("Seccomp", "0")) == _SECCOMP_STRICT:
        raise AttachError(pid, f"process {pid}: is in strict seccomp mode, which leaves the runtime no system call")
    if has_own_filter(status):
        raise AttachError(
            pid,
            f"process {pid}: has a seccomp filter, which might kill it for the runtime's system calls; if it runs in a "
            "container, run clew there, otherwise record it from its start with `clew record`",
        )


def has_own_filter(status: dict[str, str]) -> bool:
    """Whether a task, by its `status`, is under a seccomp filter that this process is not under, or in strict mode."""
    own = read_status("self") or {}
    mode = int(status.get("Seccomp", "0"))
    n_filters, n_own = (int(which.get("Seccomp_filters", default)) for which, default in ((status, "1"), (own, "0")))
    return mode == _SECCOMP_STRICT or (mode == _SECCOMP_FILTER and n_filters > n_own)


def _is_guarded(pid: Pid, owner: int) -> bool:
    """Whether the kernel gives the process's files to root, because it may not be dumped."""
    try:
        return os.stat(f"/proc/{pid}/maps").st_uid != owner
    except OSError:
        return False


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
