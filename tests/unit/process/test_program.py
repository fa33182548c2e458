"""What a command means, and every reason not to start it."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest

from clew.errors import ClewError, CommandNotFoundError, NotExecutableError
from clew.process import program as program_module
from clew.process.program import find_program


def elf(path: Path, *, file_class: int = 2, data: int = 1, machine: int = 62, kind: int = 2) -> Path:
    order = "<" if data == 1 else ">"
    path.write_bytes(
        b"\x7fELF" + bytes([file_class, data, 1]) + bytes(9) + struct.pack(f"{order}HHI", kind, machine, 1) + bytes(100)
    )
    path.chmod(0o755)
    return path


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def refuse(command: str | Path, environment: dict[str, str] | None = None) -> ClewError:
    with pytest.raises((CommandNotFoundError, NotExecutableError)) as caught:
        find_program(str(command), environment)
    assert caught.value.exit_status == 2
    assert "\n" not in caught.value.message
    return caught.value


def test_names_are_searched_in_path(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "c").mkdir()
    (tmp_path / "a" / "tool").write_text("not executable")
    (tmp_path / "b" / "tool").mkdir()
    wanted = elf(tmp_path / "c" / "tool")
    environment = {"PATH": f"{tmp_path}/a:{tmp_path}/b:{tmp_path}/none:{tmp_path}/c"}
    assert find_program("tool", environment).path == str(wanted)
    assert "not executable" in refuse("tool", {"PATH": f"{tmp_path}/a"}).message
    assert "no such command" in refuse("tool", {"PATH": f"{tmp_path}/b"}).message


def test_empty_path_entry_is_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    elf(tmp_path / "tool")
    assert find_program("tool", {"PATH": ":/nowhere"}).path == "./tool"
    assert "did you mean ./tool" in refuse("tool", {"PATH": "/nowhere"}).message


@pytest.mark.parametrize("command", ["", "no-such-command-at-all", "/no/such/file", "a\0b"])
def test_no_such_command(command: str) -> None:
    assert isinstance(refuse(command), CommandNotFoundError)


def test_directory(tmp_path: Path) -> None:
    assert "a directory" in refuse(tmp_path).message


def test_not_executable(tmp_path: Path) -> None:
    path = elf(tmp_path / "tool")
    path.chmod(0o644)
    assert "chmod +x" in refuse(path).message


def test_text_without_interpreter(tmp_path: Path) -> None:
    assert "#!" in refuse(script(tmp_path / "tool", "echo hi\n")).message


def test_empty_file(tmp_path: Path) -> None:
    refuse(script(tmp_path / "tool", ""))


@pytest.mark.parametrize(
    ("header", "word"),
    [
        ({"machine": 183}, "AArch64"),
        ({"machine": 243}, "RISC-V"),
        ({"machine": 3, "file_class": 1}, "32-bit x86"),
        ({"file_class": 1}, "32-bit"),
        ({"machine": 22, "data": 2}, "S390"),
        ({"machine": 9999}, "ELF machine 9999"),
        ({"kind": 1}, "no program"),
    ],
)
def test_programs_of_other_kinds(tmp_path: Path, header: dict[str, int], word: str) -> None:
    assert word in refuse(elf(tmp_path / "tool", **header)).message


def test_truncated_elf(tmp_path: Path) -> None:
    assert "truncated" in refuse(script(tmp_path / "tool", "\x7fELF\x02\x01")).message


def test_scripts_are_run_by_their_interpreter(tmp_path: Path) -> None:
    interpreter = elf(tmp_path / "interpreter")
    inner = script(tmp_path / "inner", f"#!{interpreter} -x\n")
    outer = script(tmp_path / "outer", f"#! {inner}\nbody\n")
    found = find_program(str(outer))
    assert (found.path, found.interpreter) == (str(outer), str(interpreter))


def test_scripts_with_impossible_interpreters(tmp_path: Path) -> None:
    assert "does not exist" in refuse(script(tmp_path / "a", "#!/no/such/interpreter\n")).message
    assert "names no interpreter" in refuse(script(tmp_path / "b", "#!   \n")).message
    assert "a directory" in refuse(script(tmp_path / "c", f"#!{tmp_path}\n")).message
    assert "scripts of scripts" in refuse(script(tmp_path / "d", f"#!{tmp_path}/d\n")).message
    assert "AArch64" in refuse(script(tmp_path / "e", f"#!{elf(tmp_path / 'arm', machine=183)}\n")).message


def test_set_uid_programs_need_a_privileged_tracer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = elf(tmp_path / "tool")
    path.chmod(0o4755)
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        pytest.skip("the temporary directory is mounted nosuid")
    somebody = path.stat().st_uid + 1
    status = {"Uid": f"{somebody} {somebody}", "Gid": f"{path.stat().st_gid} {path.stat().st_gid}"}
    may_trace = False
    monkeypatch.setattr(program_module, "read_status", lambda pid: status)
    monkeypatch.setattr(program_module, "has_ptrace_capability", lambda: may_trace)
    assert "set-uid" in refuse(path).message
    may_trace = True
    find_program(str(path))
    may_trace = False
    status["NoNewPrivs"] = "1"
    find_program(str(path))


def test_unreadable_program(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        path = elf(tmp_path / "tool")
        path.chmod(0o111)
        assert "can't be followed" in refuse(path).message
        return
    # As root nothing is unreadable: ask as somebody else, from a directory that anybody may enter.
    directory = Path(f"/tmp/clew-unreadable-{os.getpid()}")
    directory.mkdir(mode=0o755)
    try:
        path = elf(directory / "tool")
        path.chmod(0o111)
        pid = os.fork()
        if pid == 0:
            os.setuid(65534)
            try:
                find_program(str(path))
            except NotExecutableError as error:
                os._exit(0 if "can't be followed" in error.message else 3)
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        subprocess.run(["rm", "-rf", directory], check=True)
