"""Servers under load, attached to and left over and over: none of them notices, and every trace is well-formed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.e2e.attaching import (
    Target,
    attach,
    attaching,
    end_attaching,
    find_descendants,
    nobody_has_runtime,
    start,
)

pytestmark = [pytest.mark.stress, pytest.mark.timeout(900)]

CYCLES = 20
NGINX = """
daemon off; {processes}; pid {folder}/pid; error_log stderr;
events {{ worker_connections 256; }}
http {{
  access_log off; gzip on; gzip_min_length 1;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port}; root {folder}/html; }}
}}
"""


def tool(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"no program {name} on this machine")
    return found


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return


@contextmanager
def load(*command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A load generator; it must still be at work in the end."""
    process = subprocess.Popen([os.fspath(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield process
        assert process.poll() is None, process.communicate()[0][-500:]
    finally:
        process.kill()
        process.communicate()


def attach_again_and_again(target: Target, tmp_path: Path) -> None:
    slowest = 0
    for _ in range(CYCLES):
        trace = tmp_path / "out.clew"
        run = attach(target.pid, trace, "--stats")
        assert run.status == 0, run.stderr
        assert b"detached after" in run.stderr
        assert not target.has_runtime()
        assert runs.read(trace).totals["instructions"] > 0
        microseconds = [int(line.split()[2]) for line in run.stderr.splitlines() if b"detach_microseconds" in line]
        slowest = max(slowest, *microseconds)
        shutil.rmtree(trace)
    print(f"slowest detach: {slowest / 1000:.1f} ms")


def test_redis(tmp_path: Path) -> None:
    port = free_port()
    options = ["--port", str(port), "--save", "", "--appendonly", "no", "--io-threads", "3", "--dir", str(tmp_path)]
    with start(tool("redis-server"), *options, ready=b"Ready to accept connections") as target:
        requests = ["-p", str(port), "-c", "20", "-P", "4", "-n", "1000000000", "-t", "set,lpush,zadd"]
        with load(tool("redis-benchmark"), *requests):
            signals = target.look().signals
            attach_again_and_again(target, tmp_path)
            assert target.look().signals == signals
        assert target.end(number=signal.SIGTERM)[0] == 0


def configure_nginx(folder: Path, port: int, processes: str) -> Path:
    html = folder / "html"
    html.mkdir()
    (html / "index.html").write_text("\n".join(f"line {number * number}" for number in range(400)))
    configuration = folder / "nginx.conf"
    configuration.write_text(NGINX.format(folder=folder, port=port, processes=processes))
    return configuration


def test_nginx(tmp_path: Path) -> None:
    port = free_port()
    configuration = configure_nginx(tmp_path, port, "master_process off")
    with start(tool("nginx"), "-c", configuration, ready=b"") as target:
        wait_for_port(port)
        url = f"http://127.0.0.1:{port}/index.html"
        with load(tool("ab"), "-q", "-k", "-t", "800", "-n", "5000000", "-c", "8", "-H", "Accept-Encoding: gzip", url):
            attach_again_and_again(target, tmp_path)
        before = target.look()
        assert attach(target.pid, tmp_path / "idle.clew").status == 0
        assert target.look() == before
        assert target.end(number=signal.SIGQUIT)[0] == 0


def renew_workers(target: Target) -> None:
    before = set(find_descendants(target.pid))
    os.kill(target.pid, signal.SIGHUP)
    target.wait_for(lambda: len({*find_descendants(target.pid)} - before) == 2)


def test_nginx_with_a_master_and_workers(tmp_path: Path) -> None:
    """The master makes new workers at each SIGHUP: while it is attached to, under load, and while it is left."""
    port = free_port()
    configuration = configure_nginx(tmp_path, port, "master_process on; worker_processes 2; user root")
    with start(tool("nginx"), "-c", configuration, ready=b"") as target:
        wait_for_port(port)
        url = f"http://127.0.0.1:{port}/index.html"
        with load(tool("ab"), "-q", "-r", "-t", "800", "-n", "5000000", "-c", "4", "-H", "Accept-Encoding: gzip", url):
            for cycle in range(CYCLES // 2):
                trace = tmp_path / f"{cycle}.clew"
                with attaching(target.pid, trace) as clew:
                    target.wait_for(target.is_attached)
                    renew_workers(target)
                    time.sleep(0.3)
                    if cycle % 2:
                        os.kill(target.pid, signal.SIGHUP)
                    status, said = end_attaching(clew)
                assert (status, "runtime in it" in said) == (0, False), said
                assert nobody_has_runtime(target), said
                workers = runs.read(trace).summary["processes"][1:]
                assert len(workers) >= 2
                assert all(worker["parent_pid"] == target.pid for worker in workers)
                assert all(sum(thread["instructions"] for thread in worker["threads"]) for worker in workers[:2])
                shutil.rmtree(trace)
        assert target.end(number=signal.SIGQUIT)[0] == 0


def test_bash_that_runs_commands(tmp_path: Path) -> None:
    sums = "n=$((n+1)); test $(expr $n + 1 | cat) = $((n+1)) || exit 1"
    script = f"trap 'exit 7' TERM; n=0; echo ready; while :; do {sums}; done"
    with start("bash", "-c", script) as target:
        attach_again_and_again(target, tmp_path)
        assert target.end(number=signal.SIGTERM)[0] == 7
