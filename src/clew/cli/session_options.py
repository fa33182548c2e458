"""Options that verbs of sessions of probes share, and what they show of an answer.

Runs in whoever controls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from clew.cli.console import is_quiet, say

__all__ = ["confirm", "domain_option", "session_argument", "session_option", "tell"]

DEFAULT_SESSION = "default"

Command = Callable[..., Any]

session_option = click.option(
    "-s", "--session", "name", default=DEFAULT_SESSION, metavar="NAME", show_default=True, help="Of which session."
)
session_argument = click.argument("name", required=False, default=DEFAULT_SESSION, metavar="[SESSION]")
domain_option = click.option("-u", "--userspace", is_flag=True, expose_value=False, help="May be left out.")


def tell(answer: dict[str, Any]) -> None:
    """Say what there is to be told of what was done."""
    for text in answer["told"]:
        say(text)


def confirm(text: str) -> None:
    """Say what was done, unless nobody wants to be told."""
    if not is_quiet():
        say(text)
