"""Calls of a session's target that go another way: errors, results, delays and signals that are injected.

Runs in the controller, in any thread. What is done is decided in the target, by the thread that makes the call
(dispatch/apart/injections.rs): nothing here is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from clew.api.injection import parse_injection
from clew.api.injection_plan import InjectionPlan, choose_system_calls, plan_injection
from clew.errors import UsageError
from clew.sessions.api_functions import FunctionChoice, parse_pattern
from clew.sessions.where import Where, place_of_call

if TYPE_CHECKING:
    from clew.api.descriptions import Descriptions
    from clew.binary.elf import ElfFile
    from clew.sessions.call_probes import CallProbes
    from clew.sessions.memory import Image

__all__ = ["Injection"]


class Injection:
    """What `Session.inject` gives. `what` is as it was asked for."""

    def __init__(self, probes: CallProbes, what: str, descriptions: Descriptions) -> None:
        """Raises UsageError, CaptureError, ControlError."""
        self.what = what
        self._spec = parse_injection(what)
        self._probes, self._descriptions = probes, descriptions
        self.refused: dict[str, str] = {}
        """Functions to which it can't be done, and why."""
        calls = choose_system_calls(self._spec, descriptions)
        self._calls = frozenset(calls)
        patterns = [parse_pattern(one) for one in self._spec.what if "!" in one]
        self._choice = FunctionChoice(patterns, descriptions) if patterns else None
        self._numbers = probes.inject([(place_of_call(number), plan) for number, plan in sorted(calls.items())])
        self._returns: list[int] = []
        self._functions: set[tuple[str, int]] = set()
        if self._choice is not None:
            probes.inject_in_images(self._choose, self._take)

    def _choose(self, image: Image, elf: ElfFile) -> Iterator[tuple[Where, InjectionPlan]]:
        assert self._choice is not None
        for one in self._choice.of_image(image.path, elf):
            function = one.capture.function
            try:
                plan = plan_injection(self._spec, function, self._descriptions)
            except UsageError as error:
                self.refused[f"{image.name}!{function.name}"] = error.message
                continue
            self._functions.add((image.path, one.offset))
            yield Where(f"{image.name}!{function.name}", None, image.path, function.name, 0, one.offset), plan

    def _take(self, number: int, is_of_returns: bool) -> None:
        (self._returns if is_of_returns else self._numbers).append(number)

    def is_about_call(self, number: int) -> bool:
        """Whether it is about the system calls of a number."""
        return number in self._calls

    def is_about_function(self, path: str, offset: int) -> bool:
        """Whether it is about a function of the image `path`, `offset` bytes behind its base, as far as is known by
        now."""
        return (path, offset) in self._functions

    @property
    def n_places(self) -> int:
        """At how many system calls and functions it is: 0 as long as nothing that is loaded has such a function."""
        numbers = list(self._numbers)
        return self._probes.ask(lambda places: sum(places.count(number) for number in numbers))

    def remove(self) -> None:
        """Do it no more. What is under way ends."""
        # What is decided no more is to hold nobody either.
        for number in [*self._returns, *self._numbers]:
            self._probes.remove(number)

    def __repr__(self) -> str:
        return f"<injection {self.what}>"
