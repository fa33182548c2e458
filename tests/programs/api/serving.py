"""Serves a folder by `python3 -m http.server`, and fetches from it: what is there, what is not, a listing."""

from __future__ import annotations

import http.client
import os
import select
import signal
import subprocess
import sys

POLL = 7
"""The number of the system call."""


def is_polling(pid: int) -> bool:
    """Whether the first thread of a process is in poll."""
    file = os.open(f"/proc/{pid}/syscall", os.O_RDONLY)
    told = os.read(file, 100)
    os.close(file)
    return told.startswith(b"%d " % POLL)


os.mkdir("served")
with open("served/hello.txt", "w") as file:
    file.write("hello\n" * 3)
words = [sys.executable, "-S", "-E", "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", "served", "0"]
with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
    assert server.stdout is not None
    port = int(server.stdout.readline().split(" port ")[1].split()[0])
    for path, status in (("/hello.txt", 200), ("/none", 404), ("/", 200)):
        client = http.client.HTTPConnection("127.0.0.1", port)
        client.request("GET", path)
        # The server has sent all that it has: in how many pieces it is read needs no luck.
        waiting = select.poll()
        waiting.register(client.sock, select.POLLRDHUP)
        waiting.poll()
        answer = client.getresponse()
        assert answer.status == status
        print(path, answer.status, len(answer.read()))
        client.close()
        # The thread that has answered has closed its end, and the one that began it waits for the next client: an
        # interrupt that it met before would have it close the connection once more.
        while len(os.listdir(f"/proc/{server.pid}/task")) > 1 or not is_polling(server.pid):
            pass
    server.send_signal(signal.SIGINT)
    server.stdout.read()
