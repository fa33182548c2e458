"""What clew says to people: lines on stderr, safe for a terminal.

Runs in the controller.
"""

from __future__ import annotations

import sys

__all__ = ["escape_control", "is_quiet", "say"]


def escape_control(text: str) -> str:
    """`text` with everything that is not printable written as an escape, so that it can't drive a terminal."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )


def is_quiet() -> bool:
    """Whether the command line has -q in front of the subcommand."""
    # Late: what says a line need not import it.
    import click

    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("quiet"))


def say(message: str) -> None:
    """Print one line of clew's own on stderr; a stderr that is gone is no reason to fail."""
    try:
        sys.stderr.write(f"clew: {escape_control(message)}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return
