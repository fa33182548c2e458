"""Launch and injection, with a stand-in for the runtime that lets the program run natively."""

from __future__ import annotations

import ctypes
import itertools
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.address import FileOffset, RemoteAddress
from clew.errors import ClewError, InjectionError, NotExecutableError, RemoteCallError, TargetError
from clew.process.inject import inject
from clew.process.injection_plan import HEAP_BYTES, MIN_HEAP_BYTES, layout_for_limits, plan_injection
from clew.process.launch import launch_stopped
from clew.process.linux import MAP_ANONYMOUS, MAP_PRIVATE, PROT_READ, PROT_WRITE
from clew.process.maps import Mapping, read_maps
from clew.process.processors.chosen import native_processor
from clew.process.program import Program, find_program
from clew.process.runtime_image import load_runtime_image
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import Mode, RuntimeState
from clew.protocol.layout import field_offset

BASES = native_processor().bases
SMALL = SharedLayout(max_threads=4, ring_bytes=1 << 20, counter_bytes=1 << 20)
ADDR_NO_RANDOMIZE = 0x0040000
ENVIRONMENT = [b"PATH=/usr/bin:/bin", b"EMPTY=", b"odd entry", b"DOUBLE=1", b"DOUBLE=2", b"LATIN=\xe9"]


def launch(*words: str) -> StoppedProcess:
    return launch_stopped(find_program(words[0]), [os.fsencode(word) for word in words], ENVIRONMENT)


def run_native(words: list[str]) -> bytes:
    """Output of a command without clew, with no environment."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write_end, 1)
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.execve(find_program(words[0]).path, words, {})
    os.close(write_end)
    with open(read_end, "rb") as file:
        output = file.read()
    os.waitpid(pid, 0)
    return output


@pytest.fixture
def run_injected(fake_runtime: Path, tmp_path: Path) -> Callable[..., tuple[int, bytes, int]]:
    """Run a command with the stand-in in it: wait status, output, state on the status page."""

    def run(*words: str) -> tuple[int, bytes, int]:
        image = load_runtime_image(fake_runtime)
        saved = os.dup(1)
        output = tmp_path / "output"
        with open(output, "wb") as file:
            os.dup2(file.fileno(), 1)
            try:
                process = launch(*words)
            finally:
                os.dup2(saved, 1)
                os.close(saved)
        with process:
            shared, _ = inject(
                process, image, SMALL, HEAP_BYTES, HeaderSettings(mode=Mode.COUNTS), read_maps(process.pid)
            )
            process.detach()
        _, status = os.waitpid(process.pid, 0)
        offset = SMALL.status_offset + field_offset("StatusPage", "state")
        state = int.from_bytes(shared.map[offset : offset + 4], "little")
        shared.close()
        return status, output.read_bytes(), state

    return run


def test_the_program_runs_after_the_runtime(run_injected: Callable[..., tuple[int, bytes, int]]) -> None:
    status, output, state = run_injected("sh", "-c", "echo hello; exit 7")
    assert (os.waitstatus_to_exitcode(status), output, state) == (7, b"hello\n", RuntimeState.RUNNING)


def test_a_signal_ends_it(run_injected: Callable[..., tuple[int, bytes, int]]) -> None:
    status, _, _ = run_injected("sh", "-c", "kill -USR1 $$")
    assert os.WTERMSIG(status) == signal.SIGUSR1


def test_the_environment_is_exact(run_injected: Callable[..., tuple[int, bytes, int]]) -> None:
    _, output, _ = run_injected("cat", "/proc/self/environ")
    assert output.split(b"\0")[:-1] == ENVIRONMENT


def test_no_descriptor_and_no_signal_setting_differs(run_injected: Callable[..., tuple[int, bytes, int]]) -> None:
    _, output, _ = run_injected("ls", "/proc/self/fd")
    assert output == run_native(["ls", "/proc/self/fd"])
    command = ["grep", "-E", "^(Sig(Blk|Ign|Cgt|Pnd)|ShdPnd|TracerPid|NSpgid|NSsid|NoNewPrivs)", "/proc/self/status"]
    _, output, _ = run_injected(*command)
    assert output == run_native(command)


def test_the_heap_and_libraries_are_where_they_are_natively(
    run_injected: Callable[..., tuple[int, bytes, int]],
) -> None:
    libc = ctypes.CDLL(None)
    previous = libc.personality(0xFFFFFFFF)
    if libc.personality(previous | ADDR_NO_RANDOMIZE) == -1:
        pytest.skip("address space randomisation can't be switched off here")
    try:
        _, output, _ = run_injected("cat", "/proc/self/maps")
        native = run_native(["cat", "/proc/self/maps"])
    finally:
        libc.personality(previous)

    def places(text: bytes) -> list[bytes]:
        # Left out: what is clew's, in the gap that nothing else uses; the stack, whose strings differ; the vDSO's data.
        lines = [line for line in text.splitlines() if b"[stack]" not in line and b"[vv" not in line]
        return [line for line in lines if not BASES[0] <= int(line.split(b"-")[0], 16) < BASES[0] + (1 << 40)]

    assert places(output) == places(native)
    assert len(places(output)) < len(output.splitlines()) - 5


def test_system_calls_memory_and_errors() -> None:
    with launch("true") as process:
        address = process.call("mmap", 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        process.write(RemoteAddress(address + 4090), b"across pages")
        assert process.read(RemoteAddress(address + 4090), 12) == b"across pages"
        with pytest.raises(RemoteCallError, match="mprotect failed in the target"):
            process.call("mprotect", 1, 1, 1)
        assert process.call("munmap", address, 8192) == 0
        with pytest.raises(TargetError):
            process.read(RemoteAddress(address), 1)
        with pytest.raises(TargetError):
            process.write(RemoteAddress(1 << 63), b"x")
        process.detach()
    assert os.waitpid(process.pid, 0)[1] == 0


def test_system_calls_without_a_vdso() -> None:
    with launch("true") as process:
        process._syscall_address = RemoteAddress(0)
        code = process.read(RemoteAddress(process.registers.pc), 16)
        assert process.call("munmap", 0x10000, 4096) == 0
        assert process.read(RemoteAddress(process.registers.pc), 16) == code
        process.detach()
    assert os.waitpid(process.pid, 0)[1] == 0


def test_signals_that_arrive_while_it_is_held_reach_it_afterwards() -> None:
    with launch("sleep", "100") as process:
        os.kill(process.pid, signal.SIGTERM)
        process.call("munmap", 0x10000, 4096)
        process.detach()
    assert os.WTERMSIG(os.waitpid(process.pid, 0)[1]) == signal.SIGTERM


def test_an_error_kills_what_was_started() -> None:
    with pytest.raises(RuntimeError), launch("sleep", "100") as process:
        raise RuntimeError
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, 0)


def test_what_the_kernel_refuses_to_execute(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("plain\n")
    text.chmod(0o755)
    with pytest.raises(NotExecutableError, match="neither an ELF program nor a script"):
        launch_stopped(Program(str(text), None), [b"text"], [])
    with pytest.raises(NotExecutableError, match="does not exist"):
        launch_stopped(Program(str(tmp_path / "none"), None), [b"none"], [])
    with pytest.raises(NotExecutableError, match="too long"):
        launch_stopped(find_program("true"), [b"true", b"x" * (1 << 22)], [])


def test_shared_memory_can_neither_shrink_nor_grow() -> None:
    shared = SharedMemory(SharedFile.create(SMALL), HeaderSettings(mode=Mode.COUNTS))
    for size_bytes in (0, 2 * SMALL.total_bytes):
        with pytest.raises(OSError):
            os.ftruncate(shared.fd, size_bytes)
    shared.close()


def mapping(start: int, end: int) -> Mapping:
    return Mapping(RemoteAddress(start), RemoteAddress(end), PROT_READ, False, FileOffset(0), 0, 0, "")


def test_addresses_are_the_same_every_time_and_avoid_what_is_there() -> None:
    layout = SharedLayout()
    ordinary = [mapping(0x400000, 0x500000), mapping(0x7FFFF0000000, 0x7FFFFF000000)]
    plan = plan_injection(1 << 20, layout, HEAP_BYTES, ordinary, bases=BASES)
    assert plan.image_base == BASES[0]
    parts = [
        (plan.image_base, 1 << 20),
        (plan.start_block, plan.start_block_bytes),
        (plan.anchor_base, 4096),
        (plan.shared_base, layout.total_bytes),
        (plan.private_base, plan.private_bytes),
        (plan.heap_base, plan.heap_bytes),
    ]
    assert all(start + size < next_start for (start, size), (next_start, _) in itertools.pairwise(parts))
    assert sorted(plan.regions) == parts
    assert plan.start_block < plan.control_block < plan.thread_states < plan.stack_end
    in_the_way = [*ordinary, mapping(plan.heap_base + 4096, plan.heap_base + 8192)]
    assert plan_injection(1 << 20, layout, HEAP_BYTES, in_the_way, bases=BASES).image_base == BASES[1]
    with pytest.raises(InjectionError, match="no room"):
        plan_injection(1 << 20, layout, HEAP_BYTES, [mapping(0x1000, 0x7FFFFF000000)], bases=BASES)


def test_a_limited_address_space_gets_less(monkeypatch: pytest.MonkeyPatch) -> None:
    def limit_to(limit: int) -> None:
        monkeypatch.setattr(resource, "prlimit", lambda pid, kind: (limit, limit))

    limit_to(resource.RLIM_INFINITY)
    assert layout_for_limits(SharedLayout()) == (SharedLayout(), HEAP_BYTES)
    limit_to(16 << 30)
    layout, heap_bytes = layout_for_limits(SharedLayout())
    assert layout.max_threads < SharedLayout().max_threads
    assert heap_bytes >= MIN_HEAP_BYTES
    assert layout.total_bytes + heap_bytes < 8 << 30
    limit_to(1 << 30)
    with pytest.raises(ClewError, match="ulimit -v"):
        layout_for_limits(SharedLayout())
