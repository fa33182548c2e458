"""Functions that pass their arguments to system calls are told as those: both are told of the same run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import clew
from clew.api.reading import load_built_in
from clew.api.vocabulary import FILTERS
from tests.e2e.api_runs import run_clew

SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>
int main(void) {
    char room[64] = "some text", parts[2][4];
    struct iovec pieces[] = {{parts[0], 4}, {parts[1], 4}};
    struct stat status;
    struct statfs files;
    struct utsname names;
    struct rlimit limit;
    struct termios terminal;
    struct epoll_event event = {EPOLLIN, {.u32 = 7}};
    struct timeval soon = {0, 1000};
    struct itimerspec later = {{0, 0}, {5, 0}};
    struct sockaddr_un address = {AF_UNIX, "nobody"};
    int fd, other, pair[2], n = 1;
    socklen_t size = sizeof n;
    fd = open("made", O_RDWR | O_CREAT | O_TRUNC, 0640);
    other = open("made", O_RDONLY | O_CLOEXEC);
    close(openat(AT_FDCWD, ".", O_RDWR | O_TMPFILE, 0600));
    close(openat(AT_FDCWD, "none", O_PATH));
    close(creat("made2", 0600));
    write(fd, room, 9);
    pwrite(fd, room, 4, 2);
    lseek(fd, 0, SEEK_SET);
    read(fd, room, sizeof room);
    pread(fd, room, 3, 1);
    readv(other, pieces, 2);
    writev(fd, pieces, 2);
    fstat(fd, &status);
    fstatfs(fd, &files);
    fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_DUPFD_CLOEXEC, 50);
    fcntl(fd, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 5});
    ioctl(fd, FIONREAD, &n);
    ioctl(fd, TCGETS, &terminal);
    ioctl(fd, FIOCLEX);
    ftruncate(fd, 5);
    fchmod(fd, 0600);
    access("none", R_OK | X_OK);
    mkdir("folder", 0700);
    rename("made2", "folder/made");
    unlink("folder/made");
    rmdir("folder");
    symlink("made", "link");
    readlink("link", room, sizeof room);
    getxattr("made", "user.none", room, sizeof room);
    pipe(pair);
    poll(&(struct pollfd){pair[0], POLLIN, 0}, 1, 0);
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(pair[0], &reads);
    select(pair[0] + 1, &reads, NULL, NULL, &soon);
    dup2(pair[0], 60);
    fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(fd, EPOLL_CTL_ADD, pair[0], &event);
    epoll_wait(fd, &event, 1, 0);
    fd = inotify_init1(IN_NONBLOCK);
    inotify_add_watch(fd, ".", IN_CREATE | IN_DELETE);
    fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    timerfd_settime(fd, 0, &later, NULL);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connect(fd, (struct sockaddr *)&address, sizeof address);
    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &n, sizeof n);
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &n, &size);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    sendto(pair[0], "hi", 2, MSG_DONTWAIT, NULL, 0);
    recvmsg(pair[1], &(struct msghdr){.msg_iov = pieces, .msg_iovlen = 2}, MSG_DONTWAIT);
    shutdown(pair[0], SHUT_WR);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page, 4096, PROT_READ);
    madvise(page, 4096, MADV_DONTNEED);
    munmap(page, 4096);
    fd = msgget(IPC_PRIVATE, 0600);
    msgsnd(fd, &(struct { long kind; char text[4]; }){5, "abc"}, 4, IPC_NOWAIT);
    msgrcv(fd, room, 8, 5, IPC_NOWAIT);
    msgctl(fd, IPC_RMID, NULL);
    fd = semget(IPC_PRIVATE, 1, 0600);
    semctl(fd, 0, SETVAL, 3);
    semop(fd, &(struct sembuf){0, -1, IPC_NOWAIT}, 1);
    semctl(fd, 0, IPC_RMID);
    mq_unlink("/none");
    prctl(PR_SET_NAME, "renamed");
    prctl(PR_GET_DUMPABLE);
    getrlimit(RLIMIT_NOFILE, &limit);
    uname(&names);
    unshare(0);
    clock_settime(CLOCK_MONOTONIC, &later.it_value);
    nanosleep(&(struct timespec){0, 1000}, NULL);
    sem_open("/none of these", O_RDWR);
    sem_close(sem_open("/one of these", O_CREAT, 0600, 5));
    sem_unlink("/one of these");
    return 0;
}
"""


def _same(line: str) -> str:
    """Without the error of a call that failed: of functions nobody knows it."""
    return re.sub(r" = -1(?: \w+ \([^)]*\))?$", " = -1", line)


def test_functions_are_told_as_their_calls(tmp_path: Path) -> None:
    (tmp_path / "wrappers.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O0", "-w", "wrappers.c", "-o", "wrappers"], cwd=tmp_path, check=True)
    described = load_built_in()
    calls = {name: one.call for (_, name), one in described.functions.items() if one.call is not None}
    patterns = [word for name in calls for word in ("--function", f"libc.so.6:{name}")]
    patterns += [word for name in FILTERS for word in ("--filter", name.lower())]
    program = ["sh", "-c", f"cd {tmp_path} && exec ./wrappers"]
    run_clew(*patterns, "-o", tmp_path / "told", "--", *program)
    lines = [line.split(" ", 2)[2].rpartition(" <")[0] for line in (tmp_path / "told").read_text().splitlines()]
    at = next(index for index, line in enumerate(lines) if '"made", O_RDWR' in line)
    before: list[str] = []
    compared = set()
    for line in lines[at - 1 :]:
        if not line.startswith("libc.so.6!"):
            before.append(_same(line))
            continue
        name, mark, rest = line.removeprefix("libc.so.6!").partition("(")
        told, made = _same(f"{calls[name]}{mark}{rest}"), before[-1]
        if calls[name] == "open":
            # The library has one call for both.
            told = told.replace("open(", "openat(AT_FDCWD, ", 1)
        if made.partition("(")[0] == told.partition("(")[0]:
            # Some make another one of the same kind (pipe2).
            # What a function is not given it passes on as 0; names of queues have no slash for the kernel.
            assert told.replace('"/none', '"none') == made.replace("IPC_RMID, NULL)", "IPC_RMID)") or told == made
            compared.add(name)
    assert len(compared) >= 60, sorted(compared)
    opened = [line for line in lines if line.startswith("libc.so.6!open")]
    assert 'libc.so.6!open("made", O_RDWR|O_CREAT|O_TRUNC, 0640)' in opened[0]
    assert 'libc.so.6!open("made", O_RDONLY|O_CLOEXEC)' in opened[1]


def test_a_handle_that_is_a_number_may_be_0(tmp_path: Path) -> None:
    source = r"""
    #include <signal.h>
    #include <time.h>
    int main(void) {
        timer_t first, other;
        struct sigevent nothing = {.sigev_notify = SIGEV_NONE};
        struct itimerspec later = {{0, 0}, {99, 0}};
        timer_create(CLOCK_MONOTONIC, &nothing, &first);
        timer_create(CLOCK_MONOTONIC, &nothing, &other);
        timer_settime(first, 0, &later, NULL);
        timer_delete(first);
        timer_create(99, &nothing, &first);
        return first != 0;
    }
    """
    (tmp_path / "timers.c").write_text(source)
    subprocess.run(["gcc", "-O1", "-w", "timers.c", "-o", "timers"], cwd=tmp_path, check=True)
    trace = tmp_path / "it.clew"
    options: list[str | Path] = ["--function", "libc.so.6:timer_*", "-o", tmp_path / "told", "--trace", trace]
    run_clew(*options, "--", tmp_path / "timers")
    lines = [re.sub(r"0x[0-9a-f]{6,}", "P", line.partition("!")[2]) for line in (tmp_path / "told").open()]
    assert [line.rpartition(" <")[0] for line in lines] == [
        "timer_create(CLOCK_MONOTONIC, P, [0]) = 0",
        "timer_create(CLOCK_MONOTONIC, P, [0x1]) = 0",
        "timer_settime(0, 0, P, NULL) = 0",
        "timer_delete(0) = 0",
        "timer_create(99, P, P) = -1",
    ]
    read = clew.Trace(trace)
    calls = {row["call_id"]: row["name"] for row in read.read("calls").to_pylist()}
    timers = [row["entity_id"] for row in read.read("entities").to_pylist() if row["kind"] == "timer"]
    roles: dict[int, list[tuple[str, str]]] = {}
    for row in read.read("references").to_pylist():
        roles.setdefault(row["entity_id"], []).append((calls[row["call_id"]], row["role"]))
    assert sorted(roles[timer] for timer in timers) == [
        [("timer_create", "created")],
        [("timer_create", "created"), ("timer_settime", "changed"), ("timer_delete", "closed")],
    ]
