"""What goes wrong on the way: full disks, interrupts, a controller that is killed, traces cut off. One line says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from clew.store.names import JOURNAL_NAME
from clew.store.schema import OPTIONAL_TABLES, SCHEMAS
from clew.store.trace import Trace
from tests.e2e import runs
from tests.programs.build import find

READERS = (
    ("info",),
    ("info", "--json"),
    ("report",),
    ("report", "--by", "block"),
    ("verify",),
    ("export", "--to", "drcov", "-o", "-"),
)

NEVER_LAID_OUT_ANEW = {"CLEW_RELAYOUT": "0"}
"""How much is recorded of a program is then what a small disk was made for."""


@pytest.fixture(scope="module")
def trace(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of a small dynamic program."""
    path = tmp_path_factory.mktemp("failures") / "calls.clew"
    assert runs.record([find("calls").path], path).status == 0
    return path


def is_one_line(text: bytes) -> bool:
    return text.startswith(b"clew: ") and text.count(b"\n") == 1 and b"internal error" not in text


@contextmanager
def small_disk(place: Path, size_bytes: int) -> Iterator[Path]:
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", place]).returncode != 0:
        pytest.skip("only root can mount a small file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@contextmanager
def recording_of_a_copy(trace: Path, *, quiet: bool = True) -> Iterator[subprocess.Popen[bytes]]:
    """A recording whose target copies its input to its output, line by line, and has done so once."""
    command = [
        os.fspath(word)
        for word in runs.clew_command("record", *(["-q"] if quiet else []), "-o", trace, "--", "sed", "-u", "p")
    ]
    pipe = subprocess.PIPE
    environ = runs.environment() | NEVER_LAID_OUT_ANEW
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"first\n")
            process.stdin.flush()
            assert process.stdout.readline() + process.stdout.readline() == b"first\nfirst\n"
            yield process
        finally:
            process.kill()


def test_a_disk_that_is_full_while_recording(tmp_path: Path) -> None:
    command = ["gzip", "-9c", sys.executable]
    native = runs.run(command)
    with small_disk(tmp_path / "small", 160 << 10) as small:
        recorded = runs.run(runs.clew_command("record", "-o", small / "out.clew", "--", *command))
        assert (recorded.status, recorded.stdout) == (native.status, native.stdout)
        assert b"No space left on device; what came later was kept in memory" in recorded.stderr
        runs.read(small / "out.clew")


@pytest.mark.parametrize("mode", ["counts", "coverage"])
def test_a_disk_that_is_too_small_for_any_trace(tmp_path: Path, mode: str) -> None:
    with small_disk(tmp_path / "small", 64 << 10) as small:
        trace = small / "out.clew"
        command = ["sh", "-c", "echo output; exit 3"]
        environ = runs.environment() | NEVER_LAID_OUT_ANEW
        recorded = runs.run(runs.clew_command("record", "--mode", mode, "-o", trace, "--", *command), environ=environ)
        assert (recorded.status, recorded.stdout) == (3, b"output\n")
        assert b"the disk is full" in recorded.stderr
        assert b"clew recover" in recorded.stderr.splitlines()[-1]
        assert [path.name for path in trace.iterdir()] == [JOURNAL_NAME]

        refused = runs.run(runs.clew_command("recover", trace))
        assert refused.status == 1
        assert b"the disk is full" in refused.stderr
        assert is_one_line(refused.stderr)
        assert [path.name for path in trace.iterdir()] == [JOURNAL_NAME]

        subprocess.run(["mount", "-o", "remount,size=1m", small], check=True)
        recovered = runs.run(runs.clew_command("recover", trace))
        assert recovered.status == 0 and is_one_line(recovered.stderr)
        info = runs.run(runs.clew_command("info", trace)).stdout
        assert b"lost: " in info and info.splitlines()[-1] in recovered.stderr
        # The counters all found room, and not all of the code.
        assert Trace(trace).blocks.num_rows > 50
        assert (Trace(trace).manifest.losses["damaged_counters"] > 0) == (mode == "counts")
        assert Trace(trace).manifest.lost_records > 0


def test_a_disk_that_is_full_already(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 16 << 10) as small:
        (small / "filler").write_bytes(bytes(16 << 10))
        recorded = runs.run(runs.clew_command("record", "-o", small / "out.clew", "--", "echo", "output"))
        assert (recorded.status, recorded.stdout) == (1, b"")
        assert b"the disk is full" in recorded.stderr
        assert is_one_line(recorded.stderr)
        assert [path.name for path in small.iterdir()] == ["filler"]


def test_a_disk_that_has_room_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 1 << 20) as small:
        filler = small / "filler"
        filler.write_bytes(bytes((1 << 20) - (16 << 10)))
        with recording_of_a_copy(small / "out.clew", quiet=False) as process:
            assert process.stderr is not None
            assert b"kept in memory meanwhile: free some space" in process.stderr.readline()
            filler.unlink()
            output, complaints = process.communicate(b"last\n", timeout=60)
            assert (process.returncode, output) == (0, b"last\nlast\n")
            assert b"there is room again" in complaints
            assert b"No space left" not in complaints
        assert runs.run(runs.clew_command("verify", small / "out.clew")).status == 0
        assert Trace(small / "out.clew").manifest.lost_records == 0


@pytest.mark.parametrize(
    "words",
    [pytest.param(words, marks=() if words in (("info",), ("verify",)) else pytest.mark.long) for words in READERS],
    ids=" ".join,
)
def test_a_trace_that_is_being_written(words: tuple[str, ...], tmp_path: Path) -> None:
    trace = tmp_path / "out.clew"
    with recording_of_a_copy(trace) as process:
        run = runs.run(runs.clew_command(*words, trace))
        assert (run.status, run.stdout) == (1, b"")
        assert b"being written" in run.stderr
        assert is_one_line(run.stderr)
        assert process.communicate(b"last\n", timeout=60) == (b"last\nlast\n", b"")
    assert process.returncode == 0
    runs.read(trace)


def test_the_target_goes_on_when_clew_is_killed(tmp_path: Path) -> None:
    trace = tmp_path / "out.clew"
    with recording_of_a_copy(trace) as process:
        process.kill()
        process.wait(60)
        lines = b"".join(b"line %d\n" % number for number in range(2000))
        output, errors = process.communicate(lines, timeout=60)
        assert sorted(output.splitlines()) == sorted(2 * lines.splitlines())
        assert errors == b""
    run = runs.run(runs.clew_command("info", trace))
    assert run.status == 1
    assert is_one_line(run.stderr)
    assert b"its recording was cut off" in run.stderr


def interrupt_at(folder: Path, module: str, *words: str | Path) -> tuple[int, bytes, bytes]:
    """Run clew, whose process group gets SIGINT when it is about to import `module`: status, stdout, stderr."""
    note = folder / "interrupted"
    environ = runs.environment() | {"INTERRUPT_AT": module, "INTERRUPT_NOTE": str(note)}
    environ["PYTHONPATH"] += f":{Path(__file__).with_name('at_import')}"
    command = [os.fspath(word) for word in runs.clew_command(*words)]
    run = subprocess.run(command, capture_output=True, env=environ, start_new_session=True, timeout=60)
    assert note.exists(), "never imported"
    note.unlink()
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize("module", ["click.core", "clew.cli.main", "clew.store.trace", "numpy.linalg", "pyarrow.lib"])
def test_a_report_that_is_interrupted(module: str, trace: Path, tmp_path: Path) -> None:
    assert interrupt_at(tmp_path, module, "report", trace) == (130, b"", b"clew: interrupted\n")


@pytest.mark.parametrize(
    "module", ["clew.cli.main", "clew.recording.options.arguments", "clew.recording.session.session"]
)
def test_a_recording_that_is_interrupted_before_it_began(module: str, tmp_path: Path) -> None:
    status, output, errors = interrupt_at(
        tmp_path, module, "record", "-o", tmp_path / "out.clew", "--", "echo", "output"
    )
    assert (status, output, errors) == (130, b"", b"clew: interrupted\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", ["numpy._core.multiarray", "clew.recording.drain.drain"])
def test_a_recording_that_is_interrupted_with_its_target(module: str, tmp_path: Path) -> None:
    trace = tmp_path / "out.clew"
    assert interrupt_at(tmp_path, module, "record", "-q", "-o", trace, "--", "sleep", "100") == (130, b"", b"")
    runs.read(trace)


@pytest.mark.parametrize("module", ["pyarrow.lib", "clew.store.writer"])
def test_an_interrupt_when_the_target_has_ended_costs_nothing(module: str, tmp_path: Path) -> None:
    trace = tmp_path / "out.clew"
    assert interrupt_at(tmp_path, module, "record", "-q", "-o", trace, "--", "echo", "output") == (0, b"output\n", b"")
    runs.read(trace)


OUTPUT_WRITERS = (*READERS, ("report", "--json"), ("report", "--by", "line", "--csv"))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, marks=() if words in (OUTPUT_WRITERS[0], OUTPUT_WRITERS[-1]) else pytest.mark.long)
        for words in OUTPUT_WRITERS
    ],
    ids=" ".join,
)
def test_output_that_cannot_be_written(words: tuple[str, ...], trace: Path) -> None:
    command = [os.fspath(word) for word in runs.clew_command(*words, trace)]
    with open("/dev/full", "wb") as full:
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=runs.environment())
    assert run.returncode == 1
    assert run.stderr == b"clew: standard output can't be written: No space left on device\n"
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    run = subprocess.run(closed, stderr=subprocess.PIPE, env=runs.environment())
    assert run.returncode == 1
    assert run.stderr == b"clew: standard output can't be written: Bad file descriptor\n"


def test_export_keeps_what_is_no_file(trace: Path, tmp_path: Path) -> None:
    def export(output: Path) -> runs.Run:
        return runs.run(runs.clew_command("export", trace, "--to", "drcov", "-o", output))

    assert export(tmp_path / "wanted").status == 0
    wanted = (tmp_path / "wanted").read_bytes()
    (tmp_path / "link").symlink_to("target")
    assert export(tmp_path / "link").status == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == wanted

    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        assert export(tmp_path / "pipe").status == 0
        assert reader.communicate(timeout=60)[0] == wanted
    assert (tmp_path / "pipe").is_fifo()

    run = export(tmp_path)
    assert run.status == 1
    assert is_one_line(run.stderr)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "target", "wanted"]


@pytest.mark.parametrize("table", [name for name in SCHEMAS if name not in {"events"} | OPTIONAL_TABLES])
def test_a_table_cut_short(table: str, trace: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(trace, tmp_path / "copy.clew"))
    part = next((damaged / table).iterdir())
    part.write_bytes(part.read_bytes()[:-30])
    for words in (("info",), ("verify",)):
        run = runs.run(runs.clew_command(*words, damaged))
        assert (run.status, run.stdout) == (1, b""), words
        assert is_one_line(run.stderr)
        assert f"copy.clew: {table}/".encode() in run.stderr


def test_a_set_uid_program(tmp_path: Path) -> None:
    """Asked as somebody who may not trace it."""
    program = shutil.which("su")
    if program is None or not os.stat(program).st_mode & 0o4000 or os.geteuid() != 0:
        pytest.skip("needs root to become somebody else, and a set-uid program")
    # All that is imported comes first: it may lie where only root can read.
    script = (
        "import difflib, locale, os, sys\n"
        "import clew.cli.main, clew.cli.recording\n"
        "os.setgroups([]), os.setgid(65534), os.setuid(65534)\n"
        "sys.exit(clew.cli.main.main(sys.argv[1:]))\n"
    )
    run = runs.run([sys.executable, "-c", script, "record", "-o", tmp_path / "out.clew", "--", program])
    # Where that user's recordings would be spoken to; one that runs keeps it.
    with suppress(OSError):
        os.rmdir("/tmp/clew-65534")
    assert (run.status, run.stdout) == (2, b"")
    assert b"set-uid" in run.stderr
    assert is_one_line(run.stderr)
