"""What `clew api` is told to hide: it occurs in nothing that is written, and data that nobody wants is not taken."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import clew
from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain

SECRET = "tok-9f81c2e7"
SCRIPT = """
import ctypes, os, socket, sys
word = sys.argv[1]
os.environ["NAME_OF_" + word.replace("-", "_")] = word
with open(word + ".txt", "w") as file:
    file.write("user=bob\\npassword=" + word + "\\nend")
print(open(word + ".txt").read(), flush=True)
os.rename(word + ".txt", word + ".old")
ctypes.CDLL(None).prctl(15, word.encode(), 0, 0, 0)
a, b = socket.socketpair()
a.sendmsg([b"one ", word.encode()])
b.recv(100)
s = socket.socket(socket.AF_UNIX)
s.bind(word + ".socket")
os.setxattr(word + ".old", "user.x", word.encode()) if len(sys.argv) > 2 else None
os.system("cat " + word + ".old > /dev/null")
if os.environ.get("WAITS"):
    os.read(0, 1)
"""


def command(tmp_path: Path, *options: str, words: list[str] | None = None) -> list[str]:
    (tmp_path / "script.py").write_text(SCRIPT)
    program = words or [sys.executable, "-S", "-E", str(tmp_path / "script.py"), SECRET]
    return [sys.executable, "-m", "clew", "api", *options, "-o", str(tmp_path / "told"), "--", *program]


def environment() -> dict[str, str]:
    return {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}


def run(tmp_path: Path, *options: str, words: list[str] | None = None) -> str:
    done = subprocess.run(
        command(tmp_path, *options, words=words), cwd=tmp_path, env=environment(), capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert words is not None or SECRET.encode() in done.stdout
    assert SECRET.encode() not in done.stderr
    return (tmp_path / "told").read_text()


def everything(trace: Path) -> bytes:
    """All that a trace says: the bytes of its files as they are, and the values of its tables, which are packed."""
    raw = b"".join(path.read_bytes() for path in trace.rglob("*") if path.is_file())
    read = clew.Trace(trace)
    tables = (read.read(name).to_pylist() for name in sorted(path.name for path in trace.iterdir() if path.is_dir()))
    return raw + "".join(map(str, tables)).encode(errors="surrogateescape")


@pytest.mark.parametrize("form", ["text", *(pytest.param(form, marks=pytest.mark.long) for form in ("json", "full"))])
def test_what_fits_a_pattern_is_nowhere(form: str, tmp_path: Path) -> None:
    trace = tmp_path / "it.clew"
    extra = {"text": ["-y"], "json": ["--json"], "full": ["--mode", "full"]}[form]
    text = run(tmp_path, "--redact", r"tok-\w+", "-s", "200", "--trace", str(trace), *extra)
    assert SECRET not in text
    content = everything(trace)
    assert SECRET.encode() not in content
    # What is around it is told.
    if form != "json":
        assert 'user=bob\\npassword=[redacted]\\nend"' in text
        assert "openat(AT_FDCWD" in text and '"[redacted].txt", O_WRONLY' in text
    assert b"[redacted].old" in content and b"password=[redacted]" in content
    assert not clew.Trace(trace).verify()
    assert clew.Trace(trace).read("processes")["command"].to_pylist()[0][-1] == "[redacted]"
    assert "[redacted]" in clew.Trace(trace).read("threads")["name"].to_pylist()


def test_what_a_killed_recorder_leaves_has_none(tmp_path: Path) -> None:
    trace = tmp_path / "it.clew"
    words = command(tmp_path, "--redact", r"tok-\w+", "--mode", "full", "--trace", str(trace))
    with subprocess.Popen(words, cwd=tmp_path, env={**environment(), "WAITS": "1"}, stdin=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while not (tmp_path / "told").exists() or "wait4" not in (tmp_path / "told").read_text():
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    left = [path for path in trace.rglob("*") if path.is_file()]
    assert left
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in left)


def test_without_data_there_is_only_how_much(tmp_path: Path) -> None:
    trace = tmp_path / "it.clew"
    text = run(tmp_path, "--no-data", "--trace", str(trace))
    lines = [line for line in text.splitlines() if re.search(r" (write|read|sendmsg|recvfrom)\(", line)]
    assert len(lines) > 10
    assert all('"' not in line for line in lines), lines
    n_bytes = len(f"user=bob\npassword={SECRET}\nend")
    assert re.search(rf"write\(\d+, \[{n_bytes} bytes\], {n_bytes}\) = {n_bytes}", text)
    # Names of files say what calls are about.
    assert f'"{SECRET}.txt"' in text
    assert b"password" not in everything(trace)
    assert [len(row) for row in clew.Trace(trace).read("processes")["command"].to_pylist()].count(1) >= 2


def test_arguments_are_hidden_by_their_names(tmp_path: Path) -> None:
    text = run(tmp_path, "--redact-args", "write:buf", "--redact-args", "*name", "--redact-args", "fd")
    assert re.search(r"write\(\[redacted\], \[redacted\], \d+\) = \d+", text)
    assert re.search(r"openat\(AT_FDCWD, \[redacted\], ", text)
    assert 'read([redacted], "' in text


def test_secrets_of_descriptions_are_told_only_if_asked_for(tmp_path: Path) -> None:
    source = SOURCES / "api" / "secrets.c"
    words = [str(build_plain(source, "-O1", "-Wl,--no-as-needed", "-lcrypt"))]
    functions = ("--function", "libcrypt*:crypt", "--filter", "user")
    text = run(tmp_path, *functions, words=words)
    assert "open sesame" not in text
    assert re.search(r'crypt\(\[redacted\], "\$1\$abcdefgh\$"\) = ', text)
    assert 'crypt("open sesame", ' in run(tmp_path, *functions, "--secrets", words=words)


def test_a_pattern_that_is_none_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path, "--redact", "("), cwd=tmp_path, env=environment(), capture_output=True, timeout=120
    )
    assert done.returncode == 2
    assert b"--redact: no regular expression: " in done.stderr


def test_descriptions_hide_what_is_secret_in_structures(tmp_path: Path) -> None:
    own = {
        "Structs": {
            "iovec": {
                "Size": 16,
                "Members": [
                    {"Name": "iov_base", "Offset": 0, "Size": 8, "CType": "void *", "RawType": "buffer"}
                    | {"Leads": True, "Bytes": "iov_len", "Secret": True},
                    {"Name": "iov_len", "Offset": 8, "Size": 8, "CType": "size_t", "RawType": "size"},
                ],
            }
        }
    }
    (tmp_path / "own.json").write_text(json.dumps(own))
    text = run(tmp_path, "--api-file", str(tmp_path / "own.json"))
    assert "msg_iov=[{iov_base=[redacted], iov_len=4}, {iov_base=[redacted], iov_len=12}]" in text
