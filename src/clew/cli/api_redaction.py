"""Options of `clew api` that say what is not to be told.

Runs in the controller.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from clew.api.redaction import Redaction

__all__ = ["read_redaction", "redaction_options"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS: Final = (
    click.option(
        "--redact",
        "hidden_patterns",
        multiple=True,
        metavar="PATTERN",
        help="Write [redacted] for what fits a regular expression in strings, buffers and names; may be given again.",
    ),
    click.option(
        "--redact-args",
        "hidden_names",
        multiple=True,
        metavar="NAME",
        help="Neither take nor tell arguments of that name: buf, SSL_write:buf, *:*pass*; may be given again.",
    ),
    click.option("--no-data", is_flag=True, help="No contents of buffers and strings, only how much there is."),
    click.option("--secrets", is_flag=True, help="Tell what descriptions say is secret, as passwords and keys, too."),
)


def redaction_options(function: _Function) -> _Function:
    """Give a command the options that `read_redaction` reads."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def read_redaction(
    patterns: tuple[str, ...], names: tuple[str, ...], *, no_data: bool, secrets: bool
) -> Redaction | None:
    """What is to be hidden otherwise than descriptions say; None: nothing. Raises click.UsageError."""
    if not (patterns or names or no_data or secrets):
        return None
    from clew.api.redaction import Redaction, parse_pattern

    try:
        parsed = tuple(parse_pattern(text) for text in patterns)
    except re.error as error:
        raise click.UsageError(f"--redact: no regular expression: {error}") from error
    return Redaction(parsed, names, not no_data, secrets)
