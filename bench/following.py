"""How long it takes to follow a thread of a loop and to leave it, again and again, and to attach to many threads.

Run as `python -m bench.following [--turns N] [--attaches N]`. Wall-clock time, of each call; what the program has of
memory of its own (RssAnon) early on and in the end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import clew
from bench.workloads import compile_program

FOREVER = str(10**12)
EARLY_TURN = 20


def show(name: str, seconds: list[float]) -> None:
    """Print a line for some times."""
    ordered = sorted(1e3 * one for one in seconds)
    middle, most = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    print(f"{name:10} median {middle:6.1f} ms, 99 of 100 within {most:6.1f} ms, the longest {ordered[-1]:6.1f} ms")


def read_own_kib(pid: int) -> int:
    """Memory of a process that is nobody else's, KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("RssAnon")))


def follow_again_and_again(n_turns: int) -> None:
    """Measure and print."""
    following, leaving, kib = list[float](), list[float](), list[int]()
    with subprocess.Popen([compile_program("probed"), FOREVER], stdout=subprocess.DEVNULL) as program:
        with clew.attach_session(program.pid) as session:
            for turn in range(n_turns):
                start = time.perf_counter()
                stream = session.follow(program.pid, events={"call"})
                following.append(time.perf_counter() - start)
                next(iter(stream))
                start = time.perf_counter()
                session.unfollow()
                leaving.append(time.perf_counter() - start)
                if turn in (min(EARLY_TURN, n_turns - 1), n_turns - 1):
                    kib.append(read_own_kib(program.pid))
        program.kill()
    show("follow", following)
    show("unfollow", leaving)
    print(f"memory grows by {kib[-1] - kib[0]} KiB")


def attach_to_many(n_attaches: int) -> None:
    """Measure and print: 64 threads, all but one of which wait."""
    script = "import threading, time; e = threading.Event(); print(flush=True)\n"
    script += "for _ in range(63): threading.Thread(target=e.wait, daemon=True).start()\nwhile True: pass"
    attaching = list[float]()
    for _ in range(n_attaches):
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as program:
            assert program.stdout is not None
            program.stdout.readline()
            time.sleep(0.5)
            start = time.perf_counter()
            with clew.attach_session(program.pid):
                attaching.append(time.perf_counter() - start)
            program.kill()
    show("attach", attaching)


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1000, help="how often a thread is followed and left")
    parser.add_argument("--attaches", type=int, default=10, help="how often 64 threads are attached to")
    chosen = parser.parse_args(arguments)
    follow_again_and_again(chosen.turns)
    attach_to_many(chosen.attaches)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
