"""The command: `python -m clew` is `clew`.

Runs in the controller. Imports nothing by itself, so that an interrupt while anything is imported is told in one line.
"""

from __future__ import annotations

import os
import sys

__all__ = ["run"]


def run() -> None:
    """Run the command line and end the process with its exit status.

    At once: Python would take apart numpy and pyarrow first, a tenth of what recording a short program costs.
    """
    status = 130
    try:
        import gc

        # What is imported stays, and what is recorded or read lies in arrays: to look for garbage after every 700
        # objects, as Python does, takes some hundredths of the time of short commands, and finds next to none.
        gc.set_threshold(50_000)
        from clew.late import prepare_library

        prepare_library()
        from clew.cli.main import main

        status = main()
        # One that was closed from the start is None; one that can't be written was told of by `main`.
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (KeyboardInterrupt, RuntimeError) as error:
        # Interrupted while a class is made, Python makes another error of it.
        if isinstance(error, RuntimeError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        os.write(2, b"clew: interrupted\n")
    except (OSError, ValueError):
        pass
    os._exit(status)


if __name__ == "__main__":
    run()
