"""`clew api`: system calls as text, held against what strace writes of the same program, thread by thread."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.e2e.strace_lines import read, read_both
from tests.programs.build import SOURCES, build_plain

COMMANDS = {
    "ls": ["ls", "-l", "/usr"],
    "failing": ["ls", "/no/such/place"],
    "shell": ["sh", "-c", "ls /usr; cat /etc/hostname; cd /; pwd"],
    "python": [
        sys.executable,
        "-S",
        "-E",
        "-c",
        "import json, pathlib; print(pathlib.Path('/etc/hostname').read_text())",
    ],
    "find": ["find", "/etc/apt", "-newer", "/etc/hostname"],
    "stat": ["stat", "/", "/dev/null", "/etc/passwd"],
    "df": ["df", "--output=target,fstype", "/", "/dev"],
    "dd": ["dd", "if=/dev/zero", "of=/dev/null", "bs=64", "count=20", "status=none"],
    "tar": ["tar", "-cf", "/dev/null", "-C", "/etc", "hostname"],
    "timeout": ["timeout", "5", "sleep", "0.01"],
    "uname": ["uname", "-a"],
    "nice": ["nice", "id"],
    "sockets": [sys.executable, "-S", "-E", str(SOURCES / "api" / "sockets.py")],
    "structures": [],
}


def run_clew(
    words: list[str], *arguments: str, path: Path, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "clew", "api", *arguments, "-o", str(path), *(["--", *words] if words else [])]
    environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}
    return subprocess.run(command, env=environ, cwd=cwd, capture_output=True, check=False, timeout=120)


@pytest.mark.skipif(shutil.which("strace") is None, reason="this machine has no strace")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_calls_as_strace_has(name: str, tmp_path: Path) -> None:
    words = COMMANDS[name] or [str(build_plain(SOURCES / "api" / "structures.c", "-O1", "-w"))]
    command = ["strace", "-f", "-ttt", "-T", "-o", str(tmp_path / "strace"), *words]
    known = subprocess.run(command, env=runs.environment(), capture_output=True, check=False, timeout=120)
    found = run_clew(words, path=tmp_path / "clew")
    assert (found.returncode, found.stdout, found.stderr) == (known.returncode, known.stdout, known.stderr)
    expected, told = read_both(*((tmp_path / which).read_text() for which in ("strace", "clew")))
    # It began the program.
    assert expected[0].pop(0)[0] == "execve"
    if words[0] == sys.executable:
        # How its memory is cut up depends on addresses, which are other ones each time.
        for calls in (*expected, *told):
            calls[:] = [call for call in calls if call[0] not in ("mmap", "munmap", "brk", "madvise", "mremap")]
    assert [len(calls) for calls in told] == [len(calls) for calls in expected]
    for ours, theirs in zip(told, expected, strict=True):
        assert [call[0] for call in ours] == [call[0] for call in theirs]
        differences = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
        assert not differences


def test_structures_that_say_what_is_not_so_are_told_nevertheless(tmp_path: Path) -> None:
    """strace itself does not end where a program says that it waits for two thousand million descriptors."""
    program = build_plain(SOURCES / "api" / "structures_hostile.c", "-O1", "-w")
    assert run_clew([str(program)], path=tmp_path / "clew").returncode == 0
    text = (tmp_path / "clew").read_text()
    (told,) = read(text)
    n_calls = Counter(name for name, _, result in told if result.startswith("-1"))
    each = ("readv", "recvmsg", "sendmmsg", "bind", "setsockopt", "sched_setaffinity", "clone3", "ioctl")
    assert all(n_calls[name] == 8 for name in each), n_calls
    assert (n_calls["sendmsg"], n_calls["writev"], n_calls["execve"], n_calls["select"]) == (24, 9, 2, 1)
    assert max(map(len, text.splitlines())) < 20_000


def test_calls_are_chosen_and_counted(tmp_path: Path) -> None:
    words = ["cat", "/no/such/file", "/etc/hostname"]
    assert run_clew(words, "--filter", "file", "--failed", path=tmp_path / "failed").returncode == 1
    failed = (tmp_path / "failed").read_text().splitlines()
    assert any('"/no/such/file", O_RDONLY) = -1 ENOENT (No such file or directory)' in line for line in failed)
    assert all(" = -1 E" in line for line in failed)
    run_clew(words, "--json", path=tmp_path / "json")
    objects = [json.loads(line) for line in (tmp_path / "json").read_text().splitlines()]
    assert {one["name"] for one in objects} >= {"openat", "read", "write", "exit_group"}
    assert [one["result"] for one in objects if one["name"] == "exit_group"] == [None]
    run_clew(words, "-c", path=tmp_path / "counts")
    counts = (tmp_path / "counts").read_text().splitlines()
    by_name = {line.split()[-1]: line.split() for line in counts[1:]}
    assert int(by_name["openat"][1]) == sum(one["name"] == "openat" for one in objects)
    assert int(by_name["total"][1]) == len(objects)


@pytest.mark.parametrize("chosen", [["--filter", "Process"], ["--filter", "File"], ["-c"], []])
def test_where_some_calls_are_captured_all_go_on_where_they_were_made(chosen: list[str], tmp_path: Path) -> None:
    words = [str(build_plain(SOURCES / "calls_failing.c", "-O1"))]
    native = subprocess.run(words, capture_output=True, check=True, timeout=60)
    assert run_clew(words, *chosen, path=tmp_path / "told").stdout == native.stdout


def test_all_of_many_processes_are_told_and_counted(tmp_path: Path) -> None:
    """What is captured of system calls is worked out for the first process, and copied to others."""
    n_children = 12
    words = ["sh", "-c", f"i=0; while [ $i -lt {n_children} ]; do /bin/true; i=$((i+1)); done"]
    run_clew(words, "--json", path=tmp_path / "json")
    objects = [json.loads(line) for line in (tmp_path / "json").read_text().splitlines()]
    by_process = [
        Counter(one["name"] for one in objects if one["pid"] == pid) for pid in {one["pid"] for one in objects}
    ]
    of_children = [names for names in by_process if not names["wait4"]]
    assert len(of_children) == n_children
    assert of_children == [of_children[0]] * n_children and of_children[0]["exit_group"] == 1
    run_clew(words, "-c", path=tmp_path / "counts")
    counts = [line.split() for line in (tmp_path / "counts").read_text().splitlines()[1:]]
    counted = {line[-1]: int(line[1]) for line in counts}
    # When a child's end interrupts the shell is another matter.
    names = {one["name"] for one in objects} - {"wait4", "rt_sigreturn", "rt_sigprocmask"}
    assert counted["execve"] == n_children
    assert {name: counted[name] for name in names} == {name: sum(one[name] for one in by_process) for name in names}


def test_what_nobody_describes_is_told_raw_and_counted(tmp_path: Path) -> None:
    words = [str(build_plain(SOURCES / "api" / "unknown_calls.c", "-O1"))]
    counted = b"5 calls without a description, arguments raw: syscall_0x190 (3), create_module (1), syscall_0x1ff (1)\n"
    for options in ((), ("--json",), ("-c",), ("-c", "--trace", str(tmp_path / "it.clew"))):
        done = run_clew(words, *options, path=tmp_path / "told")
        assert done.returncode == 0
        assert done.stderr.endswith(counted)
        text = (tmp_path / "told").read_text()
        if not options:
            line = "syscall_0x190(0x1, 0x2, 0x3, 0x4, 0x5, 0x6) = -1 ENOSYS (Function not implemented)"
            assert text.count(line) == 3
            assert "syscall_0x1ff(0x7, " in text and "create_module(0x" in text
        elif "--json" in options:
            objects = [json.loads(line) for line in text.splitlines()]
            raw = Counter(one["name"] for one in objects if not one["described"])
            assert raw == {"syscall_0x190": 3, "syscall_0x1ff": 1, "create_module": 1}
        else:
            by_name = {line.split()[-1]: line.split() for line in text.splitlines()[1:]}
            assert by_name["syscall_0x190"][1:3] == ["3", "3"]


NEWER = [
    "landlock_create_ruleset({handled_access_fs=LANDLOCK_ACCESS_FS_READ_FILE|LANDLOCK_ACCESS_FS_IOCTL_DEV, "
    "handled_access_net=LANDLOCK_ACCESS_NET_CONNECT_TCP, scoped=LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}, 24, 0x80000000)",
    "landlock_add_rule(-1, LANDLOCK_RULE_NET_PORT, {allowed_access=LANDLOCK_ACCESS_NET_BIND_TCP, port=8080}, 0)",
    "landlock_add_rule(-1, LANDLOCK_RULE_PATH_BENEATH, {allowed_access=LANDLOCK_ACCESS_FS_READ_DIR, parent_fd=-1}, 0)",
    "cachestat(-1, {off=0, len=4096}, ADDRESS, 0)",
    'setxattrat(-1, "/nothing", 0, "user.one", {value="the value", size=9, flags=XATTR_CREATE}, 16)',
    'file_setattr(-1, "/nothing", {fa_xflags=0x20, fa_extsize=1, fa_nextents=2, fa_projid=3, fa_cowextsize=4}, 24, 0)',
    "bpf(BPF_MAP_CREATE, {map_type=BPF_MAP_TYPE_HASH, key_size=4, value_size=8, max_entries=16, map_flags=0, "
    'inner_map_fd=0, map_name="the_map"}, 44)',
    "ptrace(PTRACE_PEEKSIGINFO, -1, {off=7, flags=0x1, nr=3}, ADDRESS)",
    "ptrace(PTRACE_SETOPTIONS, -1, NULL, PTRACE_O_TRACESYSGOOD|PTRACE_O_EXITKILL)",
    'quotactl(QCMD(Q_SETQUOTA, USRQUOTA), "/dev/nothing", 5, {dqb_bhardlimit=1, dqb_bsoftlimit=2, dqb_curspace=3, '
    "dqb_ihardlimit=4, dqb_isoftlimit=5, dqb_curinodes=6})",
    "keyctl(KEYCTL_UPDATE, KEY_SPEC_SESSION_KEYRING, [redacted], 11)",
    'keyctl(KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", "no such key", 0)',
    "msgget(IPC_PRIVATE, 0600)",
    "shmget(IPC_PRIVATE, 4096, 0600)",
    "semget(IPC_PRIVATE, 2, 0600)",
    "msgctl(ID, IPC_STAT, {msg_perm={uid=UID, gid=GID, mode=0600}, msg_qnum=0, msg_qbytes=N, msg_lspid=0, "
    "msg_lrpid=0, ...})",
    "msgctl(ID, IPC_RMID, NULL)",
    "shmctl(ID, IPC_STAT, {shm_perm={uid=UID, gid=GID, mode=0600}, shm_segsz=4096, shm_cpid=N, shm_lpid=0, "
    "shm_nattch=0, ...})",
    "shmctl(ID, IPC_RMID, NULL)",
    "semctl(ID, 1, SETVAL, 0x3)",
    "semctl(ID, 0, IPC_STAT, {sem_perm={uid=UID, gid=GID, mode=0600}, sem_nsems=2, ...})",
    "semctl(ID, 0, IPC_RMID, NULL)",
]
"""What the program says, call by call, whatever the kernel says of it."""


def test_arguments_by_a_command_and_newer_structures_are_told(tmp_path: Path) -> None:
    run_clew([str(build_plain(SOURCES / "api" / "newer_calls.c", "-O1"))], path=tmp_path / "told")
    lines = [re.sub(r"^\d+ [\d.]+ | = .*", "", line) for line in (tmp_path / "told").read_text().splitlines()]
    first = next(index for index, line in enumerate(lines) if line.startswith("landlock_create_ruleset"))
    told = lines[first : first + len(NEWER)]
    replaced = [
        (r"0x[0-9a-f]{9,}", "ADDRESS"),
        (r"(?<=(msg|shm|sem)ctl\()\d+", "ID"),
        (r"_(qbytes|cpid)=\d+", r"_\1=N"),
    ]
    replaced += [(f"uid={os.getuid()}", "uid=UID"), (f"gid={os.getgid()}", "gid=GID")]
    for pattern, word in replaced:
        told = [re.sub(pattern, word, line) for line in told]
    assert told == NEWER


def test_secrets_of_single_commands_are_told_where_they_are_asked_for(tmp_path: Path) -> None:
    program = build_plain(SOURCES / "api" / "newer_calls.c", "-O1")
    run_clew([str(program)], "--secrets", "--filter", "crypto", path=tmp_path / "told")
    assert 'keyctl(KEYCTL_UPDATE, KEY_SPEC_SESSION_KEYRING, "the new key", 11)' in (tmp_path / "told").read_text()


def test_a_description_of_ones_own_counts(tmp_path: Path) -> None:
    own = {
        "SystemCalls": [
            {
                "Name": "openat",
                "Number": {"x86_64": 257},
                "Filter": "Database",
                "Parameters": [
                    {"Index": 0, "Name": "where", "CType": "int", "RawType": "int"},
                    {"Index": 1, "Name": "what", "CType": "const char *", "RawType": "string"},
                    {"Index": -1, "Name": "result", "CType": "long", "RawType": "int"},
                ],
            }
        ]
    }
    (tmp_path / "own.json").write_text(json.dumps(own))
    run_clew(
        ["cat", "/etc/hostname"],
        "--api-file",
        str(tmp_path / "own.json"),
        "--filter",
        "database",
        path=tmp_path / "out",
    )
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines and all(re.search(r'openat\(-100, "[^"]*"(\.\.\.)?\) = ', line) for line in lines)


def test_a_process_that_runs_is_looked_at_and_left(tmp_path: Path) -> None:
    script = "import os, time\nwhile True:\n    os.getppid(); time.sleep(0.01)"
    with subprocess.Popen([sys.executable, "-S", "-c", script]) as process:
        try:
            arguments = ["--pid", str(process.pid), "--duration", "1", "--filter", "process", "--json"]
            done = run_clew([], *arguments, path=tmp_path / "out")
            assert done.returncode == 0, done.stderr
            objects = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
            assert {one["tid"] for one in objects} == {process.pid}
            parents = [one["result"] for one in objects if one["name"] == "getppid"]
            assert len(parents) > 10 and set(parents) == {os.getpid()}
            assert process.poll() is None
            status = Path(f"/proc/{process.pid}/status").read_text()
            assert "TracerPid:\t0" in status
        finally:
            process.kill()


def test_the_program_has_the_environment_that_clew_was_given(tmp_path: Path) -> None:
    """Python adds to its own (LC_CTYPE, without a locale), and so does clew for libraries that it uses."""
    words = [sys.executable, "-m", "clew", "api", "-o", str(tmp_path / "out"), "--", shutil.which("env") or "env"]
    environ = {"PYTHONPATH": str(runs.ROOT / "src"), "EMPTY": "", "ONE": "1"}
    done = subprocess.run(words, env=environ, capture_output=True, check=True, timeout=60)
    assert sorted(done.stdout.decode().splitlines()) == sorted(f"{name}={value}" for name, value in environ.items())


def test_what_ends_by_a_signal_is_told_as_shells_do(tmp_path: Path) -> None:
    assert run_clew(["sh", "-c", "kill -9 $$"], path=tmp_path / "out").returncode == 128 + 9
    assert run_clew([], path=tmp_path / "out").returncode == 2
    assert run_clew(["true"], "--pid", "1", path=tmp_path / "out").returncode == 2


def test_descriptors_are_told_by_what_they_stand_for(tmp_path: Path) -> None:
    script = 'echo one > "$0/a"; cat < "$0/a" > "$0/b"; mv "$0/b" "$0/c"; cat "$0/c"'
    words = ["sh", "-c", script, str(tmp_path)]
    run_clew(words, "-y", path=tmp_path / "told")
    text = (tmp_path / "told").read_text()
    assert f'openat(AT_FDCWD<{Path.cwd()}>, "{tmp_path}/a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3<{tmp_path}/a>' in text
    assert f'write(1<{tmp_path}/a>, "one\\n", 4) = 4' in text
    # What was closed stands for nothing.
    assert re.search(rf"dup2\(3<{tmp_path}/b>, 1\) = 1<{tmp_path}/b>", text)
    # Under whatever name it was opened.
    run_clew(words, "-P", f"{tmp_path}/[bc]", path=tmp_path / "some")
    some = [re.sub(r"^\d+ [\d.]+ ", "", line) for line in (tmp_path / "some").read_text().splitlines()]
    assert any(line.startswith(f'openat(AT_FDCWD, "{tmp_path}/b", O_WRONLY') for line in some)
    assert any(line.startswith("rename") for line in some)
    assert not any(f'"{tmp_path}/a"' in line for line in some)
    run_clew(words, "--fd", "1", path=tmp_path / "ones")
    lines = (tmp_path / "ones").read_text().splitlines()
    assert lines
    assert all(re.search(r"[(, ]1[,)]| = 1 ", line) for line in lines)
