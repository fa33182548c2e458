"""What `clew api` says at its end of what it could not tell, or not do.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from clew.cli.console import escape_control, say

if TYPE_CHECKING:
    from clew.sessions.api_functions import FunctionChoice
    from clew.sessions.injections import Injection

__all__ = ["say_of_functions", "say_of_injections", "say_unseen", "say_what_is_raw"]

_MOST_NAMED: Final = 5


def say_of_injections(injections: list[Injection]) -> None:
    """Which of them there was nothing for, or could not be done."""
    for one in injections:
        for name, why in one.refused.items():
            say(escape_control(f"{name}: {why}"))
        if not one.refused and not one.n_places:
            say(escape_control(f"{one.what}: nothing that was loaded has such a function"))


def say_unseen(numbers: dict[str, int]) -> None:
    """What a program did that is not told: nobody could look, or there was no room for it."""
    for name, what in (
        ("calls_forgotten", "calls are not told: too many were open at once, or returned to one place"),
        ("ring_submissions_unseen", "operations of io_uring were submitted unseen"),
        ("ring_completions_unseen", "results of io_uring were overwritten unseen"),
    ):
        if numbers.get(name):
            say(f"{numbers[name]} {what}")


def say_what_is_raw(calls: dict[str, int]) -> None:
    """How many calls were told raw, by the names of their functions."""
    if calls:
        often = sorted(calls.items(), key=lambda one: (-one[1], one[0]))
        some = _some([f"{name} ({n})" for name, n in often])
        say(escape_control(f"{sum(calls.values())} calls without a description, arguments raw: {some}"))


def say_of_functions(choice: FunctionChoice, *, is_attached: bool) -> None:
    """Which functions are told without much, or not at all."""
    for names, why in (
        (choice.undescribed, "without a description"),
        (choice.missing, "in nothing that was loaded"),
        (choice.unmet, "asked for that nothing which was loaded has"),
        (choice.alike, "told by the names of others that are the same"),
        # What a program that began with this has not chosen it has not called.
        (choice.unchosen if is_attached else set(), "not seen, since nobody knows what was chosen for them"),
    ):
        if names:
            say(escape_control(f"{len(names)} functions {why}: {_some(sorted(names))}"))


def _some(names: Sequence[str]) -> str:
    """The first of some names."""
    return ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
