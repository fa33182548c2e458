"""The other tracers that put probes into a function of a program: the kernel's uprobes, bpftrace, uftrace, frida's
Interceptor; and LTTng-UST, whose tracepoint the program has in its source.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.peers.venv import INSIDE, PYTHON, find_version
from bench.probed_hits import FUNCTION, Attach, Program, Way

TRACING = Path("/sys/kernel/tracing")
GROUP = "clew_bench"


def with_uprobe(kind: str, fetched: str = "", accepted: str = "") -> Attach:
    """Probed by the kernel, whose ring is emptied."""

    @contextlib.contextmanager
    def attach(program: Program) -> Iterator[Callable[[], int]]:
        address = find_function(program)
        # Of a program that is linked to one place: its first segment is the file's beginning.
        offset = address - 0x400000
        event = TRACING / "events" / GROUP / "hit"
        _write(TRACING / "uprobe_events", f"{kind}:{GROUP}/hit {program.path}:{offset:#x} {fetched}\n")
        try:
            if accepted:
                _write(event / "filter", accepted)
            _write(event / "enable", "1")
            with (TRACING / "trace_pipe").open("rb", buffering=0) as pipe:
                os.set_blocking(pipe.fileno(), False)

                def read() -> int:
                    with contextlib.suppress(OSError):
                        while pipe.read(1 << 20):
                            pass
                    return 0

                yield read
        finally:
            _write(event / "enable", "0")
            _write(TRACING / "uprobe_events", f"-:{GROUP}/hit\n")

    return attach


def with_bpftrace(script: str) -> Attach:
    """Probed by a program that the kernel runs."""

    @contextlib.contextmanager
    def attach(program: Program) -> Iterator[Callable[[], int]]:
        text = f'BEGIN {{ printf("ready\\n"); }} uprobe:{program.path}:{FUNCTION} {{ {script} }}'
        words = ["bpftrace", "-p", str(program.pid), "-e", text]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tracer:
            assert tracer.stdout is not None
            said = [tracer.stdout.readline() for _ in range(2)]
            try:
                if "ready\n" not in said:
                    raise RuntimeError(" ".join(said).strip())
                yield lambda: 0
            finally:
                tracer.kill()

    return attach


def with_frida(kind: str) -> Attach:
    """Probed by frida's Interceptor, with code of C: its `entry`, or `both` ends of a call."""

    @contextlib.contextmanager
    def attach(program: Program) -> Iterator[Callable[[], int]]:
        words = [str(PYTHON), str(INSIDE / "probe_frida.py"), str(program.pid), hex(find_function(program)), kind]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tracer:
            assert tracer.stdin is not None and tracer.stdout is not None
            if tracer.stdout.readline() != "ready\n":
                raise RuntimeError("frida could not attach")
            yield lambda: 0
            tracer.stdin.close()
            n_noted = int(tracer.stdout.readline())
            if n_noted < program.n_calls:
                raise RuntimeError(f"frida noted {n_noted} of {program.n_calls} calls")

    return attach


def with_ust(event: str) -> Attach:
    """An event of LTTng-UST's is recorded, by a daemon that runs for this."""

    @contextlib.contextmanager
    def attach(program: Program) -> Iterator[Callable[[], int]]:
        with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder, ust_daemon(folder) as command:
            command("create", GROUP, "--output", f"{folder}/trace")
            command("enable-channel", "--userspace", "--num-subbuf", "8", "--subbuf-size", "1M", "events")
            command("enable-event", "--userspace", "--channel", "events", f"{GROUP}:{event}")
            command("start", GROUP)
            deadline = time.monotonic() + 10
            while f"PID: {program.pid}" not in command("list", "--userspace"):
                if time.monotonic() > deadline:
                    raise RuntimeError("the program does not come to LTTng's daemon")
            yield lambda: 0
            command("stop", GROUP)
            read = subprocess.run(["babeltrace2", f"{folder}/trace"], capture_output=True, text=True, check=True)
            n_read = read.stdout.count("\n")
            if n_read < program.n_calls:
                raise RuntimeError(f"LTTng-UST recorded {n_read} of {program.n_calls} calls")

    return attach


@contextlib.contextmanager
def ust_daemon(folder: str) -> Iterator[Callable[..., str]]:
    """LTTng's session daemon; what it gives runs a command of `lttng`, and is what that says."""
    environment = {**os.environ, "LTTNG_HOME": folder}
    with subprocess.Popen(
        ["lttng-sessiond", "--no-kernel"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as daemon:

        def command(*words: str) -> str:
            done = subprocess.run(
                ["lttng", "--no-sessiond", *words], env=environment, capture_output=True, text=True, timeout=30
            )
            if done.returncode:
                raise RuntimeError(f"lttng {words[0]}: {(done.stderr or done.stdout).strip()}")
            return done.stdout

        try:
            deadline = time.monotonic() + 10
            while True:
                with contextlib.suppress(RuntimeError):
                    command("list")
                    break
                if daemon.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("LTTng's session daemon does not start")
                time.sleep(0.05)
            yield command
            command("destroy", GROUP)
        finally:
            daemon.terminate()


def find_function(program: Program) -> int:
    """The address of the function that is called, in a program that is linked to one place."""
    symbols = subprocess.run(["nm", program.path], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(f" {FUNCTION}"))


def _write(path: Path, text: str) -> None:
    """Write to a file of the kernel's, at whose end nobody can seek."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def peer_ways(say: Callable[[str], None]) -> list[Way]:
    ways = []
    if (TRACING / "uprobe_events").exists():
        ways += [
            Way("uprobe", with_uprobe("p")),
            Way("uprobe, filter that rejects", with_uprobe("p", "a=%di:s64", "a == -5")),
            Way("uprobe, registers and string", with_uprobe("p", "a=%di b=%si c=%dx d=%cx s=+0(%dx):string")),
            Way("uretprobe", with_uprobe("r", "$retval")),
        ]
    else:
        say("uprobes are left out: tracefs is not mounted at /sys/kernel/tracing")
    if shutil.which("bpftrace"):
        ways.append(Way("bpftrace, count", with_bpftrace("@ = count();")))
    else:
        say("bpftrace is left out: it is not installed")
    if shutil.which("uftrace"):
        folder = Path(tempfile.mkdtemp(prefix="clew-bench-"))
        prefix = ("uftrace", "record", "-P", FUNCTION, "-d", str(folder / "data"), "--no-event", "--no-sched")
        ways.append(Way("uftrace, dynamic, entry and return", prefix=prefix))
    else:
        say("uftrace is left out: it is not installed")
    try:
        version = find_version("frida")
    except FileNotFoundError as error:
        say(f"frida is left out: {error}")
    else:
        ways.append(Way(f"frida {version}, CModule, entry", with_frida("entry")))
        ways.append(Way(f"frida {version}, CModule, entry and return", with_frida("both")))
    if shutil.which("lttng-sessiond") and shutil.which("lttng-gen-tp"):

        def with_tracepoints(name: str, attach: Attach | None, baseline: str) -> Way:
            return Way(name, attach, program="probe_hits_ust", baseline=baseline)

        native = "native, with tracepoints"
        ways += [
            with_tracepoints(native, None, "native"),
            with_tracepoints("LTTng-UST tracepoint", with_ust("hit"), native),
            with_tracepoints("LTTng-UST tracepoint, registers and string", with_ust("values"), native),
        ]
    else:
        say("LTTng-UST is left out: lttng-tools and liblttng-ust-dev are not installed")
    return ways
