"""The command `clew`: has the command line done, prints errors as one line, gives the exit status.

Runs in the controller. click is imported only where it is needed, since the start of `clew record` is measured. Exit
status: 2 for usage, 1 for failures, otherwise the subcommand's own.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Final

from clew.cli.asked import parse_plain
from clew.cli.console import say
from clew.errors import ClewError

__all__ = ["main"]

EXIT_STATUS_INTERRUPTED: Final = 130
EXIT_STATUS_BROKEN_PIPE: Final = 141

_OUTPUT_ERRORS: Final = (errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    if sys.stdout is None:
        # It was closed from the start. What is written to this fails as it would there.
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    try:
        status = _do(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return status
    except ClewError as error:
        say(error.message)
        return error.exit_status
    except KeyboardInterrupt:
        return _end_interrupted()
    except BrokenPipeError:
        # Who read our output has gone, `head` for example.
        _drop_output()
        return EXIT_STATUS_BROKEN_PIPE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _OUTPUT_ERRORS and error.filename is None:
            _drop_output()
            say(f"standard output can't be written: {error.strerror}")
            return 1
        if isinstance(error.__cause__, KeyboardInterrupt):
            # Python makes another error of it while a class is made, in the middle of an import.
            return _end_interrupted()
        if os.environ.get("CLEW_DEBUG"):
            raise
        say(f"internal error: {type(error).__name__}: {error}; CLEW_DEBUG=1 shows where, please report it")
        return 1


def _do(arguments: list[str]) -> int:
    asked = parse_plain(arguments)
    if asked is None:
        from clew.cli.group import invoke

        return invoke(arguments)
    from clew.cli.recording import record

    return record(asked)


def _end_interrupted() -> int:
    # Objects that were cut off half made complain when they are dropped.
    sys.unraisablehook = lambda _: None
    say("interrupted")
    return EXIT_STATUS_INTERRUPTED


def _drop_output() -> None:
    """Forget what could not be written to stdout: Python would complain once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
