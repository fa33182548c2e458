"""What a call of excluded code would cost if that ran natively until it returns.

Run as `python -m bench.native_calls`. No code and no return address of the program's may be changed, so a thread that
runs natively can be met where a call returns only by a hardware breakpoint of its own. Wall-clock time.
"""

from __future__ import annotations

import subprocess
import sys

from bench.workloads import compile_program

N_TRAPS = 100_000


def main() -> int:
    """Measure and print; the exit status."""
    done = subprocess.run([compile_program("trapped"), str(N_TRAPS)], capture_output=True, text=True, check=False)
    if done.returncode:
        print("there are no hardware breakpoints here")
        return 0
    trap_ns, move_ns = (int(word) for word in done.stdout.split())
    print(f"a trap where a call returns, with its signal: {trap_ns:,} ns; to have it there: {move_ns:,} ns")
    print(f"so a call of excluded code would cost {trap_ns + move_ns:,} ns more than natively")
    return 0


if __name__ == "__main__":
    sys.exit(main())
