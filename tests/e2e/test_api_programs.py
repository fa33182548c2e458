"""`clew api` beside strace on whole programs: servers with clients, a database, version control, pipelines of a shell.

Two runs of such a program are no more alike than two under strace: who waits for whom, and how often, is left out, by
rules of each program that say why. These are about two runs, not about strace: what strace and clew write otherwise is
in `strace_kinds.py`. All else is compared call by call.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.e2e.strace_lines import Call, read_both
from tests.programs.build import SOURCES

TEXT = r'"(?:[^"\\]|\\.)*"(?:\.\.\.)?'
MEMORY = r"(mmap|munmap|brk|madvise|mremap|mprotect)\("
"""How memory is cut up depends on addresses, which are other ones each time."""
LOCKS = r"futex\("
"""How often threads wait for each other."""
GIT = """
git init -q there && cd there && git config user.name me && git config user.email me@here
echo one > a && mkdir b && echo two > b/c && touch -d 2001-01-01 a b/c && git add . && git commit -q -m first
echo three >> a && git status --short && git diff --stat && git log --format=%H
"""
SQL = """
create table things(number integer primary key, name text);
insert into things(name) values('one'), ('two'), ('three');
select * from things where name like 't%';
begin; update things set name = 'other'; rollback;
pragma journal_mode = wal; insert into things(name) values('four'); select count(*) from things;
"""
PIPELINES = r"""
cat <<< $'b\na\nb' | sort | uniq -c
told=$(echo hello | tr a-z A-Z); echo "$told" > file
(cd /; cat) < file | cat > copy; wc -c < copy
cmp <(cat file) <(cat copy); grep HELLO <<< "$told" && ! cat /no/such/file 2> /dev/null
"""


@dataclass(frozen=True)
class Program:
    """What is run, in a folder of its own. `needs`: programs without which it can't be.

    `others`: names of calls, what differs there from run to run, and what stands for it. `left_out`: how calls begin,
    as lines of name, arguments and result, one or some behind each other, of which there are more or fewer.
    """

    words: list[str]
    needs: tuple[str, ...]
    others: list[tuple[str, str, str]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


PYTHON = [sys.executable, "-S", "-E"]
PROGRAMS = {
    "git": Program(
        ["sh", "-c", GIT],
        ("git",),
        [
            # Names that are free, and the bytes that they are made of.
            (".*", r"tmp_obj_\w{6}", "tmp_obj_N"),
            (".*", r"/\.git/t\w{6}", "/.git/tN"),
            ("read", TEXT + ", 8$", "BYTES, 8"),
            # When files were made, and their numbers, are in the index, and the sum of that at its end.
            ("read|write", r'"DIRC' + TEXT[1:], "INDEX"),
            ("read|write", TEXT + ", 20$", "SUM, 20"),
        ],
        # What the C library makes names of has to be drawn again now and then.
        [r"getrandom\("],
    ),
    "sqlite": Program(
        ["sqlite3", "file.db", SQL],
        ("sqlite3",),
        # Journals have random numbers, and sums of them.
        [("p?write64|pwrite64|pread64", TEXT, "BYTES"), ("read", TEXT + ", (44|256)$", r"BYTES, \1")],
    ),
    "pipelines": Program(
        ["bash", "-c", PIPELINES],
        ("bash",),
        # What a program reads of its own memory.
        [("read", r'"[0-9a-f]+-[0-9a-f]+ .*', "MAPS"), ("read", r'^3, "", \d+$', "END")],
        [
            # When the shell hears of a child's end: while it waits for it, or in between, and of several at once.
            r"(wait4|rt_sigreturn|rt_sigprocmask)\(",
            r"rt_sigaction\(SIGINT",
        ],
    ),
    "http": Program(
        [*PYTHON, str(SOURCES / "api" / "serving.py")],
        (),
        [
            ("write", r"\[\d+/\w+/[^\"]*", "[DATE"),
            ("write", r"port \d+", "port N"),
            # How much room is left when a pipe ends tells in how many pieces it was read.
            ("read", r'^3, "", \d+$', '3, "", N'),
        ],
        [
            LOCKS,
            # In how many pieces a pipe is read.
            r'read\(3, "(Serving|\\nKeyboard|\\n")',
            # A server waits for half a second at most, and a client for the server's threads.
            r"poll\(\[\{fd=3, events=POLLIN\}\], 1, 500\) = (0|-1)",
            r'\w+\(.*"/proc/PID/(task|syscall)"',
            r"(newfstatat|getdents64|close)\(4[,)]",
            r'read\(4, "(running|\d+ )',
        ],
    ),
    "redis": Program(
        [*PYTHON, str(SOURCES / "api" / "redis_client.py")],
        ("redis-server", "redis-cli"),
        [
            ("write", r'"PID:\w \d+ \w+ [^"]*"', "LINE"),
            ("read", TEXT + ", 4096$", "BYTES, 4096"),
            ("read", r'^3, "", \d+$', '3, "", N'),
            ("epoll_wait", r"\d+$", "N"),
            ("readlink", r"pipe:\[\d+\]", "pipe:[N]"),
        ],
        [
            LOCKS,
            r'read\(3, "PID:',
            r'\w+\(.*"/proc/PID/fd',
            r"(newfstatat|getdents64|close)\(4[,)]",
            # Of a process that ends its last threads end it once more, if they come to it.
            r"exit_group\(",
            # What it does ten times a second.
            r"epoll_wait\(.* = 0",
            r'openat\(AT_FDCWD, "/proc/self/stat".*\nread\(.*\nclose\(',
        ],
    ),
}


def clean(calls: list[Call], program: Program) -> list[str]:
    """Calls as lines, without what differs from run to run."""
    lines = []
    for name, arguments, result in calls:
        text = arguments
        for names, pattern, other in program.others:
            if re.fullmatch(names, name):
                text = re.sub(pattern, other, text)
        lines.append(f"{name}({text}) = {'?' if 'MAPS' in text else result}")
    text = "".join(f"{line}\n" for line in lines)
    for pattern in (MEMORY, *program.left_out):
        text = re.sub(rf"^(?:{pattern}).*\n", "", text, flags=re.MULTILINE)
    return text.splitlines()


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a folder that is made anew: names of files are the same each time."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    date = "2001-02-03T04:05:06Z"
    environ = {
        **runs.environment(),
        "HOME": str(folder),
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_DATE": date,
        "GIT_CONFIG_NOSYSTEM": "1",
        "CLEW_RELAYOUT": "4",
    }
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, check=False, timeout=300)


@pytest.mark.skipif(shutil.which("strace") is None, reason="this machine has no strace")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_calls_as_strace_has(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    for need in program.needs:
        if shutil.which(need) is None:
            pytest.skip(f"this machine has no {need}")
    strace = ["strace", "-f", "-ttt", "-T", "-o", str(tmp_path / "strace")]
    known = run([*strace, *program.words], tmp_path / "files")
    clew = [sys.executable, "-m", "clew", "api", "-o", str(tmp_path / "clew"), "--"]
    found = run([*clew, *program.words], tmp_path / "files")
    assert (found.returncode, found.stdout, found.stderr) == (known.returncode, known.stdout, known.stderr)
    assert known.returncode == 0
    expected, told = read_both(*((tmp_path / which).read_text() for which in ("strace", "clew")))
    for calls in (*expected, *told):
        calls[:] = [call for call in calls if call[0] != "execve" or call[2] != "0"]
    # Of what runs side by side anybody may be first.
    theirs, ours = (sorted(clean(calls, program) for calls in threads) for threads in (expected, told))
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        assert not list(unified_diff(their, our, "strace", "clew", n=2, lineterm=""))
