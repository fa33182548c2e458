"""Paths as another thread sees them."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.address import Tid
from clew.process.target_path import TargetPaths


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Tid]:
    """A process with `tmp_path` as its root and a working directory below, and a file open as descriptor 99."""
    if os.geteuid() != 0:
        pytest.skip("only root may change its root")
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "file").touch()
    for name, target in {"here": "file", "top": "/file", "up": "../../../file", "loop": "/deep/loop"}.items():
        (tmp_path / "deep" / name).symlink_to(target)
    (tmp_path / "deep" / "file").touch()
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(tmp_path / "deep" / "file", os.O_RDONLY), 99)
        os.chroot(tmp_path)
        os.chdir("/deep")
        os.write(told, b"!")
        signal.pause()
    os.read(ready, 1)
    yield Tid(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(ready)
    os.close(told)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/file", "file"),
        ("/../../file", "file"),
        ("../../file", "file"),
        ("file", "deep/file"),
        ("./deeper//../file", "deep/file"),
        ("here", "deep/file"),
        ("top", "file"),
        ("up", "file"),
        ("/deep/deeper", "deep/deeper"),
    ],
)
def test_paths_in_another_root(inside: Tid, tmp_path: Path, path: str, wanted: str) -> None:
    with TargetPaths(inside) as paths:
        fd = paths.open(path.encode())
    assert os.path.samestat(os.fstat(fd), (tmp_path / wanted).stat())
    os.close(fd)


@pytest.mark.parametrize(("path", "number"), [("loop", errno.ELOOP), ("no", errno.ENOENT), ("file/", errno.ENOTDIR)])
def test_paths_that_lead_nowhere(inside: Tid, path: str, number: int) -> None:
    before = os.listdir("/proc/self/fd")
    with TargetPaths(inside) as paths, pytest.raises(OSError) as caught:
        paths.open(path.encode() + b"/x" * (number == errno.ENOTDIR))
    assert caught.value.errno == number
    assert os.listdir("/proc/self/fd") == before


def test_descriptors_and_proc_are_those_of_the_thread(tmp_path: Path) -> None:
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.dup2(os.open(tmp_path, os.O_RDONLY), 99)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 98)
        os.write(told, b"!")
        signal.pause()
    os.read(ready, 1)
    try:
        with TargetPaths(Tid(pid)) as paths:
            for path, descriptor, wanted in (
                ("/proc/self/cwd", None, tmp_path),
                ("/proc/thread-self/fd/99/.", None, tmp_path),
                ("/proc/mounts", None, Path(f"/proc/{pid}/mounts")),
                ("/dev/fd/98", None, Path("/dev/null")),
                ("", 98, Path("/dev/null")),
                (".", 99, tmp_path),
            ):
                fd = paths.open(path.encode(), descriptor)
                assert os.path.samestat(os.fstat(fd), wanted.stat()), path
                os.close(fd)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ready)
        os.close(told)
