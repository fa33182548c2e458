"""Runs a command in a session, and ends as it ends.

Run as `python -m tests.sessions.run_session HOW NUMBERS COMMAND...`: the runtime's own numbers go to the file NUMBERS.
HOW is `unfollowed`: none of its threads is followed; or `kept`: a transformer sees all blocks and keeps them.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path

import clew


def main(how: str, numbers: str, command: list[str]) -> int:
    """Like `subprocess`, -N where signal N ended it."""
    # Whoever signals the whole group means this process, too, which is not there natively.
    taken = {signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM}
    for number in signal.valid_signals() - taken:
        signal.signal(number, lambda *_: None)
    with clew.spawn(command) as session:
        n_shown = 0

        def keep(block: clew.CodeBlock) -> None:
            nonlocal n_shown
            # What a transformer looks at is decoded. Of a process that is killed meanwhile there is nothing.
            n_shown += len(block)

        if how == "kept":
            session.transform(None, keep)
        else:
            session.unfollow(lambda _: True)
        session.resume()
        exit_code = session.wait()
        findings = [str(finding) for finding in session.trace.verify()]
        statistics = session.statistics
    Path(numbers).write_text(json.dumps({"findings": findings, "n_shown": n_shown, **statistics}))
    return exit_code


if __name__ == "__main__":
    exit_code = main(sys.argv[1], sys.argv[2], sys.argv[3:])
    if exit_code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # The kernel's two cannot be handled in any case.
        if exit_code not in (-signal.SIGKILL, -signal.SIGSTOP):
            signal.signal(-exit_code, signal.SIG_DFL)
        os.kill(os.getpid(), -exit_code)
    sys.exit(exit_code)
