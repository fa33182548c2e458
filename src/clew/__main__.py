"""`python -m clew` is `clew`."""

from __future__ import annotations

from clew.cli.main import run

if __name__ == "__main__":
    run()
