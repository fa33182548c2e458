"""Children, and programs that processes go on with, are in the trace: who made whom, how each ended, what each ran."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.store.trace import Trace
from tests.e2e import runs
from tests.programs.build import BIN, find

MODES = ("counts", "coverage")


def processes_of(recorded: runs.Recorded) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = recorded.summary["processes"]
    return found


def names_of(recorded: runs.Recorded) -> list[str]:
    """The files executed, in the order of their starts."""
    return [Path(process["executable"]).name for process in processes_of(recorded)]


def record(command: runs.Command, trace: Path, *options: str, **how: Any) -> tuple[runs.Run, runs.Recorded]:
    native = runs.run(command, **how)
    recorded = runs.record(command, trace, *options, **how)
    assert recorded == native
    return recorded, runs.read(trace)


def events_of(recorded: runs.Recorded, kind: str) -> list[dict[str, Any]]:
    return [row for row in recorded.trace.events.to_pylist() if row["kind"] == kind]


@pytest.mark.parametrize("mode", MODES)
def test_a_shell_and_its_children(tmp_path: Path, mode: str) -> None:
    script = "echo a; (echo b; exit 3); echo $?; /bin/echo c | cat; /bin/true & wait; exec /bin/echo d"
    _, recorded = record(["sh", "-c", script], tmp_path / "t", "--mode", mode)
    processes = processes_of(recorded)
    first = processes[0]
    assert {"echo", "cat", "true"} <= set(names_of(recorded))
    children = [process for process in processes if process["pid"] != first["pid"]]
    assert children and all(child["parent_pid"] == first["pid"] for child in children)
    assert {"code": 3} in [child["exit"] for child in children]
    # The shell went on with another program: the same process, twice in the list.
    last = [process for process in processes if process["pid"] == first["pid"]]
    assert [Path(process["executable"]).name for process in last] == [Path(first["executable"]).name, "echo"]
    assert [process["exit"] for process in last] == [{"code": None}, {"code": 0}]
    if mode == "counts":
        assert all(sum(thread["instructions"] for thread in process["threads"]) > 0 for process in processes)


def test_a_forks_child_counts_what_it_ran_itself(tmp_path: Path) -> None:
    program = [sys.executable, "-I", "-S", "-c", "import os\nif os.fork() == 0: os._exit(7)\nos.wait()"]
    _, recorded = record(program, tmp_path / "t")
    parent, child = processes_of(recorded)[-2:]
    assert (child["parent_pid"], child["exit"]) == (parent["pid"], {"code": 7})
    ran = [sum(thread["instructions"] for thread in process["threads"]) for process in (parent, child)]
    assert 0 < ran[1] < ran[0] / 20


CHAIN = """
import os
for _ in range(12):
    child = os.fork()
    if child:
        print(os.getpid(), child, flush=True)
        os._exit(0)
"""


@pytest.mark.long
def test_who_made_a_process_whose_parent_ended_at_once(tmp_path: Path) -> None:
    run = runs.record([sys.executable, "-I", "-S", "-c", CHAIN], tmp_path / "t")
    made_by = {int(child): int(parent) for parent, child in (line.split() for line in run.stdout.splitlines())}
    processes = processes_of(runs.read(tmp_path / "t"))
    assert len(made_by) == 12
    assert {process["pid"]: process["parent_pid"] for process in processes if process["pid"] in made_by} == made_by


def test_the_statistics_of_a_forks_child_are_its_own(tmp_path: Path) -> None:
    """What its parent used is counted once."""
    used = []
    for name, script in (("alone", ":"), ("four", "(:); (:); (:); (:)")):
        run = runs.run(runs.clew_command("record", "-q", "--stats", "-o", tmp_path / name, "--", "sh", "-c", script))
        lines = (line.split() for line in run.stderr.decode().splitlines())
        used += [int(words[2]) for words in lines if words[1:2] == ["counters_used"]]
    assert used[0] < used[1] < 2 * used[0]


@pytest.mark.usefixtures("programs")
def test_threads_learn_targets_from_the_table_of_all(tmp_path: Path) -> None:
    """Each of 240 threads comes to returns that others made known, and misses in its own table first."""
    program = find("thread_churn").path
    run = runs.run(runs.clew_command("record", "-q", "--stats", "-o", tmp_path / "t", "--", program))
    lines = map(str.split, run.stderr.decode().splitlines())
    assert next(int(words[2]) for words in lines if words[1] == "table_misses") > 240


@pytest.mark.long
def test_a_child_that_a_signal_kills(tmp_path: Path) -> None:
    script = "import os, signal\npid = os.fork()\nif pid == 0: os.kill(os.getpid(), 15)\nprint(os.waitpid(pid, 0)[1])"
    _, recorded = record([sys.executable, "-I", "-S", "-c", script], tmp_path / "t")
    assert processes_of(recorded)[-1]["exit"] == {"signal": signal.SIGTERM}


FAILING_DRAIN = """
import sys
from clew.cli.main import main
from clew.recording.drain.drain import Drain

drain_ring = Drain._drain_ring

def drain_until_damaged(self, stream):
    if self._process_name == "{name}":
        raise ValueError("damaged")
    return drain_ring(self, stream)

Drain._drain_ring = drain_until_damaged
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("name", "others"), [("sleep", {3, 0}), ("sh", set())])
@pytest.mark.long
def test_a_process_whose_memory_can_not_be_drained_is_the_only_one_lost(
    tmp_path: Path, name: str, others: set[int]
) -> None:
    words = ["record", "-o", str(tmp_path / "t"), "--", "sh", "-c", "/bin/sleep 0.1; /bin/echo a; exit 3"]
    run = runs.run([sys.executable, "-c", FAILING_DRAIN.format(name=name), *words])
    assert (run.status, run.stdout) == (3, b"a\n"), run
    assert b"lost (ValueError: damaged)" in run.stderr and b"Traceback" not in run.stderr
    trace = Trace(tmp_path / "t")
    assert trace.manifest.losses["lost_processes"] == 1
    (lost,) = (row["process_id"] for row in trace.threads.to_pylist() if row["end"] == "lost")
    ends = {row["process_id"]: row["exit_code"] for row in trace.processes.to_pylist()}
    assert ends.pop(lost) is None
    assert others <= set(ends.values())


SLEEPERS = """
import os, resource, sys
print(resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)
read_end, write_end = os.pipe()
for _ in range(24):
    if os.fork() == 0:
        os.close(write_end)
        os.read(read_end, 1)
        os.execv("/bin/sh", ["sh", "-c", "ulimit -n; exec ls -m /proc/self/fd"])
os.close(write_end)
print([os.wait()[1] for _ in range(24)])
"""


@pytest.mark.parametrize(
    ("limits", "is_enough"), [("64:4096", True), pytest.param("64:64", False, marks=pytest.mark.stress)]
)
@pytest.mark.long
def test_descriptors_of_many_processes(tmp_path: Path, limits: str, is_enough: bool) -> None:
    limit = ("prlimit", f"--nofile={limits}")
    command = [sys.executable, "-I", "-S", "-c", SLEEPERS]
    native = runs.run([*limit, *command])
    recorded = runs.run([*limit, *runs.clew_command("record", "-o", tmp_path / "t", "--", *command)])
    found = recorded.sorted_lines()
    assert (found.status, found.stdout) == (native.status, native.sorted_lines().stdout), recorded
    assert b"Traceback" not in recorded.stderr
    assert (b"unfollowed" in recorded.stderr) == (not is_enough)
    if is_enough:
        assert names_of(runs.read(tmp_path / "t")).count("ls") == 24


@pytest.mark.parametrize("mode", MODES)
def test_no_follow(tmp_path: Path, mode: str) -> None:
    script = "/bin/echo a; (echo b); exec /bin/echo c"
    _, recorded = record(["sh", "-c", script], tmp_path / "t", "--no-follow", "--mode", mode)
    (process,) = processes_of(recorded)
    assert not any("true" in row["details"] for row in events_of(recorded, "fork") + events_of(recorded, "execve"))
    # How the last program ended is not how this one did, which ended before it.
    assert (process["exit"], process["went_on_unfollowed"]) == ({"code": None}, True)
    assert process["end_ns"] < recorded.summary["end_ns"]
    info = runs.run(runs.clew_command("info", tmp_path / "t"))
    assert b"went on as another program, unfollowed" in info.stdout


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(("name", "went_on"), [("exec_from_thread", True), ("spawn", False), ("vfork_nested", False)])
def test_who_went_on_unfollowed(tmp_path: Path, name: str, went_on: bool) -> None:
    _, recorded = record([BIN / name], tmp_path / "t", "--no-follow")
    process = processes_of(recorded)[0]
    assert (process["exit"], process["went_on_unfollowed"]) == ({"code": None if went_on else 0}, went_on)
    if went_on:
        assert sorted(thread["end"] for thread in process["threads"]) == ["detached", "killed", "killed"]


def test_an_execution_that_failed_is_no_new_program(tmp_path: Path) -> None:
    script = "exec 2>&-; exec /bin/nothing; :"
    _, recorded = record(["bash", "-c", f"shopt -s execfail; {script}; exit 4"], tmp_path / "t", "--no-follow")
    (process,) = processes_of(recorded)
    assert (process["exit"], process["went_on_unfollowed"]) == ({"code": 4}, False)


def test_programs_executed_in_a_pid_namespace(tmp_path: Path) -> None:
    command = ["unshare", "--user", "--pid", "--fork", "sh", "-c", "/bin/echo a; exec /bin/echo b"]
    if runs.run(command).status != 0:
        pytest.skip("namespaces can't be made here")
    _, recorded = record(command, tmp_path / "t")
    assert [name for name in names_of(recorded) if name == "echo"] == ["echo"] * 2


def test_a_daemon_outlives_its_parent(tmp_path: Path) -> None:
    script = (
        "import os, time\n"
        "read_end, write_end = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.close(write_end)\n"
        "        os.read(read_end, 1)\n"  # until everybody else has ended
        "        open('done', 'w').write('done')\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    run = runs.record([sys.executable, "-I", "-S", "-c", script], tmp_path / "t", cwd=tmp_path)
    assert run.status == 0, run
    assert (tmp_path / "done").read_text() == "done"
    recorded = runs.read(tmp_path / "t")
    assert [process["exit"] for process in processes_of(recorded)[-3:]] == [{"code": 0}] * 3


def test_a_script_is_recorded_as_its_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n/bin/echo from a script\n")
    script.chmod(0o755)
    _, recorded = record(["sh", "-c", f"{script}; {script}"], tmp_path / "t")
    shells = [process for process in processes_of(recorded) if str(script) in process["command"]]
    assert len(shells) == 2


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("mode", MODES)
def test_execve_from_a_thread(tmp_path: Path, mode: str) -> None:
    _, recorded = record([BIN / "exec_from_thread"], tmp_path / "t", "--mode", mode)
    processes = processes_of(recorded)
    assert len(processes) > 1 and len({process["pid"] for process in processes}) == 1


@pytest.mark.usefixtures("programs")
def test_programs_for_other_machines_run_unfollowed_and_that_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other"
    source = tmp_path / "other.s"
    source.write_text(".globl _start\n_start: movl $1, %eax\nmovl $9, %ebx\nint $0x80\n")
    subprocess.run(["gcc", "-m32", "-nostdlib", "-static", "-o", path, source], check=True, capture_output=True)
    if runs.run([path]).status != 9:
        pytest.skip("this kernel runs no 32-bit programs")
    run = runs.run(runs.clew_command("record", "-o", tmp_path / "t", "--", "sh", "-c", f"{path}; exit $?"))
    assert run.status == 9
    assert b"32-bit" in run.stderr
    recorded = runs.read(tmp_path / "t", frozenset({"unfollowed_programs"}))
    assert any('"is_followed": false' in row["details"] for row in events_of(recorded, "execve"))


# Without the right to trace what gains privileges, as an ordinary user is.
UNPRIVILEGED = ("setpriv", "--bounding-set", "-sys_ptrace")
NOBODY = 65534


@pytest.fixture
def set_uid_program(tmp_path: Path) -> Path:
    """A static program of another user's in a root of its own, which prints whose rights it has."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a set-uid program of another user's")
    program = tmp_path / "root" / "usr" / "bin" / "env"
    program.parent.mkdir(parents=True)
    (tmp_path / "root" / "link").symlink_to("/usr/bin/env")
    source = tmp_path / "whose.c"
    source.write_text('#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("%d\\n", geteuid()); }\n')
    subprocess.run(["gcc", "-static", "-o", program, source], check=True)
    os.chown(program, NOBODY, -1)
    program.chmod(0o4755)
    return program


@pytest.mark.parametrize(
    "script",
    [
        "os.execv('root/usr/bin/env', ['env'])",
        # In the root outside this is a program without privileges.
        "os.chroot('root'); os.execv('/link', ['link'])",
        *(
            pytest.param(script, marks=pytest.mark.long)
            for script in (
                "os.chdir('root/usr'); os.chroot('..'); os.execv('../../../bin/../usr/bin/env', ['env'])",
                "fd = os.open('root/usr/bin/env', os.O_RDONLY); os.set_inheritable(fd, True)"
                "\nos.execv(f'/proc/self/fd/{fd}', ['env'])",
                "fd = os.open('root/usr/bin/env', os.O_PATH); os.execve(fd, ['env'], {})",
            )
        ),
    ],
)
def test_a_set_uid_program_runs_unfollowed_with_its_privileges(
    tmp_path: Path, set_uid_program: Path, script: str
) -> None:
    (tmp_path / "root" / "bin").mkdir()
    recorder = runs.clew_command(
        "record", "-o", tmp_path / "t", "--", sys.executable, "-I", "-S", "-c", f"import os\n{script}"
    )
    run = runs.run([*UNPRIVILEGED, *recorder], cwd=tmp_path)
    assert run.stdout == b"%d\n" % NOBODY, run
    assert b"set-uid" in run.stderr
    recorded = runs.read(tmp_path / "t", frozenset({"unfollowed_programs"}))
    assert any('"is_followed": false' in row["details"] for row in events_of(recorded, "execve"))


@pytest.mark.usefixtures("programs")
def test_processes_that_only_privileged_ones_may_look_at(tmp_path: Path) -> None:
    program = BIN / "not_dumpable"
    unprivileged = UNPRIVILEGED if os.geteuid() == 0 else ()
    native = runs.run([*unprivileged, program])
    recorder = runs.clew_command("record", "-q", "-o", tmp_path / "t", "--", program)
    assert runs.run([*unprivileged, *recorder]) == native
    recorded = runs.read(tmp_path / "t")
    # It, its child, what that executes, and the child of this.
    assert [process["exit"].get("code") for process in processes_of(recorded)] == [3, None, 3, 5]


@pytest.mark.long
def test_a_file_system_that_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "silent").mkdir()
    script = (
        "import ctypes, os, signal, time\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "fd = os.open('/dev/fuse', os.O_RDWR)\n"
        "options = b'fd=%d,rootmode=40000,user_id=0,group_id=0' % fd\n"
        "if libc.unshare(0x20000) or libc.mount(b'none', b'/', None, 0x44000, None):\n"  # private mounts, all of them
        "    os._exit(9)\n"
        "if libc.mount(b'silent', b'silent', b'fuse', 0, options): os._exit(9)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    signal.alarm(2)\n"
        "    os.execv('silent/program', ['program'])\n"
        "time.sleep(0.5)\n"
        "start = time.monotonic()\n"
        "if os.fork() == 0: os._exit(0)\n"
        "print(time.monotonic() - start < 3)\n"
        "print(os.waitpid(pid, 0)[1])\n"
    )
    command = [sys.executable, "-I", "-S", "-c", script]
    if not os.path.exists("/dev/fuse") or os.geteuid() != 0 or runs.run(command, cwd=tmp_path).status == 9:
        pytest.skip("file systems can't be mounted here")
    run = runs.record(command, tmp_path / "t", cwd=tmp_path)
    assert (run.status, run.stdout) == (0, b"True\n%d\n" % signal.SIGALRM), run
