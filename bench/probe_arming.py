"""How long it takes until many probes are in a process that waits: the controller's processor time, and its memory.

Run as `python -m bench.probe_arming [PATTERN] [COMMAND...]`: by default all functions of the C library, where these are
entered and where they return, in a program that sleeps. The command is to wait: it is ended afterwards.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections import Counter

from bench.machine import describe_machine
from clew.address import Pid
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ProbeSpec

START_SECONDS = 1.0
"""Until the command has loaded what it loads."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.probe_arming")
    parser.add_argument("pattern", nargs="?", default="libc.so.6!*")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    command = options.command or ["sleep", "1000"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        time.sleep(START_SECONDS)
        session = ProbeSession([ProbeSpec("all", options.pattern, is_function=True)])
        began, processor_began = time.perf_counter(), time.process_time()
        try:
            target = session.attach(Pid(process.pid))
            wall, processor = time.perf_counter() - began, time.process_time() - processor_began
            armed, remarks = target.armed, session.take_remarks()
            began = time.perf_counter()
        finally:
            session.close()
        closed = time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
    machine = describe_machine([])
    print(f"{machine['processor']}, {machine['processors']} processors, Linux {machine['kernel']}")
    kinds = Counter(one.technique.name.lower() for one in armed)
    print(f"{len(armed):,} probes: {', '.join(f'{n:,} by {name}' for name, n in kinds.most_common())}")
    print(f"armed in {processor:.2f} s of processor time, {wall:.2f} s in all; taken out in {closed:.2f} s")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB of memory at most")
    print(f"{len(remarks):,} remarks{':' if remarks else ''}")
    for text in remarks[:10]:
        print(f"  {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
