"""What is known of a session's probes from all of its processes: what is taken there, how places are called, what is to
be told people.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

from collections.abc import Iterable

from clew.sessions.probes.event_forms import EventForm
from clew.sessions.probes.target import Target

__all__ = ["Findings"]


class Findings:
    """Of one session."""

    def __init__(self) -> None:
        self.forms: dict[int, EventForm] = {}
        """What is taken, by the numbers of captures: of the same types in all processes."""
        self.place_names: dict[int, dict[int, str]] = {}
        """By index and address, of places that a pattern means."""
        self.remarks: list[str] = []
        """Of processes that were left, or could not be probed."""
        self._told: set[str] = set()
        self._missing: dict[str, str] = {}
        self._were_found: set[str] = set()
        """Places, as they were asked for."""

    def note(self, target: Target) -> None:
        """Take note of what was found in a process by now."""
        self._missing.update(target.missing)
        for index, names in target.place_names.items():
            self.place_names.setdefault(index, {}).update(names)
        for probe in target.found:
            self._were_found.add(probe.spec.where)
            for number, form in probe.forms().items():
                self.forms.setdefault(number, form)

    def take_remarks(self, targets: Iterable[Target]) -> list[str]:
        """What there is to tell people that was not told yet."""
        found = [*self.remarks, *(text for target in targets for text in target.remarks)]
        self.remarks.clear()
        new = [text for text in dict.fromkeys(found) if text not in self._told]
        self._told.update(new)
        return new

    @property
    def missing(self) -> list[str]:
        """Why probes are in none of the processes, for people."""
        return [text for where, text in self._missing.items() if where not in self._were_found]
