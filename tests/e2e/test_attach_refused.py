"""What can't be attached to: one line says why and what to do, and nothing is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from clew.address import Pid
from clew.errors import TargetError
from clew.process import ptrace
from clew.process.attachable import explain_refusal
from clew.process.waiting import release_abandoned, wait_stop
from tests.e2e import runs
from tests.e2e.attaching import Target, attach, attach_here, start

NOBODY = 65534
WAIT = ("sleep", "1000")
SET_NOT_DUMPABLE = (
    "import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print('ready', flush=True); time.sleep(99)"
)


@pytest.fixture
def sleeping() -> Iterator[Target]:
    with start(*WAIT, ready=b"") as target:
        # Before that its mappings change still: nanosleep or clock_nanosleep.
        target.wait_for(lambda: Path(f"/proc/{target.pid}/syscall").read_text().split()[0] in ("35", "230"))
        yield target


def refused(pid: int | str, folder: Path, *prefix: str, status: int = 1) -> str:
    """What `clew attach` says of `pid`, which is one line."""
    words = [*prefix, *runs.clew_command("attach", "-o", folder / "out.clew", "--duration", "0.1", "--", str(pid))]
    run = runs.run(words)
    if prefix:
        # Where that user's recordings would be spoken to; one that runs keeps it.
        with suppress(OSError):
            os.rmdir(f"/tmp/clew-{NOBODY}")
    assert (run.status, run.stdout) == (status, b""), run.stderr
    said = run.stderr.decode()
    assert said.startswith("clew: ") and said.count("\n") == 1 and "internal error" not in said, said
    assert not (folder / "out.clew").exists()
    return said


def as_nobody(*more: str) -> tuple[str, ...]:
    """What makes a command run without privileges; skips where that is not to be had."""
    prefix = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *more)
    if (
        os.geteuid() != 0
        or subprocess.run([*prefix, sys.executable, "-c", "import clew"], capture_output=True).returncode
    ):
        pytest.skip("needs root, and a Python that everybody may run")
    return prefix


@pytest.mark.parametrize("text", ["abc", "0", "-5", "1.5", "99999999999"])
def test_no_process_id(text: str, tmp_path: Path) -> None:
    assert f"{text}: not a process id" in refused(text, tmp_path, status=2)


def test_no_such_process(tmp_path: Path) -> None:
    process = subprocess.Popen(["true"])
    process.wait(60)
    assert refused(process.pid, tmp_path) == f"clew: process {process.pid}: no such process\n"


def test_clew_itself_and_a_thread(sleeping: Target, tmp_path: Path) -> None:
    code = "import os, sys; from clew.cli.main import main; sys.exit(main(['attach', str(os.getpid())]))"
    run = runs.run([sys.executable, "-c", code], cwd=tmp_path)
    assert (run.status, b"clew itself" in run.stderr) == (1, True)


def test_a_zombie(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert "(a zombie)" in refused(process.pid, tmp_path)


def test_a_kernel_thread(tmp_path: Path) -> None:
    if not Path("/proc/2/stat").exists() or b"(kthreadd)" not in Path("/proc/2/stat").read_bytes():
        pytest.skip("no kernel threads to be seen here")
    assert "kernel thread (kthreadd)" in refused(2, tmp_path)


def test_a_32_bit_program(tmp_path: Path) -> None:
    source, thing, program = tmp_path / "x.s", tmp_path / "x.o", tmp_path / "x"
    source.write_text(".globl _start\n_start: mov $29, %eax\n int $0x80\n jmp _start\n")
    subprocess.run(["as", "--32", "-o", thing, source], check=True)
    subprocess.run(["ld", "-m", "elf_i386", "-o", program, thing], check=True)
    try:
        with start(program, ready=b"") as target:
            target.wait_for(lambda: os.readlink(f"/proc/{target.pid}/exe") == str(program))
            assert "a 32-bit program" in refused(target.pid, tmp_path)
    except OSError:
        pytest.skip("the kernel runs no 32-bit programs")


def test_traced_already(sleeping: Target, tmp_path: Path) -> None:
    ptrace.seize(Pid(sleeping.pid), 0)
    try:
        name = Path("/proc/self/comm").read_text().strip()
        said = refused(sleeping.pid, tmp_path)
        assert f"is traced already, by {name} (process {os.getpid()})" in said
    finally:
        ptrace.interrupt(Pid(sleeping.pid))
        wait_stop(Pid(sleeping.pid))
        ptrace.detach(Pid(sleeping.pid))


def test_recorded_already(tmp_path: Path) -> None:
    script = ["sh", "-c", "echo ready; read line; exit 3"]
    with start(*runs.clew_command("record", "-q", "-o", tmp_path / "first.clew", "--", *script)) as clew:
        pid = int(Path(f"/proc/{clew.pid}/task/{clew.pid}/children").read_text().split()[0])
        assert "is recorded by clew already" in refused(pid, tmp_path)
        assert clew.end(stdin=b"\n")[0] == 3


def test_another_user(sleeping: Target, tmp_path: Path) -> None:
    said = refused(sleeping.pid, tmp_path, *as_nobody())
    assert "belongs to user root; run clew as user root, or as root" in said


def test_the_same_user_without_privileges(tmp_path: Path) -> None:
    prefix = as_nobody()
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if not os.stat(folder).st_mode & 0o001:
            folder.chmod(0o711)
    place = tmp_path / "own"
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    with start(*prefix, "sh", "-c", "echo ready; while read line; do exit 3; done") as target:
        before = target.look()
        run = runs.run(
            [*prefix, *runs.clew_command("attach", "-o", place / "out.clew", "--duration", "0.2", str(target.pid))]
        )
        assert run.status == 0, run.stderr
        assert target.look() == before
        # root may as well.
        assert attach(target.pid, tmp_path / "root.clew").status == 0
        assert target.look() == before
        assert target.end(stdin=b"\n")[0] == 3
    runs.read(place / "out.clew")


def test_a_process_that_is_not_dumpable(tmp_path: Path) -> None:
    prefix = as_nobody()
    with start(*prefix, sys.executable, "-c", SET_NOT_DUMPABLE) as target:
        assert "not dumpable" in refused(target.pid, tmp_path, *prefix)


def test_root_without_the_capability(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    prefix = ("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace")
    with start(*WAIT, ready=b"", user=NOBODY) as target:
        said = refused(target.pid, tmp_path, *prefix)
        assert "CAP_SYS_PTRACE" in said and "--cap-add=SYS_PTRACE" in said
    with start(*WAIT, ready=b"") as target:
        assert "--cap-add=SYS_PTRACE" in refused(target.pid, tmp_path, *prefix)


def test_a_seccomp_filter(tmp_path: Path) -> None:
    # prctl(PR_SET_NO_NEW_PRIVS); prctl(PR_SET_SECCOMP, FILTER, a program of one instruction that allows everything).
    code = """if True:
        import ctypes, struct, time
        program = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000))
        filter = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 1, ctypes.addressof(program)))
        libc = ctypes.CDLL(None)
        assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0
        print("ready", flush=True)
        time.sleep(99)
    """
    with start(sys.executable, "-c", code) as target:
        assert "has a seccomp filter" in refused(target.pid, tmp_path)


def find_control_groups(kind: str, option: str = "") -> Path:
    """Where control groups of a kind can be made; skips where they can't."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, found, options, *_ = line.split()
        if found == kind and (not option or option in options.split(",")) and os.access(place, os.W_OK):
            return Path(place)
    pytest.skip(f"no {kind} {option} that can be written to")


@pytest.mark.parametrize("version", [1, 2])
def test_a_frozen_process(version: int, sleeping: Target, tmp_path: Path) -> None:
    parent = find_control_groups("cgroup2") if version == 2 else find_control_groups("cgroup", "freezer")
    group = parent / f"clew-test-{os.getpid()}"
    group.mkdir()
    switch, frozen, thawed = ("cgroup.freeze", "1", "0") if version == 2 else ("freezer.state", "FROZEN", "THAWED")
    try:
        (group / "cgroup.procs").write_text(str(sleeping.pid))
        (group / switch).write_text(frozen)
        told = group / ("cgroup.events" if version == 2 else switch)
        sleeping.wait_for(lambda: ("frozen 1" if version == 2 else "FROZEN") in told.read_text())
        assert "is frozen (its control group is); thaw that first" in refused(sleeping.pid, tmp_path)
        # Frozen only after that look it is found out later.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("clew.process.attachable.is_frozen", lambda _: False)
            patch.setattr("clew.process.waiting.LIMIT_SECONDS", 0.1)
            patch.setattr("clew.process.attach.STOP_SECONDS", 0.1)
            with pytest.raises(TargetError, match="it is frozen"):
                attach_here(sleeping.pid)
        (group / switch).write_text(thawed)

        def is_let_go() -> bool:
            release_abandoned()
            return sleeping.status("TracerPid") == "0"

        sleeping.wait_for(is_let_go)
        assert attach(sleeping.pid, tmp_path / "thawed.clew").status == 0
    finally:
        (group / switch).write_text(thawed)
        (parent / "cgroup.procs").write_text(str(sleeping.pid))
        group.rmdir()


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [
        ("1", "kernel.yama.ptrace_scope is 1; run clew as root, or set it to 0"),
        ("2", "kernel.yama.ptrace_scope is 2: only root may attach; run clew as root"),
        ("3", "kernel.yama.ptrace_scope is 3: nobody may attach; it needs a reboot to lower"),
    ],
)
def test_yama(scope: str, wanted: str, monkeypatch: pytest.MonkeyPatch, sleeping: Target) -> None:
    monkeypatch.setattr("clew.process.attachable.has_ptrace_capability", lambda: scope == "3")
    error = PermissionError(1, "Operation not permitted")
    assert wanted in explain_refusal(Pid(sleeping.pid), error, read_scope=lambda: scope)


def test_a_process_that_has_no_descriptor_left(tmp_path: Path) -> None:
    code = """if True:
        import os, resource, sys
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        print("ready", flush=True)
        sys.exit(len(sys.stdin.read()))
    """
    with start(sys.executable, "-c", code) as target:
        before = target.look()
        assert "memfd_create: Too many open files" in refused(target.pid, tmp_path)
        assert target.look() == before
        assert target.end(stdin=b"1234567")[0] == 7


def test_an_output_that_exists(sleeping: Target, tmp_path: Path) -> None:
    before = sleeping.look()
    (tmp_path / "there.clew").mkdir()
    run = attach(sleeping.pid, tmp_path / "there.clew")
    assert (run.status, b"exists already" in run.stderr) == (2, True)
    assert sleeping.look() == before
    os.kill(sleeping.pid, signal.SIGTERM)
