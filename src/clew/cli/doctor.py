"""`clew doctor`: can this machine record, and if not, what to change.

Runs in the controller. Every check looks at one thing and has a way out; none changes anything.
"""

from __future__ import annotations

import json
import os
import platform
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import click

from clew.cli.console import escape_control
from clew.dataclass import dataclass
from clew.errors import ClewError
from clew.process.injection_plan import layout_for_limits
from clew.process.launch import launch_stopped
from clew.process.processors.chosen import PROCESSORS, native_processor, processor_named
from clew.process.program import find_program
from clew.process.runtime_image import load_runtime_image
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.protocol._constants import Mode

__all__ = ["Check", "command", "run_checks"]

OLDEST_KERNEL: Final = (5, 4)
_SECCOMP_MODES: Final = {"0": "none", "1": "strict", "2": "filter"}


@dataclass(frozen=True)
class Check:
    """One look at the machine; `failed` means that recording can't work. `way_out` may be empty."""

    name: str
    state: Literal["ok", "note", "failed"]
    detail: str
    way_out: str = ""


@click.command(name="doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def command(as_json: bool) -> int:
    """Check whether this machine can record, and say what to change. Exit status 1 if something needed is missing."""
    checks = run_checks()
    has_failed = any(check.state == "failed" for check in checks)
    if as_json:
        click.echo(json.dumps({"ok": not has_failed, "checks": [vars(check) for check in checks]}, indent=2))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            click.echo(f"{check.state:<6}  {check.name:<{width}}  {escape_control(check.detail)}")
            if check.way_out:
                click.echo(f"{'':<6}  {'':<{width}}  -> {escape_control(check.way_out)}")
        click.echo("this machine can record" if not has_failed else "this machine can't record yet")
    return 1 if has_failed else 0


def run_checks() -> list[Check]:
    """All checks, in the order in which they are told."""
    checks: list[Callable[[], Check]] = [
        _check_processor,
        _check_processor_features,
        _check_kernel,
        _check_proc,
        _check_runtime,
        _check_ptrace_scope,
        _check_seccomp,
        _check_limits,
        _check_shared_memory,
        _check_launch,
    ]
    results = []
    for check in checks:
        try:
            results.append(check())
        except (OSError, ValueError) as error:
            name = check.__name__.removeprefix("_check_").replace("_", " ")
            results.append(Check(name, "note", f"could not be looked at: {error}"))
    return results


def _check_processor() -> Check:
    machine = platform.machine()
    if processor_named(machine) is None:
        titles = " or ".join(one.architecture.title for one in PROCESSORS)
        return Check("processor", "failed", machine, f"clew follows {titles} programs; use such a machine")
    return Check("processor", "ok", machine)


def _check_processor_features() -> Check:
    features = native_processor().features()
    if features.way_out:
        return Check("processor features", "note", features.detail, features.way_out)
    return Check("processor features", "ok", features.detail)


def _check_kernel() -> Check:
    release = os.uname().release
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    if numbers < OLDEST_KERNEL:
        oldest = ".".join(map(str, OLDEST_KERNEL))
        return Check("kernel", "failed", f"Linux {release}", f"Linux {oldest} or newer is needed (pidfd, memfd seals)")
    return Check("kernel", "ok", f"Linux {release}")


def _check_proc() -> Check:
    if not os.path.exists("/proc/self/maps"):
        return Check("/proc", "failed", "not mounted", "mount -t proc proc /proc")
    options = next((line.split()[3] for line in Path("/proc/mounts").read_text().splitlines() if " /proc " in line), "")
    if "hidepid=" in options and os.geteuid() != 0:
        return Check("/proc", "note", f"mounted with {options}", "processes of other users can't be attached to")
    return Check("/proc", "ok", "mounted")


def _check_runtime() -> Check:
    try:
        image = load_runtime_image()
    except ClewError as error:
        reason, _, way_out = error.message.partition("; ")
        return Check("runtime image", "failed", reason, way_out or "reinstall clew, or run `make build`")
    return Check("runtime image", "ok", f"{image.path}, {image.memory_bytes >> 10} KiB, of this version")


def _check_ptrace_scope() -> Check:
    path = Path("/proc/sys/kernel/yama/ptrace_scope")
    if not path.exists():
        return Check("ptrace scope", "ok", "Yama is not there: no restriction")
    scope = path.read_text().strip()
    is_root = os.geteuid() == 0
    if scope == "3":
        return Check("ptrace scope", "failed", "3: ptrace is switched off", "set kernel.yama.ptrace_scope and reboot")
    if scope == "2" and not is_root:
        way_out = "sudo sysctl kernel.yama.ptrace_scope=1, or run clew as root"
        return Check("ptrace scope", "failed", "2: only root may trace", way_out)
    if scope == "1" and not is_root:
        way_out = "to attach to running ones: sudo sysctl kernel.yama.ptrace_scope=0"
        return Check("ptrace scope", "ok", "1: programs that clew starts may be traced", way_out)
    return Check("ptrace scope", "ok", f"{scope}: no restriction here")


def _check_seccomp() -> Check:
    lines = (line.partition(":") for line in Path("/proc/self/status").read_text().splitlines())
    status = {key: value.strip() for key, _, value in lines}
    mode = _SECCOMP_MODES.get(status.get("Seccomp", "0"), "unknown")
    tracer = status.get("TracerPid", "0")
    if tracer != "0":
        return Check(
            "sandbox", "note", f"clew itself is traced by process {tracer}", "end that tracer if recording fails"
        )
    container = next((name for name in ("/.dockerenv", "/run/.containerenv") if os.path.exists(name)), None)
    where = f", in a container ({container})" if container else ""
    if mode == "none":
        return Check("sandbox", "ok", f"no seccomp filter{where}")
    way_out = "if recording fails: --cap-add=SYS_PTRACE, or --security-opt seccomp=unconfined"
    return Check("sandbox", "note", f"seccomp {mode}{where}", way_out)


def _check_limits() -> Check:
    try:
        layout, _ = layout_for_limits(SharedLayout())
    except ClewError as error:
        return Check("limits", "failed", error.message, "ulimit -v unlimited")
    file_bytes, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if file_bytes != resource.RLIM_INFINITY and file_bytes < layout.total_bytes:
        detail = f"files are limited to {file_bytes} bytes"
        return Check("limits", "failed", detail, f"ulimit -f unlimited (shared memory of {layout.total_bytes} bytes)")
    if layout != SharedLayout():
        detail = f"address space is limited: up to {layout.max_threads} threads at a time are recorded"
        return Check("limits", "note", detail, "ulimit -v unlimited")
    return Check("limits", "ok", f"up to {layout.max_threads} threads at a time are recorded")


def _check_shared_memory() -> Check:
    try:
        layout, _ = layout_for_limits(SharedLayout())
        SharedMemory(SharedFile.create(layout), HeaderSettings(mode=Mode.COUNTS)).close()
    except (ClewError, OSError) as error:
        return Check(
            "shared memory", "failed", str(error), "allow memfd_create, and look at `ulimit -f` and `ulimit -v`"
        )
    return Check("shared memory", "ok", f"{layout.total_bytes >> 20} MiB, sparse")


def _check_launch() -> Check:
    try:
        program = find_program("true")
        with launch_stopped(program, [b"true"], []) as process:
            process.kill()
    except (ClewError, OSError) as error:
        return Check("start a program", "failed", str(error), "allow ptrace for clew's own children")
    return Check("start a program", "ok", "a child can be stopped before its first instruction")
