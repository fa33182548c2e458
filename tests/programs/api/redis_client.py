"""Starts a redis server, and asks it by redis-cli: one client makes a call three times, and another one ends it."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

SCRIPT = """
redis.call('rpush', 'list', 'one', 'two')
redis.call('hset', 'hash', 'field', 'value')
return {redis.call('incrby', 'n', 5), redis.call('lrange', 'list', 0, -1), redis.call('hgetall', 'hash')}
"""


def n_sockets(pid: int) -> int:
    """How many sockets a process has: it opens and closes other things at any time."""
    n = 0
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            n += os.readlink(path).startswith("socket:")
    return n


words = ["redis-server", "--port", "0", "--unixsocket", "socket", "--save", "", "--daemonize", "no"]
# What takes long by chance is not looked at by the server itself.
words += ["--slowlog-log-slower-than", "-1"]
with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
    assert server.stdout is not None
    for line in server.stdout:
        if "eady to accept connections" in line or "now ready" in line:
            break
    subprocess.run(["redis-cli", "-s", "socket", "-r", "3", "eval", SCRIPT, "0"], check=True)
    # The server has seen that the first one has gone.
    while n_sockets(server.pid) > 1:
        pass
    subprocess.run(["redis-cli", "-s", "socket", "shutdown", "nosave"], check=True)
    server.stdout.read()
